import { day, daysSince, none, percent } from '../../base/format.js';
import { href } from '../../base/route.js';
import { type Column, fieldsOf, Table } from '../../parts/table.jsx';
import type { Member } from './read.js';
import { statuses } from './status.js';
import { StatusBadge } from './status-badge.jsx';

const field = fieldsOf<Member>();
const columns: readonly Column<Member>[] = [
  field('Learner', 'userId', {
    format: (userId) => (
      <a class="name" href={href('learner', [userId])}>
        <bdi>{userId}</bdi>
      </a>
    ),
  }),
  {
    title: 'Status',
    about:
      'By the last answer, the number of answers, and the forecast against the goal; the rule stands above',
    value: ({ status }) => statuses[status],
    show: ({ status }) => <StatusBadge status={status} />,
  },
  field('Why', 'reason', {
    format: (reason) => (reason === null ? none : <span class="why">{reason}</span>),
    about:
      'How far the score now is from the goal, the practice a day that the forecast assumes, and where practice no longer helps',
  }),
  field('Total now', 'currentTotal', {
    format: (currentTotal) => currentTotal,
    about: 'Total score that the model sees now, 400 to 1600',
  }),
  {
    title: 'In 30 days',
    about: 'Forecast of the total score, and its 80 % interval',
    value: ({ prediction }) => prediction.predicted_total_in_30_days,
    show: ({ prediction: { predicted_total_in_30_days: total, confidence_intervals: within } }) => (
      <>
        {total}
        <span class="sub">
          {within.total.low} to {within.total.high}
        </span>
      </>
    ),
  },
  {
    title: 'Low',
    isForFile: true,
    value: ({ prediction }) => prediction.confidence_intervals.total.low,
  },
  {
    title: 'High',
    isForFile: true,
    value: ({ prediction }) => prediction.confidence_intervals.total.high,
  },
  field('Goal', 'targetScore', {
    show: ({ targetScore, prediction: { goal_tracking: goal } }) => (
      <>
        {targetScore}
        {!goal.is_set && <span class="sub">default</span>}
        {goal.target_date !== null && <span class="sub">by {day(goal.target_date)}</span>}
      </>
    ),
    about: "The learner's own target, or the default where none is set",
  }),
  {
    title: 'Goal is set',
    isForFile: true,
    value: ({ prediction }) => prediction.goal_tracking.is_set,
  },
  {
    title: 'Goal date',
    isForFile: true,
    value: ({ prediction }) => prediction.goal_tracking.target_date,
  },
  {
    title: 'Chance',
    about: 'Probability of standing at or above the goal at its date, without a date in a year',
    value: ({ prediction }) => prediction.goal_tracking.goal_probability,
    show: ({ prediction }) => percent(prediction.goal_tracking.goal_probability),
  },
  field('Last answer', 'lastAnswerAt', {
    format: (lastAnswerAt) => (
      <span class="nowrap" title={lastAnswerAt === null ? undefined : agoText(lastAnswerAt)}>
        {day(lastAnswerAt)}
      </span>
    ),
    about: 'UTC day of the last answer',
  }),
  field('Answers', 'answers'),
  {
    title: 'Right',
    about: 'Share of right answers, of all',
    value: ({ progress: { correct_attempts: right }, answers }) => (answers === 0 ? null : right / answers),
    show: ({ progress: { correct_attempts: right }, answers }) =>
      answers === 0 ? none : percent(right / answers),
  },
  {
    title: 'Mastered',
    about:
      'Skills that the learner has mastered: mastery of 95 % or more, and at least 75 % of the next answers expected to be right',
    value: ({ progress }) => progress.mastered,
  },
  {
    title: 'Plateaus',
    about: 'Skills that practice no longer raises; the learner’s page names them',
    value: ({ progress }) => progress.plateaus.length,
    show: ({ plateaus }) => <span title={plateaus.join(', ')}>{plateaus.length}</span>,
  },
];

const agoText = (time: string): string => `${daysSince(time)} days ago`;

/** Who needs somebody first comes first: by status, then by the chance of the goal. */
function byNeed(a: Member, b: Member): number {
  const order = Object.keys(statuses);
  const chance = ({ prediction }: Member): number => prediction.goal_tracking.goal_probability;
  return order.indexOf(a.status) - order.indexOf(b.status) || chance(a) - chance(b);
}

export const Members = ({ members }: { members: readonly Member[] }) => (
  <section class="panel members">
    <h2>Learners</h2>
    <Table
      {...{
        name: 'Learners of the class',
        columns,
        rows: members.toSorted(byNeed),
        filter: true,
        orderedIn: 'sort',
      }}
      rowKey={({ userId }) => userId}
      empty="Nobody has this status."
    />
  </section>
);
