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
  isUp === null ? missingText : isUp ? 'up' : 'down';

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
    about:
      'Normal: up. While Redis is down, answers are rejected with 503. Check its log, its disk and the network.',
  },
  {
    label: 'ClickHouse',
    value: ({ clickhouse_up }) => formatUpState(clickhouse_up),
    isNormal: ({ clickhouse_up }) => clickhouse_up,
    about:
      'Normal: up. While ClickHouse is down, answers are counted and wait in the outbox. Histories and statistics return 503. Restart ClickHouse before the outbox is full.',
  },
  {
    label: 'Storage lag',
    value: ({ oldest_pending_seconds }) =>
      oldest_pending_seconds === null ? missingText : `${formatDecimal(1)(oldest_pending_seconds)} s`,
    isNormal: ({ oldest_pending_seconds }) => isAtMost(oldest_pending_seconds, 60),
    about:
      'Age of the oldest counted answer that is not in ClickHouse yet. Histories and statistics lag by this time. Normal: a few seconds. Above 60 s, ClickHouse is down or too slow, or no pipeline process is running. Check the log of the pipeline.',
  },
  {
    label: 'Outbox',
    value: ({ outbox_length }) => formatInteger(outbox_length),
    isNormal: ({ oldest_pending_seconds }) => isAtMost(oldest_pending_seconds, 60),
    about:
      'Counted answers that are not in ClickHouse yet. Normal: the answers of one or two seconds. The outbox grows while ClickHouse is down. At OUTBOX_MAX_ROWS, the service rejects new answers with 503.',
  },
  {
    label: 'Journal',
    value: ({ journal_length }) => formatInteger(journal_length),
    isNormal: () => null,
    about:
      'Goals, catalogue changes and served forecasts that are not in ClickHouse yet. Normal: near 0. The journal grows for the same reasons as the outbox.',
  },
  {
    label: 'Parked rows',
    value: ({ parked_rows }) => formatInteger(parked_rows),
    isNormal: ({ parked_rows }) => isAtMost(parked_rows, 0),
    about: (
      <>
        Rows that ClickHouse rejected because of their content. The service stores them. Normal: 0. Read the
        reason, fix the cause, then redrive the rows:{' '}
        <a href={buildHref('operations', ['parked'])}>parked rows</a>.
      </>
    ),
  },
  {
    label: 'Waiting requests',
    value: ({ lanes_waiting }) => formatInteger(lanes_waiting),
    isNormal: ({ lanes_waiting }) => isAtMost(lanes_waiting, 1000),
    about:
      'Requests with answers that wait for a worker thread. Normal: few, for a short time. If hundreds keep waiting, raise LANES, add API processes, or reduce the load.',
  },
  {
    label: 'Connections',
    value: ({ connections_open }) => formatInteger(connections_open),
    isNormal: () => null,
    about:
      'Open client connections. Normal: a few per calling server or page. The limit per process is 10,000, or less if the limit on open files is lower.',
  },
  {
    label: 'Redis memory',
    value: ({ redis_memory }) => (redis_memory === null ? missingText : formatBytes(redis_memory.used)),
    isNormal: (figures) => isAtMost(computeMemoryShare(figures), maxMemoryShare),
    note: ({ redis_memory, ...figures }) =>
      redis_memory === null
        ? ''
        : redis_memory.limit === null
          ? 'no limit set'
          : `${formatPercent(computeMemoryShare({ redis_memory, ...figures }))} of ${formatBytes(redis_memory.limit)}`,
    about:
      'Normal: below 85 % of the limit. Above 95 %, the service rejects new answers until memory is free again. Raise maxmemory. If ClickHouse is down, restart it, so that the outbox empties.',
  },
  {
    label: 'API processes',
    value: ({ processes }) => formatInteger(processes),
    isNormal: ({ processes }) => processes > 0,
    about:
      'Responding API processes on this machine. Normal: API_PROCESSES (default 1). The service restarts failed processes.',
  },
];

function formatNote({ isNormal, note }: Tile, figures: LiveFigures): string {
  const verdict = isNormal(figures);
  const word = verdict === null ? '' : verdict ? 'normal' : 'needs attention';
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
