import type { ComponentChildren } from 'preact';
import type { LiveFigures } from '../../../../client/types.js';
import { compact, decimal, none, percent, whole } from '../../base/format.js';
import { href } from '../../base/route.js';
import { Stat, Stats } from '../../parts/stat.jsx';

interface Tile {
  readonly label: string;
  readonly value: (figures: LiveFigures) => string;
  /** Null without a rule or a value. */
  readonly isFine: (figures: LiveFigures) => boolean | null;
  readonly note?: (figures: LiveFigures) => string;
  readonly about: ComponentChildren;
}

export const stateOf = (isUp: boolean | null): string => (isUp === null ? none : isUp ? 'up' : 'away');

const amount = (bytes: number): string =>
  bytes < 2 ** 30 ? `${compact(bytes / 2 ** 20)} MB` : `${compact(bytes / 2 ** 30)} GB`;

const memoryShare = ({ redis_memory: memory }: LiveFigures): number | null =>
  memory === null || memory.limit === null ? null : memory.used / memory.limit;

const atMost = (value: number | null, most: number): boolean | null =>
  value === null ? null : value <= most;

/** Warns before the service rejects answers, at 95 %. */
const fullMemory = 0.85;

const tiles: readonly Tile[] = [
  {
    label: 'Redis',
    value: ({ redis_up }) => stateOf(redis_up),
    isFine: ({ redis_up }) => redis_up,
    about: 'Normal: up. Without it nothing is counted: see its log, its disk and the network between.',
  },
  {
    label: 'ClickHouse',
    value: ({ clickhouse_up }) => stateOf(clickhouse_up),
    isFine: ({ clickhouse_up }) => clickhouse_up,
    about:
      'Normal: up. Away, answers are still counted and wait in the outbox; histories and statistics answer with 503. Start it again before the outbox is full.',
  },
  {
    label: 'Oldest answer on its way',
    value: ({ oldest_pending_seconds }) =>
      oldest_pending_seconds === null ? none : `${decimal(1)(oldest_pending_seconds)} s`,
    isFine: ({ oldest_pending_seconds }) => atMost(oldest_pending_seconds, 60),
    about:
      'How long the oldest counted answer has waited for ClickHouse: the lag of histories and statistics. Normal: a few seconds. Beyond 60 s ClickHouse is away or too slow, or the pipeline does not run: see the log for “drain failed”.',
  },
  {
    label: 'Outbox',
    value: ({ outbox_length }) => whole(outbox_length),
    isFine: ({ oldest_pending_seconds }) => atMost(oldest_pending_seconds, 60),
    about:
      'Answers that are counted and not in ClickHouse yet. Normal: what comes in a second or two. It grows while ClickHouse is away and is bounded by OUTBOX_MAX_ROWS, beyond which answers are refused.',
  },
  {
    label: 'Journal',
    value: ({ journal_length }) => whole(journal_length),
    isFine: () => null,
    about:
      'Goals, changes of catalogues and served forecasts that are not in ClickHouse yet. Normal: near 0, more for a moment. The same things hold it up as the outbox.',
  },
  {
    label: 'Parked rows',
    value: ({ parked_rows }) => whole(parked_rows),
    isFine: ({ parked_rows }) => atMost(parked_rows, 0),
    about: (
      <>
        Rows that ClickHouse refused for what they say; they are kept. Normal: 0. Look at the reason, mend the
        cause, then redrive them: <a href={href('operations', ['parked'])}>parked rows</a>.
      </>
    ),
  },
  {
    label: 'Waiting for a thread',
    value: ({ lanes_waiting }) => whole(lanes_waiting),
    isFine: ({ lanes_waiting }) => atMost(lanes_waiting, 1000),
    about:
      'Requests with answers in the lanes before the worker threads. Normal: few, and only for a moment. Hundreds that stay: more comes than the threads can do. Raise LANES, add API processes, or slow the sender down.',
  },
  {
    label: 'Connections',
    value: ({ connections_open }) => whole(connections_open),
    isFine: () => null,
    about:
      'Open connections of clients. Normal: as many as there are servers and pages that call, each with a few. At most 10,000 in a process, or fewer by the limit on open files.',
  },
  {
    label: 'Memory of Redis',
    value: ({ redis_memory }) => (redis_memory === null ? none : amount(redis_memory.used)),
    isFine: (figures) => atMost(memoryShare(figures), fullMemory),
    note: ({ redis_memory, ...figures }) =>
      redis_memory === null
        ? ''
        : redis_memory.limit === null
          ? 'no limit is set'
          : `${percent(memoryShare({ redis_memory, ...figures }))} of ${amount(redis_memory.limit)}`,
    about:
      'Normal: below 85 % of its limit. Answers are refused while less than a twentieth is free, and are taken again by themselves. Raise maxmemory, or bring ClickHouse back so that the outbox empties.',
  },
  {
    label: 'API processes',
    value: ({ processes }) => whole(processes),
    isFine: ({ processes }) => processes > 0,
    about:
      'That answer on this machine. Normal: API_PROCESSES, or 1. One that is missing is started again by itself.',
  },
];

function noteOf({ isFine, note }: Tile, figures: LiveFigures): string {
  const judged = isFine(figures);
  const word = judged === null ? '' : judged ? 'normal' : 'look into it';
  return [word, note?.(figures) ?? ''].filter((text) => text !== '').join(', ');
}

export const Tiles = ({ figures }: { figures: LiveFigures }) => (
  <Stats>
    {tiles.map((tile) => {
      const isFine = tile.isFine(figures);
      return (
        <Stat
          key={tile.label}
          label={tile.label}
          value={tile.value(figures)}
          note={noteOf(tile, figures) || ' '}
          look={isFine === false ? 'alert' : undefined}
        >
          {tile.about}
        </Stat>
      );
    })}
  </Stats>
);
