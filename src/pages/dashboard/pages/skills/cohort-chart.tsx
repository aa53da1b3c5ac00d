import * as Plot from '@observablehq/plot';
import type { SkillStatistics } from '../../../../client/types.js';
import { formatDay, formatMastery, formatPercent, pluralize } from '../../base/format.js';
import { Chart } from '../../parts/chart.jsx';
import { type Column, createColumnBuilder } from '../../parts/table.jsx';
import { BandLegend, bandColors, masteryBands } from './bands.jsx';

type CohortWeek = SkillStatistics['cohorts'][number];

const field = createColumnBuilder<CohortWeek>();
const columns: readonly Column<CohortWeek>[] = [
  field('First week', 'cohort', { format: formatDay }),
  field('Weeks since start', 'week'),
  field('Learners', 'learners'),
  field('Answers', 'answers'),
  field('Correct', 'accuracy', { format: formatPercent }),
  field('Mastery', 'mean_mastery', { format: formatMastery }),
];

export const CohortChart = ({ rows }: { rows: readonly CohortWeek[] }) => (
  <Chart
    {...{ title: 'Cohorts', rows, columns, plot: plotCohorts, legend: <BandLegend bands={masteryBands} /> }}
    about="Each row shows the learners who started in the same week. Each cell shows the mean mastery of those who practised the skill that many weeks later. Rows that turn blue earlier learn faster."
    height={90 + 26 * new Set(rows.map(({ cohort }) => cohort)).size}
    empty="No learners started in the last 26 weeks."
  />
);

const plotCohorts = (rows: readonly CohortWeek[]): Plot.PlotOptions => ({
  ...{ marginLeft: 88, marginTop: 40, marginBottom: 12, padding: 0.06 },
  x: {
    type: 'band',
    domain: listWeeks(rows),
    ticks: listWeeks(rows).filter((week) => week % 4 === 0),
    label: 'Weeks since start',
    axis: 'top',
  },
  y: {
    type: 'band',
    domain: [...new Set(rows.map(({ cohort }) => cohort))].sort(),
    label: '',
    tickFormat: formatDay,
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
      title: ({ cohort, week, learners, answers, accuracy, mean_mastery }: CohortWeek) =>
        `${formatDay(cohort)}, week ${week}: mastery ${formatMastery(mean_mastery)}; ${pluralize(learners, 'learner')}, ${pluralize(answers, 'answer')}, ${formatPercent(accuracy)} correct`,
    }),
  ],
});

const listWeeks = (rows: readonly CohortWeek[]): number[] => [
  ...Array(Math.max(...rows.map(({ week }) => week)) + 1).keys(),
];
