import type { ComponentChildren } from 'preact';
import type { LiveFigures } from '../../../../client/types.js';
import {
  formatCompact,
  formatDecimal,
  formatInteger,
  formatPercent,
  missingText,
} from '../../base/format.js';
import { buildHref } from '../../base/route.js';
import { Stat, Stats } from '../../parts/stat.jsx';

interface Tile {
  readonly label: string;
  readonly value: (figures: LiveFigures) => string;
  /** Null without a rule or a value. */
  readonly isNormal: (figures: LiveFigures) => boolean | null;
  readonly note?: (figures: LiveFigures) => string;
  readonly about: ComponentChildren;
}

export const formatUpState = (isUp: boolean | null): string =>
  isUp === null ? missingText : isUp ? 'up' : 'away';

const formatBytes = (bytes: number): string =>
  bytes < 2 ** 30 ? `${formatCompact(bytes / 2 ** 20)} MB` : `${formatCompact(bytes / 2 ** 30)} GB`;

const computeMemoryShare = ({ redis_memory: memory }: LiveFigures): number | null =>
  memory === null || memory.limit === null ? null : memory.used / memory.limit;

const isAtMost = (value: number | null, most: number): boolean | null =>
  value === null ? null : value <= most;

/** Warns early: the service rejects answers above 95 %. */
const maxMemoryShare = 0.85;

const tileDefinitions: readonly Tile[] = [
  {
    label: 'Redis',
    value: ({ redis_up }) => formatUpState(redis_up),
    isNormal: ({ redis_up }) => redis_up,
    about: 'Normal: up. Without it nothing is counted: see its log, its disk and the network between.',
  },
  {
    label: 'ClickHouse',
    value: ({ clickhouse_up }) => formatUpState(clickhouse_up),
    isNormal: ({ clickhouse_up }) => clickhouse_up,
    about:
      'Normal: up. Away, answers are still counted and wait in the outbox; histories and statistics answer with 503. Start it again before the outbox is full.',
  },
  {
    label: 'Oldest answer on its way',
    value: ({ oldest_pending_seconds }) =>
      oldest_pending_seconds === null ? missingText : `${formatDecimal(1)(oldest_pending_seconds)} s`,
    isNormal: ({ oldest_pending_seconds }) => isAtMost(oldest_pending_seconds, 60),
    about:
      'How long the oldest counted answer has waited for ClickHouse: the lag of histories and statistics. Normal: a few seconds. Beyond 60 s ClickHouse is away or too slow, or the pipeline does not run: see the log for “drain failed”.',
  },
  {
    label: 'Outbox',
    value: ({ outbox_length }) => formatInteger(outbox_length),
    isNormal: ({ oldest_pending_seconds }) => isAtMost(oldest_pending_seconds, 60),
    about:
      'Answers that are counted and not in ClickHouse yet. Normal: what comes in a second or two. It grows while ClickHouse is away and is bounded by OUTBOX_MAX_ROWS, beyond which answers are refused.',
  },
  {
    label: 'Journal',
    value: ({ journal_length }) => formatInteger(journal_length),
    isNormal: () => null,
    about:
      'Goals, changes of catalogues and served forecasts that are not in ClickHouse yet. Normal: near 0, more for a moment. The same things hold it up as the outbox.',
  },
  {
    label: 'Parked rows',
    value: ({ parked_rows }) => formatInteger(parked_rows),
    isNormal: ({ parked_rows }) => isAtMost(parked_rows, 0),
    about: (
      <>
        Rows that ClickHouse refused for what they say; they are kept. Normal: 0. Look at the reason, mend the
        cause, then redrive them: <a href={buildHref('operations', ['parked'])}>parked rows</a>.
      </>
    ),
  },
  {
    label: 'Waiting for a thread',
    value: ({ lanes_waiting }) => formatInteger(lanes_waiting),
    isNormal: ({ lanes_waiting }) => isAtMost(lanes_waiting, 1000),
    about:
      'Requests with answers in the lanes before the worker threads. Normal: few, and only for a moment. Hundreds that stay: more comes than the threads can do. Raise LANES, add API processes, or slow the sender down.',
  },
  {
    label: 'Connections',
    value: ({ connections_open }) => formatInteger(connections_open),
    isNormal: () => null,
    about:
      'Open connections of clients. Normal: as many as there are servers and pages that call, each with a few. At most 10,000 in a process, or fewer by the limit on open files.',
  },
  {
    label: 'Memory of Redis',
    value: ({ redis_memory }) => (redis_memory === null ? missingText : formatBytes(redis_memory.used)),
    isNormal: (figures) => isAtMost(computeMemoryShare(figures), maxMemoryShare),
    note: ({ redis_memory, ...figures }) =>
      redis_memory === null
        ? ''
        : redis_memory.limit === null
          ? 'no limit is set'
          : `${formatPercent(computeMemoryShare({ redis_memory, ...figures }))} of ${formatBytes(redis_memory.limit)}`,
    about:
      'Normal: below 85 % of its limit. Answers are refused while less than a twentieth is free, and are taken again by themselves. Raise maxmemory, or bring ClickHouse back so that the outbox empties.',
  },
  {
    label: 'API processes',
    value: ({ processes }) => formatInteger(processes),
    isNormal: ({ processes }) => processes > 0,
    about:
      'That answer on this machine. Normal: API_PROCESSES, or 1. One that is missing is started again by itself.',
  },
];

function formatNote({ isNormal, note }: Tile, figures: LiveFigures): string {
  const verdict = isNormal(figures);
  const word = verdict === null ? '' : verdict ? 'normal' : 'look into it';
  return [word, note?.(figures) ?? ''].filter((text) => text !== '').join(', ');
}

export const ServiceTiles = ({ figures }: { figures: LiveFigures }) => (
  <Stats>
    {tileDefinitions.map((tile) => {
      const isNormal = tile.isNormal(figures);
      return (
        <Stat
          key={tile.label}
          label={tile.label}
          value={tile.value(figures)}
          note={formatNote(tile, figures) || ' '}
          tone={isNormal === false ? 'alert' : undefined}
        >
          {tile.about}
        </Stat>
      );
    })}
  </Stats>
);
