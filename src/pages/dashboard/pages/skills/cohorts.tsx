import * as Plot from '@observablehq/plot';
import type { SkillStatistics } from '../../../../client/types.js';
import { day, percent, plural } from '../../base/format.js';
import { Chart } from '../../parts/chart.jsx';
import { type Column, fieldsOf } from '../../parts/table.jsx';
import { bandColors, masteryBands, Scale } from './bands.jsx';

type Week = SkillStatistics['cohorts'][number];

const field = fieldsOf<Week>();
const columns: readonly Column<Week>[] = [
  field('Began in the week of', 'cohort', { format: day }),
  field('Weeks since', 'week'),
  field('Learners', 'learners'),
  field('Answers', 'answers'),
  field('Right', 'accuracy', { format: percent }),
  field('Mastery', 'mean_mastery', { format: percent }),
];

export const Cohorts = ({ rows }: { rows: readonly Week[] }) => (
  <Chart
    {...{ title: 'Cohorts', rows, columns, plot: weeks, legend: <Scale of={masteryBands} /> }}
    about="A row holds the learners who began in the same week, a column what they reached so many weeks later: the mean mastery of those who practised the skill in that week. A row that turns blue earlier learns faster."
    height={90 + 26 * new Set(rows.map(({ cohort }) => cohort)).size}
    empty="Nobody began within the last 26 weeks."
  />
);

const weeks = (rows: readonly Week[]): Plot.PlotOptions => ({
  ...{ marginLeft: 88, marginTop: 40, marginBottom: 12, padding: 0.06 },
  x: {
    type: 'band',
    domain: weeksOf(rows),
    ticks: weeksOf(rows).filter((week) => week % 4 === 0),
    label: 'Weeks since',
    axis: 'top',
  },
  y: {
    type: 'band',
    domain: [...new Set(rows.map(({ cohort }) => cohort))].sort(),
    label: '',
    tickFormat: day,
  },
  color: {
    type: 'threshold',
    domain: masteryBands.slice(1).map(([from]) => from),
    range: bandColors,
    legend: false,
  },
  marks: [
    Plot.cell(rows, {
      ...{ x: 'week', y: 'cohort', fill: 'mean_mastery', rx: 2 },
      title: ({ cohort, week, learners, answers, accuracy, mean_mastery }: Week) =>
        `${day(cohort)}, week ${week}: mastery ${percent(mean_mastery)}; ${plural(learners, 'learner')}, ${plural(answers, 'answer')}, ${percent(accuracy)} right`,
    }),
  ],
});

const weeksOf = (rows: readonly Week[]): number[] => [
  ...Array(Math.max(...rows.map(({ week }) => week)) + 1).keys(),
];
