import { useState } from 'preact/hooks';
import type { LiveFigures } from '../../../client/types.js';
import { computeSum } from '../../../lists.js';
import { decimal, plural, whole } from '../base/format.js';
import { useViewer } from '../base/viewer.js';
import { Button } from '../parts/button.jsx';
import { ErrorNote, Loading } from '../parts/loaded.jsx';
import { Badge, Stat, Stats } from '../parts/stat.jsx';
import { ErrorChart, LatencyChart, RateChart } from './live/charts.jsx';
import { stateOf, Tiles } from './live/tiles.jsx';
import { type Live, useLive } from './live/use-live.js';

export function LivePage() {
  const live = useLive(useViewer().api);
  const last = live.figures.at(-1);
  const [told, tell] = useState('');
  return (
    <>
      <div class="row apart">
        <h1>Live</h1>
        <Controls live={live} last={last} onSum={tell} />
      </div>
      <p role="status" class="soft told">
        {told}
      </p>
      {live.lost !== null && (
        <ErrorNote error={live.lost.error} retry={live.lost.waitMs === null ? undefined : live.again} />
      )}
      {last === undefined ? (
        live.lost === null && <Loading what="live figures" />
      ) : (
        <Figures live={live} last={last} />
      )}
    </>
  );
}

interface ControlsProps {
  readonly live: Live;
  readonly last: LiveFigures | undefined;
  readonly onSum: (text: string) => void;
}

function Controls({ live, last, onSum }: ControlsProps) {
  return (
    <div class="row">
      <Badge look={live.lost !== null ? 'alert' : last === undefined || live.isPaused ? 'soft' : 'good'}>
        {streamState(live, last)}
      </Badge>
      {last !== undefined && <Button onClick={() => onSum(summaryOf(last))}>Sum up</Button>}
      <Button onClick={() => live.setPaused(!live.isPaused)}>{live.isPaused ? 'Go on' : 'Pause'}</Button>
    </div>
  );
}

function streamState({ lost, isPaused }: Live, last: LiveFigures | undefined): string {
  if (isPaused) return 'paused';
  if (lost === null) return last === undefined ? 'connecting' : `live, ${last.at.slice(11, 19)} UTC`;
  return lost.waitMs === null ? 'ended' : `lost, tried again in ${Math.ceil(lost.waitMs / 1000)} s`;
}

const errorsOf = ({ errors }: LiveFigures): number => computeSum(Object.values(errors ?? {}));

/** For screen readers, on request: the figures change every second. */
function summaryOf(figures: LiveFigures): string {
  const { at, answers_per_second, latency_ms, outbox_length, parked_rows, redis_up, clickhouse_up } = figures;
  const failed = errorsOf(figures);
  return [
    `At ${at.slice(11, 19)} UTC: ${decimal(1)(answers_per_second)} answers a second`,
    latency_ms === null ? 'none in the last ten seconds' : `99 % within ${decimal(1)(latency_ms.p99)} ms`,
    failed === 0 ? 'no errors' : `${decimal(1)(failed)} errors a second`,
    `${whole(outbox_length)} in the outbox`,
    plural(parked_rows ?? 0, 'parked row'),
    `Redis ${stateOf(redis_up)}, ClickHouse ${stateOf(clickhouse_up)}.`,
  ].join(', ');
}

function Figures({ live: { figures }, last }: { live: Live; last: LiveFigures }) {
  const failed = errorsOf(last);
  return (
    <>
      <Stats>
        <Stat label="Answers a second" value={decimal(1)(last.answers_per_second)}>
          Answers that were counted in the last second, of all tenants. A simulated quiz, or a class at work,
          shows here at once.
        </Stat>
        <Stat label="Requests a second" value={decimal(1)(last.requests_per_second)}>
          Of any kind, those that were refused included.
        </Stat>
        <Stat
          label="99 % of answers within"
          value={last.latency_ms === null ? '–' : `${decimal(1)(last.latency_ms.p99)} ms`}
          note={
            last.latency_ms === null
              ? 'no answers in 10 s'
              : `half within ${decimal(1)(last.latency_ms.p50)} ms`
          }
        >
          Of requests with answers in the last ten seconds. Normal: below 50 ms. More, and rising: look at
          what waits for a thread, and at the machine's processors.
        </Stat>
        <Stat
          label="Errors a second"
          value={decimal(1)(failed)}
          note={failed === 0 ? 'none' : 'see the chart'}
          look={failed === 0 ? undefined : 'alert'}
        >
          Requests that were answered with 4xx or 5xx. Normal: none, or a few that callers got wrong. 5xx are
          the service's: the log has each under its request id.
        </Stat>
      </Stats>
      <Tiles figures={last} />
      <div class="grid thirds" aria-live="off">
        <RateChart figures={figures} />
        <LatencyChart figures={figures} />
        <ErrorChart figures={figures} />
      </div>
      <p class="soft">
        The last five minutes, kept in this page only; nothing is asked for while it is paused or out of
        sight. Times are UTC.
      </p>
    </>
  );
}
