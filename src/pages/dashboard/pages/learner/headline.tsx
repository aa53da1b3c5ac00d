import type { Prediction } from '../../../../client/types.js';
import {
  formatDay,
  formatDaysAgo,
  formatPercent,
  formatPercentRange,
  missingText,
  pluralize,
} from '../../base/format.js';
import { buildStatusInput } from '../class/status-input.js';
import { AdviceText, findNextStep } from './advice.jsx';
import { ThinEvidenceNote } from './evidence.jsx';
import { GoalChance } from './goal-panel.jsx';
import type { LearnerProps } from './learner-props.js';

interface HeadlineProps extends LearnerProps {
  /** For 30 days, with 80 % ranges, as on the Class page. */
  readonly prediction: Prediction;
}

/** The answers to "how is this learner doing?" and "what next?". */
export function Headline({ prediction, ...learner }: HeadlineProps) {
  const { skills, totals, getSkillName } = learner;
  const { share, low, high } = prediction.expected_accuracy;
  const { total_attempts: answers, last_attempt_at: last } = totals;
  const nextStep = findNextStep(prediction);
  return (
    <section class="panel headline" aria-label="Summary">
      <p>
        <strong class="stat-value">{formatPercent(share)}</strong> expected accuracy: in the next{' '}
        {pluralize(prediction.forecast_days, 'day')}, about {Math.round(100 * share)} of 100 answers should be
        correct, probably {formatPercentRange(low, high)}.
      </p>
      <p>
        <strong>Next step:</strong>{' '}
        {nextStep === undefined ? (
          (prediction.recommendations_reason ?? 'No recommendations.')
        ) : (
          <AdviceText {...learner} {...nextStep} />
        )}
      </p>
      <GoalChance
        goal={prediction.goal_tracking}
        statusInput={buildStatusInput(totals, prediction, getSkillName)}
      />
      <ThinEvidenceNote answers={answers} />
      <p class="soft">
        {pluralize(answers, 'answer')} on {pluralize(skills.length, 'skill')}. Last answer:{' '}
        {last === null ? missingText : `${formatDay(last)}, ${formatDaysAgo(last)}`}.{' '}
        <span class="print-only">Report of {formatDay(new Date().toISOString())}.</span>
      </p>
    </section>
  );
}
