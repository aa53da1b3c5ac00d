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
            {formatSection(data.section)}, weight {data.weight}. Id: <code>{data.skill_id}</code>. Includes
            all stored answers.
          </p>
        )}
      </Loaded>
      {skill.error === null && (
        <>
          <Loaded load={statisticsLoad} subject="the statistics">
            {([data]) => <SkillSummary statistics={data} />}
          </Loaded>
          {statisticsLoad.error !== null && (
            <p class="note">Learning curve, items and cohorts are unavailable.</p>
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
        <Stat label="Correct" value={formatPercent(accuracy)} note={`${formatPercent(predicted)} predicted`}>
          Share of correct answers, and mean prediction. The difference is{' '}
          {formatPoints(accuracy - predicted)} points. A large difference means that the model does not fit
          this skill.
        </Stat>
        <Stat
          label="Velocity"
          value={formatVelocity(velocity.median)}
          note={`points per answer; quartiles ${formatVelocity(velocity.q1)} to ${formatVelocity(velocity.q3)}`}
        >
          Median change of mastery per answer, in percentage points. In first answers, the change also
          reflects earlier knowledge.
        </Stat>
        <Stat
          label="On a plateau"
          value={formatPercent(statistics.plateau_share)}
          note="of learners"
          tone={statistics.plateau_share >= 0.1 ? 'alert' : undefined}
        >
          Learners with a plateau at any answer of their last active day: at least 12 answers, not mastered,
          and no progress. They need other tasks. The page of a learner uses the last answer only.
        </Stat>
      </Stats>
      <LearningCurve rows={statistics.learning_curve} />
    </div>
  );
}
