import type { SkillStatistics } from '../../../../client/types.js';
import { formatNumber, formatPercent, formatPoints } from '../../base/format.js';
import { useLoad } from '../../base/load.js';
import { buildHref } from '../../base/route.js';
import { formatSection } from '../../base/skill-names.js';
import { useViewer } from '../../base/viewer.js';
import { Loaded } from '../../parts/loaded.jsx';
import { Stat, Stats } from '../../parts/stat.jsx';
import { CohortChart } from './cohort-chart.jsx';
import { ItemsPanel } from './items-panel.jsx';
import { LearningCurve } from './learning-curve.jsx';
import { ParametersPart } from './parameters.jsx';
import { formatVelocity } from './skill-list.jsx';
import './skills.css';

const maxItems = 500;

export function SkillView({ skillId }: { skillId: string }) {
  const { api } = useViewer();
  const skill = useLoad((signal) => api.skill(skillId, { signal }), [api, skillId]);
  const statisticsLoad = useLoad(
    (signal) =>
      Promise.all([
        api.statisticsOfSkill(skillId, { signal }),
        api.skillItems(skillId, { limit: maxItems, signal }),
      ]),
    [api, skillId],
  );
  const [statistics, items] = statisticsLoad.data ?? [];
  return (
    <>
      <p>
        <a href={buildHref('skills')}>All skills</a>
      </p>
      <h1>
        <bdi>{skill.data?.name ?? skillId}</bdi>
      </h1>
      <Loaded load={skill} subject="the skill">
        {(data) => (
          <p class="soft">
            {formatSection(data.section)}, weight {data.weight}. Its id is <code>{data.skill_id}</code>. All
            answers that are stored count; days are UTC days.
          </p>
        )}
      </Loaded>
      {skill.error === null && (
        <>
          <Loaded load={statisticsLoad} subject="how learners do">
            {([data]) => <SkillSummary statistics={data} />}
          </Loaded>
          {statisticsLoad.error !== null && (
            <p class="note">Its learning curve, items and cohorts are missing, the parameters are not.</p>
          )}
          {skill.data !== null && <ParametersPart skill={skill.data} />}
          {items !== undefined && <ItemsPanel page={items} />}
          {statistics !== undefined && <CohortChart rows={statistics.cohorts} />}
        </>
      )}
    </>
  );
}

function SkillSummary({ statistics }: { statistics: SkillStatistics }) {
  const {
    learners,
    answers,
    accuracy,
    mean_p_correct: predicted,
    velocity_per_attempt: velocity,
  } = statistics;
  return (
    <div class="stack">
      <Stats>
        <Stat label="Learners" value={formatNumber(learners)} note={`${formatNumber(answers)} answers`} />
        <Stat label="Right" value={formatPercent(accuracy)} note={`${formatPercent(predicted)} predicted`}>
          The share of right answers beside the mean of the probabilities that were given before they came.
          They differ by {formatPoints(accuracy - predicted)} points; far apart means that the model is wrong
          about this skill.
        </Stat>
        <Stat
          label="Velocity"
          value={formatVelocity(velocity.median)}
          note={`points an answer; half of the learners ${formatVelocity(velocity.q1)} to ${formatVelocity(velocity.q3)}`}
        >
          Percentage points of mastery that an answer brings, for the learner in the middle. First answers
          also find out what was known before.
        </Stat>
        <Stat
          label="On a plateau"
          value={formatPercent(statistics.plateau_share)}
          note="of its learners"
          tone={statistics.plateau_share >= 0.1 ? 'alert' : undefined}
        >
          Learners whom practice no longer moved at some answer of their last day with answers, though they do
          not master it. They need another kind of task. It takes twelve answers to tell. The page of a
          learner goes by the last answer alone.
        </Stat>
      </Stats>
      <LearningCurve rows={statistics.learning_curve} />
    </div>
  );
}
