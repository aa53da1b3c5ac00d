import { statusTexts } from '../../../../domain/classes/learner-status.js';
import {
  countDaysSince,
  formatDay,
  formatPercent,
  formatPercentRange,
  missingText,
} from '../../base/format.js';
import { buildHref } from '../../base/route.js';
import { type Column, createColumnBuilder, Table } from '../../parts/table.jsx';
import type { Member } from './load-class.js';
import { StatusBadge } from './status-badge.jsx';

const field = createColumnBuilder<Member>();
const columns: readonly Column<Member>[] = [
  field('Learner', 'userId', {
    format: (userId) => (
      <a class="name" href={buildHref('learner', [userId])}>
        <bdi>{userId}</bdi>
      </a>
    ),
  }),
  field('Status', ({ status }) => statusTexts[status], {
    about:
      'Depends on the goal and the chance to reach it, the last answer, and the number of answers. The rules are above the table',
    show: ({ status }) => <StatusBadge status={status} />,
  }),
  field('Reason', 'reason', {
    show: ({ userId, status, reason }) => (
      <span class="why">
        {reason ?? missingText}
        {status === 'expired' && <SetGoalLink userId={userId} text="Set a new goal" />}
      </span>
    ),
    about:
      'Points below the goal, practice that the forecast assumes, weaker recent results, and skills on a plateau',
  }),
  field('Chance', 'chance', {
    format: formatPercent,
    about:
      'Probability of reaching at least the target score on the goal date (in one year if no date is set). Empty without a goal',
  }),
  field('Expected accuracy', ({ prediction }) => prediction.expected_accuracy.share, {
    about: 'Expected share of correct answers in the next 30 days, and its 80 % range',
    show: ({ prediction: { expected_accuracy: accuracy } }) => (
      <>
        {formatPercent(accuracy.share)}
        <span class="sub">{formatPercentRange(accuracy.low, accuracy.high)}</span>
      </>
    ),
  }),
  field('Accuracy low', ({ prediction }) => prediction.expected_accuracy.low, { isForFile: true }),
  field('Accuracy high', ({ prediction }) => prediction.expected_accuracy.high, { isForFile: true }),
  field('Goal', 'targetScore', {
    show: ({ userId, targetScore, targetDate }) => (
      <>
        {targetScore ?? <SetGoalLink userId={userId} text="Set a goal" />}
        {targetDate !== null && <span class="sub">by {formatDay(targetDate)}</span>}
      </>
    ),
    about: 'Target score that was set for the learner',
    align: 'end',
  }),
  field('Goal set', ({ targetScore }) => targetScore !== null, { isForFile: true }),
  field('Goal date', 'targetDate', { isForFile: true }),
  field('Score now', 'currentTotal', {
    format: (currentTotal) => currentTotal,
    about: 'Current estimate of the total score, 400 to 1600',
  }),
  field('In 30 days', ({ prediction }) => prediction.predicted_total_in_30_days, {
    about:
      'Forecast of the total score, and its 80 % range. The page of the learner explains what would narrow the range',
    show: ({ prediction: { predicted_total_in_30_days: total, confidence_intervals: within } }) => (
      <>
        {total}
        <span class="sub">
          {within.total.low} to {within.total.high}
        </span>
      </>
    ),
  }),
  field('Low', ({ prediction }) => prediction.confidence_intervals.total.low, { isForFile: true }),
  field('High', ({ prediction }) => prediction.confidence_intervals.total.high, { isForFile: true }),
  field('Last answer', 'lastAnswerAt', {
    format: (lastAnswerAt) => (
      <span class="nowrap" title={lastAnswerAt === null ? undefined : formatAge(lastAnswerAt)}>
        {formatDay(lastAnswerAt)}
      </span>
    ),
    about: 'UTC day of the last answer',
  }),
  field('Answers', 'answers'),
  field('Correct', ({ progress, answers }) => (answers === 0 ? null : progress.correct_attempts / answers), {
    isForFile: true,
  }),
  field('Mastered', ({ progress }) => progress.mastered, {
    about: 'Number of mastered skills: mastery of at least 95 % and expected accuracy of at least 75 %',
  }),
  field('Plateaus', ({ plateaus }) => plateaus.length, { isForFile: true }),
];

const formatAge = (time: string): string => `${countDaysSince(time)} days ago`;

const SetGoalLink = ({ userId, text }: { readonly userId: string; readonly text: string }) => (
  <a class="sub" href={buildHref('learner', [userId])}>
    {text}
  </a>
);

/** Within a status, the lowest chance first, then learners without a goal by expected accuracy. */
function compareByUrgency(a: Member, b: Member): number {
  const order = Object.keys(statusTexts);
  return (
    order.indexOf(a.status) - order.indexOf(b.status) ||
    (a.chance ?? 1) - (b.chance ?? 1) ||
    a.prediction.expected_accuracy.share - b.prediction.expected_accuracy.share
  );
}

export const MemberTable = ({ members }: { members: readonly Member[] }) => (
  <section class="panel members">
    <h2>Learners</h2>
    <Table
      {...{
        name: 'Learners of the class',
        columns,
        rows: members.toSorted(compareByUrgency),
        filter: true,
        orderParameter: 'sort',
      }}
      rowKey={({ userId }) => userId}
      empty="No learners with this status."
    />
  </section>
);
