/** A skill: what practice does to it, where it is hard, and what the model assumes of it. */
import type { SkillStatistics } from '../../../../client/types.js';
import { grouped, percent, points } from '../../base/format.js';
import { useLoad } from '../../base/load.js';
import { href } from '../../base/route.js';
import { useViewer } from '../../base/viewer.js';
import { Loaded } from '../../parts/loaded.jsx';
import { Stat, Stats } from '../../parts/stat.jsx';
import { Cohorts } from './cohorts.jsx';
import { LearningCurve } from './curve.jsx';
import { Items } from './items.jsx';
import { velocityText } from './list.jsx';
import { sectionName } from './names.js';
import { ParametersPart } from './parameters.jsx';
import './skills.css';

export function OneSkill({ skillId }: { skillId: string }) {
  const { api } = useViewer();
  const skill = useLoad((signal) => api.skill(skillId, { signal }), [api, skillId]);
  const statistics = useLoad((signal) => api.statisticsOfSkill(skillId, { signal }), [api, skillId]);
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
          <Loaded of={statistics} what="how learners do">
            {(data) => <HowLearnersDo statistics={data} />}
          </Loaded>
          {skill.data !== null && <ParametersPart skill={skill.data} />}
          <Items skillId={skillId} />
          {statistics.data !== null && <Cohorts rows={statistics.data.cohorts} />}
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
          label="Won by an answer"
          value={velocityText(won.median)}
          note={`points; half of the learners ${velocityText(won.q1)} to ${velocityText(won.q3)}`}
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
          Learners whom practice no longer moved at their last answer, though they do not master it. They need
          another kind of task. It takes twelve answers to tell.
        </Stat>
      </Stats>
      <LearningCurve rows={statistics.learning_curve} />
    </div>
  );
}
