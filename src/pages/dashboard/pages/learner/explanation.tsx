import * as Plot from '@observablehq/plot';
import { useMemo } from 'preact/hooks';
import type { SkillMastery } from '../../../../client/types.js';
import { formatCountTick, shareAxis } from '../../../../lab/report/marks.js';
import {
  formatDayTime,
  formatDecimal,
  formatFinePoints,
  formatMastery,
  formatPercent,
  formatPoints,
  formatSigned,
  formatSkillAccuracy,
  pluralize,
} from '../../base/format.js';
import { Chart } from '../../parts/chart.jsx';
import { type Column, createColumnBuilder, Table } from '../../parts/table.jsx';
import type { LearnerProps } from './learner-props.js';

type Explanation = NonNullable<SkillMastery['explanation']>;
type Step = NonNullable<Explanation['steps']>[number] & {
  /** Names of the other skills of the question. */
  readonly others: readonly string[];
};

const partColors = { forgetting: 'd', evidence: 'a', learning: 'c' } as const;
type Part = keyof typeof partColors;

export interface ExplanationProps {
  readonly explanation: Explanation;
}

export function MasterySteps({
  explanation: { steps: newestFirst, note },
  getSkillName,
}: ExplanationProps & Pick<LearnerProps, 'getSkillName'>) {
  const steps = useMemo(
    () =>
      (newestFirst ?? [])
        .map((step): Step => ({ ...step, others: (step.other_skills ?? []).map(getSkillName) }))
        .sort((a, b) => a.learner_seq - b.learner_seq),
    [newestFirst, getSkillName],
  );
  const haveOthers = steps.some(({ others }) => others.length > 0);
  return (
    <>
      {note !== null && <p class="note">{note}.</p>}
      {newestFirst !== null && (
        <Chart
          title={`Mastery changes by cause: last ${pluralize(steps.length, 'answer')}`}
          about="Each answer has three bars: forgetting since the previous answer, evidence from the result (up if correct, down if incorrect), and learning through practice."
          series={partColors}
          plot={plotWaterfall}
          rows={steps}
          columns={haveOthers ? [...columns, othersColumn] : columns}
          height={280}
          empty="No stored answers yet."
        />
      )}
    </>
  );
}

interface Bar {
  readonly part: Part;
  readonly x1: number;
  readonly x2: number;
  readonly y1: number;
  readonly y2: number;
  readonly note: string;
}

/** Each known part takes about a third of the answer's width. */
function buildBars(step: Step, i: number): Bar[] {
  const from = {
    forgetting: step.mastery_before_forgetting,
    evidence: step.mastery_before,
    learning: step.evidence === null ? null : step.mastery_before + step.evidence,
  };
  return (Object.keys(partColors) as Part[]).flatMap((part, k): Bar[] => {
    const [start, change] = [from[part], step[part]];
    if (start === null || change === null) return [];
    const x1 = i + 0.6 + k * 0.27;
    const note = `${part} ${formatPoints(change)} points: ${step.is_correct ? 'correct' : 'incorrect'}, ${formatDayTime(step.occurred_at)}${formatTogether(step.others)}`;
    return [{ part, x1, x2: x1 + 0.25, y1: start, y2: start + change, note }];
  });
}

function plotWaterfall(steps: readonly Step[]): Plot.PlotOptions {
  return {
    x: {
      label: 'answer, oldest first',
      domain: [0.5, steps.length + 0.5],
      tickFormat: formatCountTick,
      ticks: Math.min(steps.length, 12),
    },
    y: shareAxis('mastery'),
    marks: [
      Plot.rect(steps.flatMap(buildBars), {
        ...{ x1: 'x1', x2: 'x2', y1: 'y1', y2: 'y2', title: 'note' },
        ...{ fill: 'part', stroke: 'part', strokeWidth: 1 },
      }),
      Plot.text(steps, {
        x: (_, i) => i + 1,
        y: 0,
        dy: -6,
        text: ({ is_correct }: Step) => (is_correct ? '●' : '✕'),
        fill: ({ is_correct }: Step) => (is_correct ? 'var(--c)' : 'var(--b)'),
      }),
    ],
  };
}

const field = createColumnBuilder<Step>();
const createChangeColumn = (title: string, part: Part, about: string): Column<Step> =>
  field(title, part, { format: formatFinePoints, align: 'end', about });
const columns: readonly Column<Step>[] = [
  field('Time', 'occurred_at', { isTime: true }),
  field('Answer', ({ is_correct }) => (is_correct ? 'correct' : 'incorrect')),
  field('Before', 'mastery_before_forgetting', {
    format: formatMastery,
    align: 'end',
    about: 'Mastery after the previous answer',
  }),
  createChangeColumn('Forgetting', 'forgetting', 'Percentage points lost since the previous answer'),
  createChangeColumn('Evidence', 'evidence', 'Percentage points from the result of the answer'),
  createChangeColumn('Learning', 'learning', 'Percentage points from practice'),
  field('After', 'mastery_after', { format: formatMastery }),
  field('Predicted', 'p_correct', { format: formatPercent }),
];

const othersColumn = field('Together with', ({ others }) => others.join(', '));

type Term = Explanation['terms'][number];

const termField = createColumnBuilder<Term>();
const termColumns: readonly Column<Term>[] = [
  termField('Factor', 'text'),
  termField('Log-odds', 'logits', {
    format: (logits) => formatSigned(Number(logits.toFixed(2))),
    about: 'Positive values raise the expected accuracy, negative values lower it',
  }),
];

export const ExpectedTerms = ({
  explanation: { p_correct, log_odds, recent_change, terms },
}: ExplanationProps) => (
  <section class="inner">
    <h3>Why the expected accuracy is {formatSkillAccuracy(p_correct)}</h3>
    <p class="soft">
      The factors add up to log-odds of {formatDecimal(2)(log_odds)}, which correspond to{' '}
      {formatSkillAccuracy(p_correct)}.
    </p>
    {recent_change !== null && <p>{recent_change}</p>}
    <Table
      name="Factors of the expected accuracy"
      columns={termColumns}
      rows={terms}
      rowKey={({ name }) => name}
    />
  </section>
);

interface NextAnswerProps extends ExplanationProps {
  readonly mastery: number;
}

export const NextAnswer = ({ mastery, explanation: { next } }: NextAnswerProps) => (
  <section class="inner">
    <h3>Effect of the next answer on mastery</h3>
    <dl>
      <dt>
        <span aria-hidden="true">● </span>If correct
      </dt>
      <dd>
        {formatMastery(mastery)} → {formatMastery(next.if_correct.mastery)} (
        {formatPoints(next.if_correct.change)} points)
      </dd>
      <dt>
        <span aria-hidden="true">✕ </span>If incorrect
      </dt>
      <dd>
        {formatMastery(mastery)} → {formatMastery(next.if_wrong.mastery)} (
        {formatPoints(next.if_wrong.change)} points)
      </dd>
    </dl>
  </section>
);

/** @param others names of the other skills of a question */
export const formatTogether = (others: readonly string[]): string =>
  others.length === 0 ? '' : `, together with ${others.join(', ')}`;
