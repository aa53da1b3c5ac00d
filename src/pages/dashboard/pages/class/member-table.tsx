import { describeChance } from '../../../../domain/classes/class-attention.js';
import { type Status, statusTexts } from '../../../../domain/classes/learner-status.js';
import { formatDay, formatDaysAgo, formatPercent, formatPercentRange } from '../../base/format.js';
import { buildHref } from '../../base/route.js';
import { LearnerLink } from '../../parts/learner-link.jsx';
import { type Column, createColumnBuilder, Table } from '../../parts/table.jsx';
import type { Member } from './load-class.js';
import { StatusBadge } from './status-badge.jsx';

const statusRank = Object.keys(statusTexts) as Status[];

const field = createColumnBuilder<Member>();
const columns: readonly Column<Member>[] = [
  field('Learner', 'name', { show: (member) => <LearnerLink {...member} /> }),
  field('Learner id', 'userId', { isForFile: true }),
  field('Status', ({ status }) => statusTexts[status], {
    about:
      'The goal, the last answer and the number of answers decide. The rules are above the table. Below: points below the goal, practice that the forecast assumes, weaker recent results, and skills on a plateau',
    show: ({ userId, status, reason }) => (
      <>
        <StatusBadge status={status} />
        <span class="sub">{reason}</span>
        {status === 'expired' && <SetGoalLink userId={userId} text="Set a new goal" />}
      </>
    ),
  }),
  field('Reason', 'reason', { isForFile: true }),
  field('Forecast', 'chance', {
    align: 'start',
    show: (member) => <Forecast {...member} />,
    about:
      'Chance of at least the target score on the goal date (in one year if no date is set). Below: total score in 30 days (400 to 1600), and its 80 % range',
  }),
  field('Goal', 'targetScore', { isForFile: true }),
  field('Goal date', 'targetDate', { isForFile: true }),
  field('Score now', 'currentTotal', { isForFile: true }),
  field('In 30 days', ({ prediction }) => prediction.predicted_total_in_30_days, { isForFile: true }),
  field('Low', ({ prediction }) => prediction.confidence_intervals.total.low, { isForFile: true }),
  field('High', ({ prediction }) => prediction.confidence_intervals.total.high, { isForFile: true }),
  field('Expected accuracy', ({ prediction }) => prediction.expected_accuracy.share, {
    about: 'Expected share of correct answers in the next 30 days, and its 80 % range',
    isLabelled: true,
    show: ({ prediction: { expected_accuracy: accuracy } }) => (
      <>
        {formatPercent(accuracy.share)}
        <span class="sub">{formatPercentRange(accuracy.low, accuracy.high)}</span>
      </>
    ),
  }),
  field('Accuracy low', ({ prediction }) => prediction.expected_accuracy.low, { isForFile: true }),
  field('Accuracy high', ({ prediction }) => prediction.expected_accuracy.high, { isForFile: true }),
  field('Last answer', ({ progress }) => progress.last_attempt_at, {
    ...{ isTime: true, isLabelled: true },
    format: (lastAnswerAt) => (
      <span class="nowrap" title={lastAnswerAt === null ? undefined : formatDaysAgo(lastAnswerAt)}>
        {formatDay(lastAnswerAt)}
      </span>
    ),
    about: 'Day of the last answer',
  }),
  field('Answers', 'answers', { isLabelled: true }),
  field('Correct', ({ progress, answers }) => (answers === 0 ? null : progress.correct_attempts / answers), {
    isForFile: true,
  }),
  field('Mastered', ({ progress }) => progress.mastered, {
    isLabelled: true,
    about: 'Number of mastered skills: mastery of at least 95 % and expected accuracy of at least 75 %',
  }),
  field('Plateaus', ({ plateaus }) => plateaus.length, { isForFile: true }),
];

function Forecast({ userId, chance, targetScore, targetDate, prediction }: Member) {
  const { predicted_total_in_30_days: total, confidence_intervals: within } = prediction;
  const due = targetDate === null ? 'within a year' : `by ${formatDay(targetDate)}`;
  return (
    <span class="forecast">
      {chance !== null && `${describeChance(chance)} to reach ${targetScore} ${due}`}
      {chance === null && targetScore !== null && `Goal was ${targetScore} ${due}`}
      {targetScore === null && <SetGoalLink userId={userId} text="Set a goal" />}
      <span class="sub">
        {total} in 30 days, probably {within.total.low} to {within.total.high}
      </span>
    </span>
  );
}

const SetGoalLink = ({ userId, text }: { readonly userId: string; readonly text: string }) => (
  <a class="sub" href={buildHref('learner', [userId])}>
    {text}
  </a>
);

/** Within a status, the lowest chance first, then learners without a goal by expected accuracy. */
const compareByUrgency = (a: Member, b: Member): number =>
  statusRank.indexOf(a.status) - statusRank.indexOf(b.status) ||
  (a.chance ?? 1) - (b.chance ?? 1) ||
  a.prediction.expected_accuracy.share - b.prediction.expected_accuracy.share;

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
