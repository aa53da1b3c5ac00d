import type { Prediction } from '../../../../client/types.js';
import { buildHref } from '../../base/route.js';
import { Panel } from '../../parts/stat.jsx';
import type { LearnerProps } from './learner-props.js';

interface AdviceProps extends LearnerProps {
  readonly prediction: Prediction;
}

/** A learner page has no details of skills without answers. */
export const buildSkillHref = ({ userId, query, skills }: LearnerProps, skillId: string): string =>
  skills.some(({ skill_id }) => skill_id === skillId)
    ? buildHref('learner', [userId], { ...query, skill: skillId })
    : buildHref('skills', [skillId]);

interface Recommendation {
  readonly text: string;
  readonly skillId: string | null;
}

const listRecommendations = (prediction: Prediction): Recommendation[] =>
  prediction.recommendations.map((text, i) => ({
    text,
    skillId: prediction.recommendation_codes[i]?.skill_id ?? null,
  }));

/** Prefers a recommendation with a skill. Undefined without recommendations. */
export function findNextStep(prediction: Prediction): Recommendation | undefined {
  const all = listRecommendations(prediction);
  return all.find(({ skillId }) => skillId !== null) ?? all[0];
}

/** The name of the skill is a link. */
export function AdviceText({ text, skillId, ...learner }: LearnerProps & Recommendation) {
  if (skillId === null) return <>{text}</>;
  const name = learner.getSkillName(skillId);
  // The service shortens long names.
  const start = text.indexOf(name);
  return (
    <>
      {start < 0 ? `${text} ` : text.slice(0, start)}
      <a href={buildSkillHref(learner, skillId)}>
        <bdi>{name}</bdi>
      </a>
      {start >= 0 && text.slice(start + name.length)}
    </>
  );
}

export function Advice({ prediction, ...learner }: AdviceProps) {
  const recommendations = listRecommendations(prediction);
  return (
    <Panel
      title="Recommendations"
      about={
        recommendations.length === 0
          ? undefined
          : 'Activity, sections without answers and the goal come first, then skills by expected gain per hour of practice. Only advice on low mastery names the points: rough estimates, from 20 answers per section.'
      }
    >
      {recommendations.length === 0 && <p>{prediction.recommendations_reason ?? 'No recommendations.'}</p>}
      <ol class="advice">
        {recommendations.map((recommendation) => (
          <li key={recommendation.text}>
            <AdviceText {...learner} {...recommendation} />
          </li>
        ))}
      </ol>
    </Panel>
  );
}
