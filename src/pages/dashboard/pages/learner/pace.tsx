import * as Plot from '@observablehq/plot';
import { useMemo } from 'preact/hooks';
import type { Velocity } from '../../../../client/types.js';
import { computeDomain, shareAxis } from '../../../../lab/report/marks.js';
import { day, decimal, none, percent, plural, signed } from '../../base/format.js';
import { useLoad } from '../../base/load.js';
import { href } from '../../base/route.js';
import { useViewer } from '../../base/viewer.js';
import { Chart } from '../../parts/chart.jsx';
import { Choice } from '../../parts/choice.jsx';
import { Loaded } from '../../parts/loaded.jsx';
import { Panel, Stat, Stats } from '../../parts/stat.jsx';
import { type Column, fieldsOf } from '../../parts/table.jsx';
import type { LearnerProps } from './learner-props.js';

const spans = [7, 28, 90, 365];
const spanOptions = spans.map((span) => [span, `the last ${plural(span, 'day')}`] as const);

export function PacePanel({ userId, query, skills, nameOf }: LearnerProps) {
  const { api } = useViewer();
  const days = spans.find((span) => String(span) === query.span) ?? 28;
  const skillId = skills.find(({ skill_id }) => skill_id === query.pace)?.skill_id;
  const velocity = useLoad(
    (signal) => api.velocity(userId, { days, skill_id: skillId, signal }),
    [api, userId, days, skillId],
    true,
  );
  const named = skills.map(({ skill_id: id }) => [id, nameOf(id)] as const);
  return (
    <Panel title="Pace" about="How fast mastery moves, in percentage points, and what the days were like.">
      <div class="row choices">
        <Choice label="Over" name="span" value={days} options={spanOptions} />
        <Choice label="Of" name="pace" value={skillId ?? ''} options={[['', 'all skills'], ...named]} />
      </div>
      <Loaded of={velocity} what="the pace">
        {(of) => (
          <div class="stack">
            {of.series === null && (
              <p class="note alert">
                ClickHouse does not answer: what comes from it is a dash here. Momentum and plateaus are
                there.
              </p>
            )}
            <PaceTiles of={of} />
            <Plateaus userId={userId} query={query} of={of} nameOf={nameOf} />
            {of.series !== null && <Days series={of.series} days={of.days} isSkill={of.skill_id !== null} />}
          </div>
        )}
      </Loaded>
    </Panel>
  );
}

/** In percentage points. */
const rate = (value: number | null): string =>
  value === null ? none : signed(Number((100 * value).toFixed(2)));

const momentumTexts = {
  building: 'more than before',
  steady: 'about as before',
  fading: 'less than before',
} as const;

function PaceTiles({ of }: { readonly of: Velocity }) {
  const { momentum_label: label } = of;
  const isOpen =
    of.velocity_per_day_low !== null &&
    of.velocity_per_day_high !== null &&
    of.velocity_per_day_low <= 0 &&
    of.velocity_per_day_high >= 0;
  return (
    <Stats>
      <Stat
        label="Points a day"
        value={rate(of.velocity_per_day)}
        note={
          of.velocity_per_day_low === null
            ? of.series !== null && 'needs five days with answers'
            : `${rate(of.velocity_per_day_low)} to ${rate(of.velocity_per_day_high)}${isOpen ? ': may be none' : ''}`
        }
      >
        The median slope between all pairs of days with answers in the last {plural(of.days, 'day')}{' '}
        (Theil-Sen), which a few odd days do not move. The range is its approximate 90 % interval and rather
        too narrow; where it holds 0, it is not sure that anything moves. In a week:{' '}
        {rate(of.velocity_per_week)}.
      </Stat>
      <Stat label="Last 7 days" value={rate(of.velocity_7d)} note="points a day">
        The same over the last seven days alone: quick to tell, and unsure. A dash with fewer than five days
        with answers.
      </Stat>
      <Stat label="Acceleration" value={rate(of.acceleration)} note="7 days less 28 days">
        The pace of the last 7 days less that of the last 28: above 0 it speeds up.
      </Stat>
      <Stat
        label="Momentum"
        value={label ?? none}
        note={label === null ? 'not enough days yet' : `${rate(of.momentum)} points: ${momentumTexts[label]}`}
        look={label === 'fading' ? 'alert' : label === 'building' ? 'good' : undefined}
      >
        A quick moving average of mastery (half of it from the last 3 days) less a slow one (14 days), over
        all skills. Above 1 point it is building, below −1 fading. Idle days count: forgetting shows.
      </Stat>
      <Stat
        label="Answers a day"
        value={decimal(1)(of.answers_per_day)}
        note={
          of.active_days === null ? undefined : `active on ${of.active_days} of ${plural(of.days, 'day')}`
        }
      >
        Over the last {plural(of.days, 'day')}, idle ones included.
      </Stat>
      <Stat
        label="Right, 7 days"
        value={percent(of.accuracy_7d)}
        note={`28 days: ${percent(of.accuracy_28d)}`}
      >
        The share of answers that were right in the last 7 and 28 days; a dash where there were none.
      </Stat>
      {of.velocity_per_attempt !== null && (
        <Stat
          label="Points an answer"
          value={rate(of.velocity_per_attempt)}
          note="recent answers on this skill"
        >
          How much mastery of this skill rises with an answer, recent ones counting most.
        </Stat>
      )}
    </Stats>
  );
}

interface PlateausProps extends Omit<LearnerProps, 'skills'> {
  readonly of: Velocity;
}

const Plateaus = ({ userId, query, of, nameOf }: PlateausProps) => (
  <p>
    {of.plateaus.length === 0 ? 'No skill is on a plateau.' : 'On a plateau: '}
    {of.plateaus.map((id, i) => (
      <>
        {i > 0 && ', '}
        <a key={id} href={href('learner', [userId], { ...query, skill: id })}>
          <bdi>{nameOf(id)}</bdi>
        </a>
      </>
    ))}
  </p>
);

type SeriesDay = NonNullable<Velocity['series']>[number];

const field = fieldsOf<SeriesDay>();
const columns: readonly Column<SeriesDay>[] = [
  field('UTC day', 'date', { format: day }),
  field('Mastery', 'mastery', { format: percent, align: 'end' }),
  field('Answers', 'attempts'),
  field('Right', 'correct'),
  field('Wrong', ({ attempts, correct }) => attempts - correct),
];

const dayMs = 86_400_000;
const dayOf = ({ date }: SeriesDay): Date => new Date(date);

/** Covers all days until today, to show idle days. */
function spanAxis(days: number): Plot.ScaleOptions {
  const tomorrow = Math.floor(Date.now() / dayMs + 1) * dayMs;
  return { type: 'utc', label: 'UTC day', domain: [new Date(tomorrow - days * dayMs), new Date(tomorrow)] };
}

function masteryPlot(series: readonly SeriesDay[], days: number): Plot.PlotOptions {
  const known = series.filter(({ mastery }) => mastery !== null);
  const ys = known.map(({ mastery }) => mastery as number);
  return {
    x: spanAxis(days),
    y: shareAxis('mastery', ys.length === 0 ? [0, 1] : computeDomain(ys, [0, 1], 0.2)),
    marks: [
      Plot.line(known, { x: dayOf, y: 'mastery', stroke: 'var(--a)', strokeWidth: 2 }),
      Plot.dot(known, {
        ...{ x: dayOf, y: 'mastery', r: 3, fill: 'var(--a)', stroke: 'var(--panel)' },
        title: ({ date, mastery }: SeriesDay) => `${day(date)}: ${percent(mastery)}`,
      }),
    ],
  };
}

const answerSeries = { Right: 'c', Wrong: 'b' } as const;

function answersPlot(series: readonly SeriesDay[], days: number): Plot.PlotOptions {
  const bars = series.flatMap(({ date, attempts, correct }) => {
    const start = new Date(date);
    const place = { date, start, end: new Date(start.getTime() + dayMs) };
    return [
      { ...place, from: 0, to: correct, what: 'Right', count: correct },
      { ...place, from: correct, to: attempts, what: 'Wrong', count: attempts - correct },
    ];
  });
  return {
    x: spanAxis(days),
    y: { label: 'answers', grid: true },
    marks: [
      Plot.rect(
        bars.filter(({ count }) => count > 0),
        {
          ...{ x1: 'start', x2: 'end', y1: 'from', y2: 'to', fill: 'what', inset: 0.5 },
          title: ({ date, count, what }) => `${day(date)}: ${count} ${what.toLowerCase()}`,
        },
      ),
      Plot.ruleY([0], { stroke: 'var(--line)' }),
    ],
  };
}

interface DaysProps {
  readonly series: readonly SeriesDay[];
  readonly days: number;
  readonly isSkill: boolean;
}

function Days({ series, days, isSkill }: DaysProps) {
  const known = useMemo(() => series.filter(({ mastery }) => mastery !== null), [series]);
  const plots = useMemo(
    () => ({
      mastery: (rows: readonly SeriesDay[]) => masteryPlot(rows, days),
      answers: (rows: readonly SeriesDay[]) => answersPlot(rows, days),
    }),
    [days],
  );
  return (
    <div class="grid">
      <Chart
        title="Mastery at the end of each day with answers"
        about={isSkill ? 'Of this skill.' : 'The mean over skills with at least five answers.'}
        plot={plots.mastery}
        rows={known}
        columns={columns}
        height={230}
        empty="No day in this time has enough answers."
      />
      <Chart
        title="Answers a day"
        about="Right answers stand below, wrong ones on top of them."
        series={answerSeries}
        plot={plots.answers}
        rows={series}
        columns={columns}
        height={230}
        empty="No answers in this time."
      />
    </div>
  );
}
