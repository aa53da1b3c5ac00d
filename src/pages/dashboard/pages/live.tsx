import { useState } from 'preact/hooks';
import type { LiveFigures } from '../../../client/types.js';
import { computeSum } from '../../../lists.js';
import { formatClock, formatDecimal, formatInteger, pluralize } from '../base/format.js';
import { useNow } from '../base/interval.js';
import type { Route } from '../base/route.js';
import { useViewer } from '../base/viewer.js';
import { Button } from '../parts/button.jsx';
import { ErrorNote, Loading } from '../parts/loaded.jsx';
import { QuerySelect } from '../parts/query-select.jsx';
import { Badge, Stat, Stats } from '../parts/stat.jsx';
import { LiveCharts } from './live/charts.jsx';
import { History } from './live/history.jsx';
import { formatUpState, ServiceTiles } from './live/service-tiles.jsx';
import { type LiveState, useLiveFigures, windowMs } from './live/use-live-figures.js';

/** Figures arrive each second. */
const staleMs = 5_000;

export function LivePage({ route: { query } }: { readonly route: Route }) {
  const live = useLiveFigures(useViewer().api);
  const ageMs = useNow() - live.receivedAt;
  const last = live.figures.at(-1);
  const [summary, setSummary] = useState('');
  return (
    <>
      <div class="row apart">
        <h1>Live</h1>
        <Controls live={live} last={last} ageMs={ageMs} onSummary={setSummary} />
      </div>
      <p role="status" class="soft summary">
        {summary}
      </p>
      {live.disconnection !== null && (
        <ErrorNote
          error={live.disconnection.error}
          retry={live.disconnection.waitMs === null ? undefined : live.reconnect}
        />
      )}
      {last === undefined ? (
        live.disconnection === null && <Loading subject="live metrics" />
      ) : (
        <LiveView
          live={live}
          last={last}
          period={query.period ?? 'live'}
          isStale={live.isPaused || ageMs > staleMs}
        />
      )}
    </>
  );
}

interface ControlsProps {
  readonly live: LiveState;
  readonly last: LiveFigures | undefined;
  readonly ageMs: number;
  readonly onSummary: (text: string) => void;
}

function Controls({ live, last, ageMs, onSummary }: ControlsProps) {
  const isStale = last !== undefined && !live.isPaused && ageMs > staleMs;
  const isBroken = live.disconnection !== null || isStale;
  return (
    <div class="row">
      <Badge tone={isBroken ? 'alert' : last === undefined || live.isPaused ? 'soft' : 'good'}>
        {isStale ? `Last update ${formatAge(ageMs)} ago` : describeStream(live, last)}
      </Badge>
      {last !== undefined && <Button onClick={() => onSummary(summarize(last))}>Show summary</Button>}
      <Button onClick={() => live.setPaused(!live.isPaused)}>{live.isPaused ? 'Resume' : 'Pause'}</Button>
    </div>
  );
}

const formatAge = (ms: number): string =>
  ms < 60_000 ? `${Math.floor(ms / 1000)} s` : `${Math.floor(ms / 60_000)} min`;

function describeStream({ disconnection, isPaused }: LiveState, last: LiveFigures | undefined): string {
  if (isPaused) return 'paused';
  if (disconnection === null) return last === undefined ? 'connecting' : `live, ${formatClock(last.at)}`;
  return disconnection.waitMs === null
    ? 'disconnected'
    : `disconnected, retry in ${Math.ceil(disconnection.waitMs / 1000)} s`;
}

const sumErrors = ({ errors }: LiveFigures): number => computeSum(Object.values(errors ?? {}));

/** For screen readers, on request: the figures change every second. */
function summarize(figures: LiveFigures): string {
  const { at, answers_per_second, latency_ms, outbox_length, parked_rows, redis_up, clickhouse_up } = figures;
  const errorRate = sumErrors(figures);
  return [
    `${formatClock(at)}: ${formatDecimal(1)(answers_per_second)} answers per second`,
    latency_ms === null
      ? 'no answers in the last 10 s'
      : `p99 latency ${formatDecimal(1)(latency_ms.p99)} ms`,
    errorRate === 0 ? 'no errors' : `${formatDecimal(1)(errorRate)} errors per second`,
    `${formatInteger(outbox_length)} answers in the outbox`,
    pluralize(parked_rows ?? 0, 'parked row'),
    `Redis ${formatUpState(redis_up)}, ClickHouse ${formatUpState(clickhouse_up)}.`,
  ].join(', ');
}

interface LiveViewProps {
  readonly live: LiveState;
  readonly last: LiveFigures;
  readonly period: string;
  readonly isStale: boolean;
}

const periods: Readonly<Record<number, string>> = { 1: 'last hour', 6: 'last 6 hours', 24: 'last 24 hours' };

function LiveView({ live: { figures }, last, period, isStale }: LiveViewProps) {
  const hours = Number(period);
  const isHistory = hours in periods;
  const errorRate = sumErrors(last);
  return (
    <div class={isStale ? 'stack stale' : 'stack'}>
      <Stats>
        <Stat label="Answers per second" value={formatDecimal(1)(last.answers_per_second)}>
          Answers of all tenants that were counted in the last second.
        </Stat>
        <Stat label="Requests per second" value={formatDecimal(1)(last.requests_per_second)}>
          All requests, including rejected requests.
        </Stat>
        <Stat
          label="p99 latency"
          value={last.latency_ms === null ? '–' : `${formatDecimal(1)(last.latency_ms.p99)} ms`}
          note={
            last.latency_ms === null
              ? 'no answers in 10 s'
              : `median ${formatDecimal(1)(last.latency_ms.p50)} ms`
          }
        >
          99 % of the requests with answers in the last 10 seconds took at most this time. Normal: below 50
          ms. If it rises, check the waiting requests and the CPU load of the machine.
        </Stat>
        <Stat
          label="Errors per second"
          value={formatDecimal(1)(errorRate)}
          note={errorRate === 0 ? 'none' : 'see the chart'}
          tone={errorRate === 0 ? undefined : 'alert'}
        >
          Responses with status 4xx or 5xx. Normal: none, or a few invalid requests (4xx). For 5xx, search the
          log for the request id.
        </Stat>
      </Stats>
      <ServiceTiles figures={last} />
      <div class="row">
        <QuerySelect
          label="Charts"
          parameter="period"
          value={isHistory ? hours : 'live'}
          options={[['live', 'last 5 minutes'], ...Object.entries(periods)]}
        />
      </div>
      {!isHistory && <LiveCharts figures={figures} windowMs={windowMs} stepMs={1000} />}
      <History key={period} hours={isHistory ? hours : 1} hasCharts={isHistory} isStale={isStale} />
      <p class="soft">
        The page does not load live figures while it is paused or hidden. History: means of{' '}
        {hours > 6 ? '15 minutes' : hours > 1 ? '5 minutes' : 'one minute'}.
      </p>
    </div>
  );
}
