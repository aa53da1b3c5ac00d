import { countDaysSince, formatDay, formatPercent, missingText } from '../../base/format.js';
import { buildHref } from '../../base/route.js';
import { type Column, createColumnBuilder, Table } from '../../parts/table.jsx';
import type { Member } from './load-class.js';
import { statusTexts } from './status.js';
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
      'Depends on the last answer, the number of answers, and the forecast compared with the goal. The rules are above the table',
    show: ({ status }) => <StatusBadge status={status} />,
  }),
  field('Reason', 'reason', {
    format: (reason) => (reason === null ? missingText : <span class="why">{reason}</span>),
    about: 'Points below the goal, practice that the forecast assumes, and skills on a plateau',
  }),
  field('Score now', 'currentTotal', {
    format: (currentTotal) => currentTotal,
    about: 'Current estimate of the total score, 400 to 1600',
  }),
  field('In 30 days', ({ prediction }) => prediction.predicted_total_in_30_days, {
    about: 'Forecast of the total score, and its 80 % interval',
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
  field('Goal', 'targetScore', {
    show: ({ targetScore, prediction: { goal_tracking: goal } }) => (
      <>
        {targetScore}
        {!goal.is_set && <span class="sub">default</span>}
        {goal.target_date !== null && <span class="sub">by {formatDay(goal.target_date)}</span>}
      </>
    ),
    about: 'Target score that was set for the learner, or a default target',
  }),
  field('Goal set', ({ prediction }) => prediction.goal_tracking.is_set, { isForFile: true }),
  field('Goal date', 'targetDate', { isForFile: true }),
  field('Chance', ({ prediction }) => prediction.goal_tracking.goal_probability, {
    format: formatPercent,
    about:
      'Probability of reaching at least the target score on the goal date (in one year if no date is set)',
  }),
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
    format: formatPercent,
    about: 'Share of correct answers',
  }),
  field('Mastered', ({ progress }) => progress.mastered, {
    about: 'Number of mastered skills: mastery of at least 95 % and expected accuracy of at least 75 %',
  }),
  field('Plateaus', ({ plateaus }) => plateaus.length, {
    show: ({ plateaus }) => <span title={plateaus.join(', ')}>{plateaus.length}</span>,
    about: 'Number of skills in which practice no longer raises mastery. The page of the learner lists them',
  }),
];

const formatAge = (time: string): string => `${countDaysSince(time)} days ago`;

function compareByUrgency(a: Member, b: Member): number {
  const order = Object.keys(statusTexts);
  const chance = ({ prediction }: Member): number => prediction.goal_tracking.goal_probability;
  return order.indexOf(a.status) - order.indexOf(b.status) || chance(a) - chance(b);
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
