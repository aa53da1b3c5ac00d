import * as Plot from '@observablehq/plot';
import { useCallback, useMemo, useState } from 'preact/hooks';
import type { SkillAnswerPage } from '../../../../client/types.js';
import { formatCountTick, shareAxis } from '../../../../lab/report/marks.js';
import {
  formatDayTime,
  formatDecimal,
  formatMastery,
  formatPercent,
  formatPercentRange,
  formatSkillAccuracy,
  missingText,
  pluralize,
} from '../../base/format.js';
import { useLoad } from '../../base/load.js';
import { updateQuery } from '../../base/route.js';
import { toLocalDate } from '../../base/school-days.js';
import type { SkillNameLookup } from '../../base/skill-names.js';
import { useViewer } from '../../base/viewer.js';
import { Button } from '../../parts/button.jsx';
import { Chart } from '../../parts/chart.jsx';
import { Loaded } from '../../parts/loaded.jsx';
import { type Column, createColumnBuilder } from '../../parts/table.jsx';
import { formatTogether } from './explanation.jsx';

const severalSkillsMeaning =
  'A correct answer is evidence for every skill of the question. An incorrect answer lowers most the skill that was probably missing.';

type Answer = SkillAnswerPage['answers'][number];
export type HistoryAxis = 'answer' | 'time';

interface NumberedAnswer extends Answer {
  /** Position in all answers on the skill, from 1. */
  readonly number: number;
  /** Names of the other skills of the question. */
  readonly others: readonly string[];
}

/** @param page newest first @returns oldest first */
const numberAnswers = (page: SkillAnswerPage, getSkillName: SkillNameLookup): NumberedAnswer[] =>
  page.answers
    .map((answer, i) => ({
      ...answer,
      number: page.total_attempts - (page.pending_attempts ?? 0) - i,
      others: answer.skill_ids.filter((id) => id !== page.skill_id).map(getSkillName),
    }))
    .reverse();

interface HistoryProps {
  readonly userId: string;
  readonly skillId: string;
  readonly axis: HistoryAxis;
  readonly currentMastery: number;
  readonly getSkillName: SkillNameLookup;
}

const pageSize = 200;

export function SkillHistory({ userId, skillId, ...chart }: HistoryProps) {
  const { api } = useViewer();
  const [limit, setLimit] = useState(pageSize);
  const pageLoad = useLoad(
    (signal) => api.skillAnswers(userId, skillId, { limit, signal }),
    [api, userId, skillId, limit],
    true,
  );
  return (
    <Loaded load={pageLoad} subject="the answers">
      {(page) => (
        <div class="stack">
          <HistoryChart page={page} {...chart} />
          {page.next_cursor !== null && limit < 1000 && (
            <Button onClick={() => setLimit(1000)}>Show up to 1,000 answers</Button>
          )}
        </div>
      )}
    </Loaded>
  );
}

interface HistoryChartProps extends Omit<HistoryProps, 'userId' | 'skillId'> {
  readonly page: SkillAnswerPage;
}

function HistoryChart({ page, axis, currentMastery, getSkillName }: HistoryChartProps) {
  const { pending_attempts } = page;
  const rows = useMemo(() => numberAnswers(page, getSkillName), [page, getSkillName]);
  const together = rows.filter(({ others }) => others.length > 0);
  const plot = useCallback(
    (rows: readonly NumberedAnswer[]) => plotHistory(rows, axis, currentMastery),
    [axis, currentMastery],
  );
  return (
    <>
      <fieldset class="row toggle">
        <legend class="hidden">Horizontal axis</legend>
        {(['answer', 'time'] as const).map((each) => (
          <label key={each}>
            <input
              type="radio"
              name="by"
              checked={axis === each}
              onChange={() => updateQuery({ by: each })}
            />{' '}
            by {each}
          </label>
        ))}
      </fieldset>
      <Chart
        title={`Mastery after each of the last ${pluralize(rows.length, 'answer')}`}
        legend={<HistoryLegend />}
        plot={plot}
        rows={rows}
        columns={together.length > 0 ? columns : columns.filter((column) => column !== othersColumn)}
        height={300}
        table={{ ...answersTable, isOpen: rows.length <= maxOpenRows }}
        empty="No stored answers on this skill yet. New answers appear after a few seconds."
      />
      {together.length > 0 && (
        <p class="soft">
          {pluralize(together.length, 'answer')} together with{' '}
          <bdi>{[...new Set(together.flatMap(({ others }) => others))].join(', ')}</bdi>.{' '}
          {severalSkillsMeaning}
        </p>
      )}
      {pending_attempts !== null && pending_attempts > 0 && (
        <p class="soft">{pluralize(pending_attempts, 'newer answer')} will appear in a few seconds.</p>
      )}
    </>
  );
}

const answersTable = {
  name: 'Answers',
  summary: 'Show answers',
  sortedBy: ['No.', true],
} as const;

/** A longer table is initially closed. */
const maxOpenRows = 20;

const HistoryLegend = () => (
  <ul class="legend">
    <li class="right">● correct answer</li>
    <li class="wrong">✕ incorrect answer</li>
    <li>┄ forgetting between answers</li>
    <li>┈ 95 %, minimum for a mastered skill</li>
  </ul>
);

const formatResult = (isCorrect: boolean): string => (isCorrect ? 'correct' : 'incorrect');

const field = createColumnBuilder<NumberedAnswer>();
const othersColumn = field('Together with', ({ others }) => others.join(', '), {
  show: ({ others }) => <bdi class="name">{others.join(', ')}</bdi>,
  about: 'Other skills that the question needs',
});
const columns: readonly Column<NumberedAnswer>[] = [
  field('No.', 'number', { about: 'Number of the answer on this skill' }),
  field('Time', 'occurred_at', { isTime: true }),
  field('Item', 'item_id', {
    format: (item_id) => (item_id === null ? missingText : <bdi class="name">{item_id}</bdi>),
  }),
  othersColumn,
  field('Answer', ({ is_correct }) => formatResult(is_correct), {
    show: ({ is_correct }) => (
      <span class={is_correct ? 'right' : 'wrong'}>
        <span aria-hidden="true">{is_correct ? '● ' : '✕ '}</span>
        {formatResult(is_correct)}
      </span>
    ),
  }),
  field('Expected accuracy', 'expected_accuracy', {
    show: ({ expected_accuracy, expected_low, expected_high }) => (
      <>
        {formatSkillAccuracy(expected_accuracy)}
        {expected_low !== null && <span class="sub">{formatPercentRange(expected_low, expected_high)}</span>}
      </>
    ),
    about:
      'Probability of a correct answer on a question of average difficulty, before the answer, with its 80 % range',
  }),
  field('Predicted', 'p_correct', {
    format: formatPercent,
    about: 'Probability of a correct answer on this question, predicted before the answer',
  }),
  field('Seconds', 'time_spent_seconds', { align: 'end' }),
  field('Confidence', 'confidence_score', { align: 'end', about: 'Reported confidence, 1 to 5' }),
  field('Difficulty', 'question_difficulty', {
    format: formatDecimal(1),
    align: 'end',
    about: 'Difficulty as reported by the platform, -3 (easy) to 3 (hard)',
  }),
  field('Before', 'mastery_before', {
    format: formatMastery,
    about: 'Mastery before the answer, after forgetting',
  }),
  field('After', 'mastery_after', { format: formatMastery, about: 'Mastery after the answer' }),
  field('Plateau', 'plateau_detected'),
];

interface Segment {
  readonly x1: number | Date;
  readonly x2: number | Date;
  readonly y1: number;
  readonly y2: number;
}

function plotHistory(
  rows: readonly NumberedAnswer[],
  axis: HistoryAxis,
  currentMastery: number,
): Plot.PlotOptions {
  const x = (row: Pick<NumberedAnswer, 'number' | 'occurred_at'>): number | Date =>
    axis === 'answer' ? row.number : toLocalDate(row.occurred_at);
  const forgotten = rows.slice(1).map((row, i): Segment => {
    const previous = rows[i] as NumberedAnswer;
    return { x1: x(previous), x2: x(row), y1: previous.mastery_after, y2: row.mastery_before };
  });
  const last = rows.at(-1);
  const since: Segment[] =
    last === undefined
      ? []
      : [
          {
            x1: x(last),
            x2: axis === 'time' ? toLocalDate(new Date().toISOString()) : last.number + 1,
            y1: last.mastery_after,
            y2: currentMastery,
          },
        ];
  const learned = rows.map((row) => ({
    x1: x(row),
    x2: x(row),
    y1: row.mastery_before,
    y2: row.mastery_after,
  }));
  const segment = { x1: 'x1', x2: 'x2', y1: 'y1', y2: 'y2' };
  const title = (row: NumberedAnswer): string =>
    `${row.number}. ${formatResult(row.is_correct)}, ${formatDayTime(row.occurred_at)}: ${formatMastery(row.mastery_before)} to ${formatMastery(row.mastery_after)}, predicted ${formatPercent(row.p_correct)}${row.item_id === null ? '' : `, ${row.item_id}`}${formatTogether(row.others)}`;
  const [right, wrong] = [rows.filter((row) => row.is_correct), rows.filter((row) => !row.is_correct)];
  return {
    x:
      axis === 'answer'
        ? { label: 'answer on the skill', tickFormat: formatCountTick }
        : { type: 'utc', label: 'day' },
    y: shareAxis('mastery'),
    marks: [
      Plot.ruleY([0.95], { stroke: 'var(--soft)', strokeDasharray: '2 4' }),
      Plot.link([...forgotten, ...since], { ...segment, stroke: 'var(--soft)', strokeDasharray: '4 3' }),
      Plot.link(learned, { ...segment, stroke: 'var(--a)', strokeWidth: 1.5, strokeOpacity: 0.6 }),
      Plot.dot(right, { x, y: 'mastery_after', symbol: 'circle', r: 4, fill: 'var(--c)', title }),
      Plot.dot(wrong, {
        x,
        y: 'mastery_after',
        symbol: 'times',
        r: 4.5,
        stroke: 'var(--b)',
        strokeWidth: 2,
        title,
      }),
      ...(last === undefined
        ? []
        : [
            Plot.text([since[0] as Segment], {
              ...{ x: 'x2', y: 'y2', text: () => `now ${formatMastery(currentMastery)}` },
              ...{ textAnchor: 'end', dy: -10, fill: 'var(--text)', stroke: 'var(--panel)', strokeWidth: 5 },
            }),
          ]),
    ],
  };
}
