import { formatPercentRange, formatSkillAccuracy } from '../../base/format.js';
import { Facts, Panel } from '../../parts/stat.jsx';
import { buildSkillHref } from './advice.jsx';
import { minSkillAnswers } from './evidence.jsx';
import type { LearnerProps, LearnerSkill } from './learner-props.js';

const maxSkills = 5;

/** No skill is in both lists. */
export function SkillExtremes(learner: LearnerProps) {
  const ranked = learner.skills
    .filter(({ total_attempts }) => total_attempts >= minSkillAnswers)
    .toSorted((a, b) => a.expected_accuracy - b.expected_accuracy);
  const count = Math.min(maxSkills, Math.ceil(ranked.length / 2));
  const lists = {
    Weakest: ranked.slice(0, count),
    Strongest: ranked.slice(count).filter(isReliable).slice(-maxSkills).reverse(),
  };
  return (
    <Panel
      title="Weakest and strongest skills"
      about={`Expected accuracy and its probable range, of skills with at least ${minSkillAnswers} answers. Skills with many fast answers or a plateau are not among the strongest.`}
    >
      {ranked.length === 0 && <p>No skill has {minSkillAnswers} answers yet.</p>}
      <div class="extremes">
        {Object.entries(lists).map(
          ([name, skills]) =>
            skills.length > 0 && (
              <div key={name}>
                <h3>{name}</h3>
                <Facts facts={skills.map((skill) => describeSkill(learner, skill))} />
              </div>
            ),
        )}
      </div>
    </Panel>
  );
}

const isReliable = ({ plateau_detected, efficiency_reason }: LearnerSkill): boolean =>
  !plateau_detected && efficiency_reason !== 'rapid_answers';

const describeSkill = (learner: LearnerProps, skill: LearnerSkill) =>
  [
    <a key="skill" href={buildSkillHref(learner, skill.skill_id)}>
      <bdi>{learner.getSkillName(skill.skill_id)}</bdi>
    </a>,
    `${formatSkillAccuracy(skill.expected_accuracy)} (${formatPercentRange(skill.expected_low, skill.expected_high)})`,
  ] as const;
