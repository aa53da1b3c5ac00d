import type { SkillStatistics } from '../../../../client/types.js';
import { grouped, percent, points } from '../../base/format.js';
import { useLoad } from '../../base/load.js';
import { href } from '../../base/route.js';
import { sectionName } from '../../base/skill-names.js';
import { useViewer } from '../../base/viewer.js';
import { Loaded } from '../../parts/loaded.jsx';
import { Stat, Stats } from '../../parts/stat.jsx';
import { Cohorts } from './cohorts.jsx';
import { LearningCurve } from './curve.jsx';
import { Items } from './items.jsx';
import { velocityText } from './list.jsx';
import { ParametersPart } from './parameters.jsx';
import './skills.css';

const mostItems = 500;

export function OneSkill({ skillId }: { skillId: string }) {
  const { api } = useViewer();
  const skill = useLoad((signal) => api.skill(skillId, { signal }), [api, skillId]);
  const stored = useLoad(
    (signal) =>
      Promise.all([
        api.statisticsOfSkill(skillId, { signal }),
        api.skillItems(skillId, { limit: mostItems, signal }),
      ]),
    [api, skillId],
  );
  const [statistics, items] = stored.data ?? [];
  return (
    <>
      <p>
        <a href={href('skills')}>All skills</a>
      </p>
      <h1>
        <bdi>{skill.data?.name ?? skillId}</bdi>
      </h1>
      <Loaded of={skill} what="the skill">
        {(data) => (
          <p class="soft">
            {sectionName(data.section)}, weight {data.weight}. Its id is <code>{data.skill_id}</code>. All
            answers that are stored count; days are UTC days.
          </p>
        )}
      </Loaded>
      {skill.error === null && (
        <>
          <Loaded of={stored} what="how learners do">
            {([data]) => <HowLearnersDo statistics={data} />}
          </Loaded>
          {stored.error !== null && (
            <p class="note">Its learning curve, items and cohorts are missing, the parameters are not.</p>
          )}
          {skill.data !== null && <ParametersPart skill={skill.data} />}
          {items !== undefined && <Items page={items} />}
          {statistics !== undefined && <Cohorts rows={statistics.cohorts} />}
        </>
      )}
    </>
  );
}

function HowLearnersDo({ statistics }: { statistics: SkillStatistics }) {
  const { learners, answers, accuracy, mean_p_correct: predicted, velocity_per_attempt: won } = statistics;
  return (
    <div class="stack">
      <Stats>
        <Stat label="Learners" value={grouped(learners)} note={`${grouped(answers)} answers`} />
        <Stat label="Right" value={percent(accuracy)} note={`${percent(predicted)} predicted`}>
          The share of right answers beside the mean of the probabilities that were given before they came.
          They differ by {points(accuracy - predicted)} points; far apart means that the model is wrong about
          this skill.
        </Stat>
        <Stat
          label="Velocity"
          value={velocityText(won.median)}
          note={`points an answer; half of the learners ${velocityText(won.q1)} to ${velocityText(won.q3)}`}
        >
          Percentage points of mastery that an answer brings, for the learner in the middle. First answers
          also find out what was known before.
        </Stat>
        <Stat
          label="On a plateau"
          value={percent(statistics.plateau_share)}
          note="of its learners"
          look={statistics.plateau_share >= 0.1 ? 'alert' : undefined}
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
