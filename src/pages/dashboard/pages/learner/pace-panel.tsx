import * as Plot from '@observablehq/plot';
import { useMemo } from 'preact/hooks';
import type { Velocity } from '../../../../client/types.js';
import { dayMs } from '../../../../domain/base/common.js';
import { computeDomain, formatCountTick, shareAxis } from '../../../../lab/report/marks.js';
import {
  formatDay,
  formatDecimal,
  formatMastery,
  formatPercent,
  formatSigned,
  missingText,
  pluralize,
} from '../../base/format.js';
import { useLoad } from '../../base/load.js';
import { computeToday } from '../../base/school-days.js';
import { useViewer } from '../../base/viewer.js';
import { Chart } from '../../parts/chart.jsx';
import { Loaded } from '../../parts/loaded.jsx';
import { PeriodSelect, parseDays } from '../../parts/period-select.jsx';
import { QuerySelect } from '../../parts/query-select.jsx';
import { Panel, Stat, Stats } from '../../parts/stat.jsx';
import { type Column, createColumnBuilder } from '../../parts/table.jsx';
import type { LearnerProps } from './learner-props.js';

export function PacePanel({ userId, query, skills, getSkillName }: LearnerProps) {
  const { api } = useViewer();
  const days = parseDays(query.span);
  const skillId = skills.find(({ skill_id }) => skill_id === query.pace)?.skill_id;
  const velocityLoad = useLoad(
    (signal) => api.velocity(userId, { days, skill_id: skillId, signal }),
    [api, userId, days, skillId],
    true,
  );
  const named = skills.map(({ skill_id: id }) => [id, getSkillName(id)] as const);
  return (
    <Panel title="Learning velocity" about="Change of mastery in percentage points, and practice per day.">
      <div class="row choices">
        <PeriodSelect parameter="span" days={days} />
        <QuerySelect
          label="Skill"
          parameter="pace"
          value={skillId ?? ''}
          options={[['', 'all skills'], ...named]}
        />
      </div>
      <Loaded load={velocityLoad} subject="the learning velocity">
        {(velocity) => (
          <div class="stack">
            {velocity.series === null && (
              <p class="note alert">
                ClickHouse is unavailable. Values from ClickHouse show a dash. Momentum and plateaus are
                available.
              </p>
            )}
            <PaceTiles velocity={velocity} />
            {velocity.series !== null && (
              <DailyCharts
                series={velocity.series}
                days={velocity.days}
                isSingleSkill={velocity.skill_id !== null}
              />
            )}
          </div>
        )}
      </Loaded>
    </Panel>
  );
}

/** In percentage points. */
const formatRate = (value: number | null): string =>
  value === null ? missingText : formatSigned(Number((100 * value).toFixed(2)));

const momentumTexts = {
  building: 'rising',
  steady: 'stable',
  fading: 'falling',
} as const;

function PaceTiles({ velocity }: { readonly velocity: Velocity }) {
  const { momentum_label: label } = velocity;
  const isInconclusive =
    velocity.velocity_per_day_low !== null &&
    velocity.velocity_per_day_high !== null &&
    velocity.velocity_per_day_low <= 0 &&
    velocity.velocity_per_day_high >= 0;
  return (
    <Stats>
      <Stat
        label="Points per day"
        value={formatRate(velocity.velocity_per_day)}
        note={
          velocity.velocity_per_day_low === null
            ? velocity.series !== null && 'needs 5 days with answers'
            : `${formatRate(velocity.velocity_per_day_low)} to ${formatRate(velocity.velocity_per_day_high)}${isInconclusive ? ', not significant' : ''}`
        }
      >
        Median slope between all pairs of days with answers in the last {pluralize(velocity.days, 'day')}{' '}
        (Theil-Sen), which is robust against outliers. The range is an approximate 90 % interval and somewhat
        too narrow. If it includes 0, the change is not significant. Points per week:{' '}
        {formatRate(velocity.velocity_per_week)}.
      </Stat>
      <Stat label="Last 7 days" value={formatRate(velocity.velocity_7d)} note="points per day">
        The same slope over the last 7 days. It reacts faster and is less certain. A dash means fewer than 5
        days with answers.
      </Stat>
      <Stat label="Acceleration" value={formatRate(velocity.acceleration)} note="7 days minus 28 days">
        Velocity of the last 7 days minus velocity of the last 28 days. Above 0, learning accelerates.
      </Stat>
      <Stat
        label="Momentum"
        value={label ?? missingText}
        note={
          label === null
            ? 'needs more days'
            : `${formatRate(velocity.momentum)} points: ${momentumTexts[label]}`
        }
        tone={label === 'fading' ? 'alert' : label === 'building' ? 'good' : undefined}
      >
        Fast moving average of mastery (half-life 3 days) minus a slow one (half-life 14 days), over all
        skills. Above 1 point: building. Below −1 point: fading. Idle days count, so forgetting is included.
      </Stat>
      <Stat
        label={`Answers per day, last ${pluralize(velocity.days, 'day')}`}
        value={formatDecimal(1)(velocity.answers_per_day)}
        note={
          velocity.active_days === null
            ? undefined
            : `active on ${velocity.active_days} of ${pluralize(velocity.days, 'day')}`
        }
      >
        Average over these days, including today and idle days. The forecast uses the last 14 days.
      </Stat>
      <Stat
        label="Correct, last 7 days"
        value={formatPercent(velocity.accuracy_7d)}
        note={`last 28 days: ${formatPercent(velocity.accuracy_28d)}`}
      >
        Share of correct answers in the last 7 and 28 days. A dash means no answers.
      </Stat>
      {velocity.velocity_per_attempt !== null && (
        <Stat
          label="Points per answer"
          value={formatRate(velocity.velocity_per_attempt)}
          note="recent answers on this skill"
        >
          Change of mastery per answer on this skill. Recent answers have more weight.
        </Stat>
      )}
    </Stats>
  );
}

type SeriesDay = NonNullable<Velocity['series']>[number];

const field = createColumnBuilder<SeriesDay>();
const columns: readonly Column<SeriesDay>[] = [
  field('Day', 'date', { format: formatDay }),
  field('Mastery', 'mastery', { format: formatMastery, align: 'end' }),
  field('Answers', 'attempts'),
  field('Correct', 'correct'),
  field('Incorrect', ({ attempts, correct }) => attempts - correct),
];

const toDate = ({ date }: SeriesDay): Date => new Date(date);

/** Covers all days until today, to show idle days. */
function buildSpanAxis(days: number): Plot.ScaleOptions {
  const tomorrow = (computeToday() + 1) * dayMs;
  return { type: 'utc', label: 'day', domain: [new Date(tomorrow - days * dayMs), new Date(tomorrow)] };
}

function plotMastery(series: readonly SeriesDay[], days: number): Plot.PlotOptions {
  const known = series.filter(({ mastery }) => mastery !== null);
  const ys = known.map(({ mastery }) => mastery as number);
  return {
    x: buildSpanAxis(days),
    y: shareAxis('mastery', ys.length === 0 ? [0, 1] : computeDomain(ys, [0, 1], 0.2)),
    marks: [
      Plot.line(known, { x: toDate, y: 'mastery', stroke: 'var(--a)', strokeWidth: 2 }),
      Plot.dot(known, {
        ...{ x: toDate, y: 'mastery', r: 3, fill: 'var(--a)', stroke: 'var(--panel)' },
        title: ({ date, mastery }: SeriesDay) => `${formatDay(date)}: ${formatMastery(mastery)}`,
      }),
    ],
  };
}

const answerSeries = { Correct: 'c', Incorrect: 'b' } as const;

function plotAnswers(series: readonly SeriesDay[], days: number): Plot.PlotOptions {
  const bars = series.flatMap(({ date, attempts, correct }) => {
    const start = new Date(date);
    const place = { date, start, end: new Date(start.getTime() + dayMs) };
    return [
      { ...place, from: 0, to: correct, what: 'Correct', count: correct },
      { ...place, from: correct, to: attempts, what: 'Incorrect', count: attempts - correct },
    ];
  });
  return {
    x: buildSpanAxis(days),
    y: { label: 'answers', grid: true, tickFormat: formatCountTick },
    marks: [
      Plot.rect(
        bars.filter(({ count }) => count > 0),
        {
          ...{ x1: 'start', x2: 'end', y1: 'from', y2: 'to', fill: 'what', inset: 0.5 },
          title: ({ date, count, what }) => `${formatDay(date)}: ${count} ${what.toLowerCase()}`,
        },
      ),
      Plot.ruleY([0], { stroke: 'var(--line)' }),
    ],
  };
}

interface DailyChartsProps {
  readonly series: readonly SeriesDay[];
  readonly days: number;
  readonly isSingleSkill: boolean;
}

function DailyCharts({ series, days, isSingleSkill }: DailyChartsProps) {
  const known = useMemo(() => series.filter(({ mastery }) => mastery !== null), [series]);
  const plots = useMemo(
    () => ({
      mastery: (rows: readonly SeriesDay[]) => plotMastery(rows, days),
      answers: (rows: readonly SeriesDay[]) => plotAnswers(rows, days),
    }),
    [days],
  );
  return (
    <div class="grid">
      <Chart
        title="Mastery at the end of each active day"
        about={isSingleSkill ? 'Mastery of this skill.' : 'Mean over skills with at least 5 answers.'}
        plot={plots.mastery}
        rows={known}
        columns={columns}
        height={230}
        empty="No day in this period has enough answers."
      />
      <Chart
        title="Answers on each day"
        about="Correct answers at the bottom, incorrect answers on top."
        series={answerSeries}
        plot={plots.answers}
        rows={series}
        columns={columns}
        height={230}
        empty="No answers in this period."
      />
    </div>
  );
}
