/** Mastery needs only Redis. Every other part of the page can fail alone. */
import { SkilltraceError } from '../../../../client/errors.js';
import {
  countDaysSince,
  formatDayTime,
  formatNumber,
  formatPercent,
  missingText,
  pluralize,
} from '../../base/format.js';
import { useLoad } from '../../base/load.js';
import { buildHref } from '../../base/route.js';
import { useSkillNames } from '../../base/skill-names.js';
import { useViewer } from '../../base/viewer.js';
import { Loaded } from '../../parts/loaded.jsx';
import { masteryMeaning } from '../../parts/mastery-meaning.jsx';
import { Stat, Stats } from '../../parts/stat.jsx';
import { sumAnswers } from './answer-totals.js';
import { ConfidencePanel } from './confidence-panel.jsx';
import { minSkillAnswers, ThinEvidenceNote } from './evidence.jsx';
import { Forecast } from './forecast.jsx';
import type { LearnerProps, LearnerSkill } from './learner-props.js';
import { PacePanel } from './pace-panel.jsx';
import { SkillDetail } from './skill-detail.jsx';
import { SkillsPanel } from './skills-panel.jsx';
import './learner.css';

export function LearnerView({ userId, query }: Pick<LearnerProps, 'userId' | 'query'>) {
  const { api } = useViewer();
  const getSkillName = useSkillNames(api);
  const mastery = useLoad((signal) => api.mastery(userId, { signal }), [api, userId]);
  const isUnknown = mastery.error instanceof SkilltraceError && mastery.error.code === 'USER_NOT_FOUND';
  return (
    <>
      <h1>
        <bdi>{userId}</bdi>
      </h1>
      {isUnknown ? (
        <div class="note">
          <p>
            No answer of a learner with exactly this id was counted. Capital and small letters differ.{' '}
            <a href={buildHref('learner')}>See all learners</a>
          </p>
        </div>
      ) : (
        <Loaded load={mastery} subject="the learner">
          {({ skills }) => (
            <div class="stack">
              <LearnerSummary skills={skills} />
              <LearnerPanels {...{ userId, query, skills, getSkillName }} />
            </div>
          )}
        </Loaded>
      )}
    </>
  );
}

function LearnerPanels(learner: LearnerProps) {
  const { query, skills, getSkillName } = learner;
  const chosen = skills.find(({ skill_id }) => skill_id === query.skill);
  return (
    <>
      <Forecast {...learner} />
      <SkillsPanel {...learner} />
      {chosen !== undefined && <SkillDetail key={chosen.skill_id} {...learner} skill={chosen} />}
      {chosen === undefined && query.skill !== undefined && (
        <div class="note">
          <p>
            This learner has no answer on the skill <bdi>{getSkillName(query.skill)}</bdi>.
          </p>
        </div>
      )}
      <PacePanel {...learner} />
      <ConfidencePanel {...learner} />
    </>
  );
}

const minFading = 0.1;

function LearnerSummary({ skills }: { readonly skills: readonly LearnerSkill[] }) {
  const totals = sumAnswers(skills);
  const { total_attempts: answers, correct_attempts: right, last_attempt_at: last, plateaus } = totals;
  const masteredCount = skills.filter(({ mastered }) => mastered).length;
  const fadingCount = skills.filter(
    (skill) => skill.mastery_at_last_attempt - skill.mastery >= minFading,
  ).length;
  return (
    <>
      <p class="soft">
        {pluralize(answers, 'answer')} on {pluralize(skills.length, 'skill')}; the last one{' '}
        {last === null ? missingText : `${formatDayTime(last)} UTC, ${formatAge(countDaysSince(last))}`}. All
        days here are UTC days.
      </p>
      <ThinEvidenceNote answers={answers} />
      <Stats>
        <Stat
          label="Right answers"
          value={answers === 0 ? missingText : formatPercent(right / answers)}
          note={`${formatNumber(right)} of ${formatNumber(answers)}, since the first`}
        >
          The share of all counted answers that were right, over all skills and all time. Questions differ in
          difficulty: mastery and forecasts allow for that, this share does not.
        </Stat>
        <Stat
          label="Skills mastered"
          value={`${formatNumber(masteredCount)} of ${formatNumber(skills.length)}`}
          tone={masteredCount > 0 ? 'good' : undefined}
          note="as of now"
        >
          {masteryMeaning} Also, mastery over the recent answers has to average at least 80 %, after at least{' '}
          {minSkillAnswers} answers. One lucky run is not enough.
        </Stat>
        <Stat
          label="On a plateau"
          value={pluralize(plateaus.length, 'skill')}
          tone={plateaus.length > 0 ? 'alert' : undefined}
          note="no progress in recent answers"
        >
          After twelve answers or more the service is about 90 % sure, three answers in a row, that mastery
          rises by less than 2 points an answer, and the skill is not mastered. More of the same will help
          little: another explanation or easier questions may.
        </Stat>
        <Stat
          label="Fading"
          value={pluralize(fadingCount, 'skill')}
          tone={fadingCount > 0 ? 'alert' : undefined}
          note="lost 10 points or more by forgetting"
        >
          After a day without practice mastery starts to fall towards where a learner starts. How fast depends
          on the days on which the learner was right before. These skills lost at least 10 points since their
          last answer.
        </Stat>
      </Stats>
    </>
  );
}

const formatAge = (days: number): string =>
  days < 1 ? 'within the last day' : `${pluralize(days, 'day')} ago`;
