/** Mastery needs only Redis. Every other part of the page can fail alone. */
import { formatNumber, formatPercent, missingText, pluralize } from '../../base/format.js';
import { useLoad } from '../../base/load.js';
import { buildHref } from '../../base/route.js';
import { useSkillNames } from '../../base/skill-names.js';
import { useViewer } from '../../base/viewer.js';
import { Loaded } from '../../parts/loaded.jsx';
import { masteryMeaning } from '../../parts/mastery-meaning.jsx';
import { Stat, Stats } from '../../parts/stat.jsx';
import { ConfidencePanel } from './confidence-panel.jsx';
import { minSkillAnswers } from './evidence.jsx';
import { Forecast } from './forecast.jsx';
import { Headline } from './headline.jsx';
import { LastAnswers } from './last-answers.jsx';
import { isUnknownLearner, LearnerHead } from './learner-head.jsx';
import { type LearnerProps, summarizeAnswers } from './learner-props.js';
import { PacePanel } from './pace-panel.jsx';
import { SkillDetail } from './skill-detail.jsx';
import { SkillExtremes } from './skill-extremes.jsx';
import { SkillsPanel } from './skills-panel.jsx';
import './learner.css';

export function LearnerView({ userId, query }: Pick<LearnerProps, 'userId' | 'query'>) {
  const { api } = useViewer();
  const getSkillName = useSkillNames(api);
  const mastery = useLoad((signal) => api.mastery(userId, { signal }), [api, userId]);
  return (
    <>
      <LearnerHead userId={userId} />
      {isUnknownLearner(mastery.error) ? (
        <div class="note">
          <p>
            No answers recorded for this learner id. Ids are case-sensitive.{' '}
            <a href={buildHref('learner')}>Show all learners</a>
          </p>
        </div>
      ) : (
        <Loaded load={mastery} subject="the learner">
          {(mastery) => {
            const { skills } = mastery;
            const learner = { userId, query, skills, totals: summarizeAnswers(mastery), getSkillName };
            return <LearnerPanels {...learner} />;
          }}
        </Loaded>
      )}
    </>
  );
}

function LearnerPanels(learner: LearnerProps) {
  const { userId, query, skills, getSkillName } = learner;
  const { api } = useViewer();
  const outlook = useLoad((signal) => api.predictions(userId, { signal }), [api, userId], true);
  const chosen = skills.find(({ skill_id }) => skill_id === query.skill);
  return (
    <div class="stack learner">
      <div class="report">
        <Loaded load={outlook} subject="the forecast">
          {(prediction) => <Headline {...learner} prediction={prediction} />}
        </Loaded>
      </div>
      <div class="grid report">
        <LastAnswers {...learner} />
        <SkillExtremes {...learner} />
      </div>
      <LearnerSummary {...learner} />
      <SkillsPanel {...learner} />
      {chosen !== undefined && <SkillDetail key={chosen.skill_id} {...learner} skill={chosen} />}
      {chosen === undefined && query.skill !== undefined && (
        <div class="note">
          <p>
            This learner has no answers on the skill <bdi>{getSkillName(query.skill)}</bdi>.
          </p>
        </div>
      )}
      <Forecast {...learner} onGoalChange={outlook.reload} />
      <PacePanel {...learner} />
      <ConfidencePanel {...learner} />
    </div>
  );
}

const minFading = 0.1;

function LearnerSummary({ skills, totals, getSkillName }: LearnerProps) {
  const { total_attempts: answers, correct_attempts: right, plateaus } = totals;
  const masteredCount = skills.filter(({ mastered }) => mastered).length;
  const fadingCount = skills.filter(
    (skill) => skill.mastery_at_last_attempt - skill.mastery >= minFading,
  ).length;
  return (
    <Stats>
      <Stat
        label="Correct, all time"
        value={answers === 0 ? missingText : formatPercent(right / answers)}
        note={`${formatNumber(right)} of ${formatNumber(answers)}`}
      >
        Share of correct answers over all skills and all time. Unlike mastery and forecasts, this share
        ignores the difficulty of questions.
      </Stat>
      <Stat
        label="Skills mastered"
        value={`${formatNumber(masteredCount)} of ${formatNumber(skills.length)}`}
        tone={masteredCount > 0 ? 'good' : undefined}
        note="now"
      >
        {masteryMeaning} In addition, the skill needs at least {minSkillAnswers} answers and an average
        mastery of at least 80 % over recent answers.
      </Stat>
      <Stat
        label="On a plateau"
        value={pluralize(plateaus.length, 'skill')}
        tone={plateaus.length > 0 ? 'alert' : undefined}
        note={plateaus.map(getSkillName).join(', ') || 'no progress in recent answers'}
      >
        Skills with at least 12 answers that are not mastered and make almost no progress: for three answers
        in a row, mastery rises by less than 2 points per answer with a probability of about 90 %. Try another
        explanation or easier questions.
      </Stat>
      <Stat
        label="Fading"
        value={pluralize(fadingCount, 'skill')}
        tone={fadingCount > 0 ? 'alert' : undefined}
        note="forgot 10 points or more"
      >
        After one day without practice, mastery starts to fall towards its initial value. More days with
        correct answers make the decline slower. These skills lost at least 10 points since the last answer.
      </Stat>
    </Stats>
  );
}
