/** What was put aside, looked at and put back: the outbox's rows and the journal's. */
import { rowColumns } from '../../contracts/attempt-row.js';
import { journalColumns, journalKinds } from '../../contracts/journal.js';
import { learnerHash } from '../../contracts/learner-name.js';
import { isBefore, parseId } from '../../contracts/outbox-ids.js';
import { readParked, takeParked } from '../corrections/corrections.js';
import { findEnded } from '../corrections/ended-histories.js';
import type { RedisClient } from '../redis/client.js';
import {
  catalogueJournalKey,
  forecastsKey,
  journalBound,
  journalKey,
  metaKey,
  outboxKey,
  parkedKey,
} from '../redis/keys.js';
import { fieldOf, streamPages } from '../redis/streams.js';
import { redriveEntries } from './parked-scripts.js';

/** A row that was put aside. */
export interface ParkedEntry {
  /** Stream that it was in, and its id there. */
  readonly stream: string;
  readonly id: string;
  /** Null where no row can be read. */
  readonly tenant: string | null;
  readonly reason: string;
  /** Unix milliseconds on Redis' clock: when it was put aside. */
  readonly parkedAt: number;
}

export interface Redriven {
  readonly moved: number;
  /** Rows of erased learners, which are gone. */
  readonly erased: number;
  /** Rows that stayed because the stream that they belong to is full, or a correction waits there. */
  readonly stayed: number;
}

const pageRows = 200;
/** A stream that is put back into stays below what refuses answers: half of the outbox' bound. */
const outboxRoom = 125_000;

/** @returns streams that may have parked rows: of one partition, or of all and of the catalogues. */
export async function parkableStreams(redis: RedisClient, partition: number | null): Promise<string[]> {
  const partitions = Number((await redis.hget(metaKey, 'partitions')) ?? 0);
  const all = Array.from({ length: partitions }, (_, i) => i);
  const wanted = partition === null ? all : all.filter((one) => one === partition);
  const streams = wanted.flatMap((one) => [outboxKey(one), journalKey(one), forecastsKey(one)]);
  return partition === null ? [...streams, catalogueJournalKey] : streams;
}

/** The stream's parked rows, oldest first, a page at a time. */
export async function* parkedEntries(redis: RedisClient, stream: string): AsyncGenerator<ParkedEntry> {
  for await (const page of pagesOf(redis, parkedKey(stream))) {
    for (const entry of page) yield readEntry(stream, entry);
  }
}

const pagesOf = (redis: RedisClient, key: string, to = '+') =>
  streamPages(pageRows, (from, size) => redis.xrange(key, from, to, 'COUNT', size));

/**
 * Puts what is parked now back into its stream, each row in one step. What is refused again meanwhile is not put back
 * once more, so that this ends.
 */
export async function redrive(redis: RedisClient, stream: string): Promise<Redriven> {
  const [newest] = await redis.xrevrange(parkedKey(stream), '+', '-', 'COUNT', 1);
  const total = { moved: 0, stayed: 0, erased: 0 };
  if (newest === undefined) return total;
  for await (const page of pagesOf(redis, parkedKey(stream), newest[0])) {
    const ids = page.map(([id]) => id);
    total.erased += await dropErased(redis, stream, page);
    const searched = await beforeCorrections(redis, stream);
    const [moved, stayed] = await redriveEntries(
      redis,
      parkedKey(stream),
      stream,
      roomOf(stream),
      searched,
      ...ids,
    );
    total.moved += moved;
    total.stayed += stayed;
  }
  return total;
}

/** Rows that came before their learner was erased; of the journal, its drain drops them. @returns how many went */
async function dropErased(
  redis: RedisClient,
  stream: string,
  page: readonly (readonly [string, readonly string[]])[],
): Promise<number> {
  const partition = Number(/^st:\{p(\d+)\}:out$/.exec(stream)?.[1] ?? -1);
  if (partition < 0) return 0;
  const rows = page.map(([id, fields]) => readParked(id, fields));
  const hashes = rows.map(({ tenant, userId }) => learnerHash(tenant, userId));
  const ended = await findEnded(redis, partition, hashes);
  const over = rows.filter(({ outboxId }, i) => {
    const end = ended[i];
    return end != null && isBefore(parseId(outboxId), end.below);
  });
  return takeParked(redis, partition, over, true);
}

/** Id of the stream's first correction, or of its last entry: none is before it. */
async function beforeCorrections(redis: RedisClient, stream: string): Promise<string> {
  let last = '-';
  for await (const page of pagesOf(redis, stream)) {
    const correction = page.find(([, [name]]) => name === 'c');
    if (correction !== undefined) return correction[0];
    last = page.at(-1)?.[0] ?? last;
  }
  return last;
}

const roomOf = (stream: string): number => (stream.endsWith(':out') ? outboxRoom : journalBound);

const readEntry = (
  stream: string,
  [parkedId, fields]: readonly [string, readonly string[]],
): ParkedEntry => ({
  stream,
  id: fieldOf(fields, 'id') ?? '',
  tenant: tenantOf(fieldOf(fields, 'k'), fieldOf(fields, 'r')),
  reason: fieldOf(fields, 'reason') ?? '',
  parkedAt: Number.parseInt(parkedId, 10),
});

/** Column of the tenant, by the kind of the journal's rows; of an answer, which has none, of its own. */
const tenantColumns: ReadonlyMap<string, number> = new Map(
  journalKinds.map((kind) => [kind, (journalColumns[kind] as readonly string[]).indexOf('tenant')]),
);
const tenantShape = /^[A-Za-z0-9._~-]{1,128}$/;

/** Only what can be a tenant is shown of a row that may be anything. */
function tenantOf(kind: string | null, row: string | null): string | null {
  const tenant =
    row?.split('\t')[kind === null ? rowColumns.indexOf('tenant') : (tenantColumns.get(kind) ?? 0)];
  return tenant !== undefined && tenantShape.test(tenant) ? tenant : null;
}
