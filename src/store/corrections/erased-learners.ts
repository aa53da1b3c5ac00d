/**
 * Learners who were erased in the last days, by a hash (contracts/learner-name.ts). It identifies what comes late of their ended
 * histories: from a process that stood still, or from parked rows.
 */
import Type from 'typebox';
import { Compile } from 'typebox/compile';
import { journalRowOf, lastOfEnded } from '../../contracts/journal.js';
import { learnerHash } from '../../contracts/learner-name.js';
import { firstRowOf, type OutboxId } from '../../contracts/outbox-ids.js';
import { byPartition, inParts } from '../../lists.js';
import type { JournalEntry } from '../outbox/journal.js';
import { type RedisClient, whileRedisServes } from '../redis/client.js';
import { endedKey, partitionOf, partitionPrefix } from '../redis/keys.js';
import { defineScript } from '../redis/script.js';

/** Fields of one command: a fraction of a millisecond of Redis. */
const chunk = 500;

const check = Compile(
  Type.Object({
    v: Type.Literal(1),
    tenant: Type.String(),
    /** Unix milliseconds on Redis' clock, of the erasure and of the learner's last goal. */
    at: Type.Integer(),
    goalAt: Type.Integer(),
    /** Outbox id of the correction. */
    correction: Type.String(),
    /** How often ClickHouse was asked for late rows. */
    looks: Type.Integer(),
  }),
);

/** Who was erased, without saying whom. */
export interface ErasedLearner {
  readonly partition: number;
  readonly hash: string;
  readonly tenant: string;
  /** Unix milliseconds on Redis' clock. */
  readonly at: number;
  readonly goalAt: number;
  /** Rows of the ended histories have a lower id: those of entries before the last erasure's correction. */
  readonly below: OutboxId;
  readonly looks: number;
  /** As it is stored. */
  readonly text: string;
}

/** Null for what another version wrote. */
function decode(partition: number, hash: string, text: string): ErasedLearner | null {
  const stored: unknown = JSON.parse(text);
  if (!check.Check(stored)) return null;
  const { tenant, at, goalAt, looks, correction } = stored;
  return { partition, hash, tenant, at, goalAt, looks, below: firstRowOf(correction), text };
}

/** In the order of the hashes; null for who was not erased in the last days. @throws ApiError UNAVAILABLE */
export async function findErased(
  client: RedisClient,
  partition: number,
  hashes: readonly string[],
): Promise<(ErasedLearner | null)[]> {
  const key = endedKey(partition);
  if ((await whileRedisServes(client.exists(key))) === 0) return hashes.map(() => null);
  const found: (ErasedLearner | null)[] = [];
  for (const part of inParts(hashes, chunk)) {
    const texts = await whileRedisServes(client.hmget(key, ...part));
    for (const [i, hash] of part.entries()) {
      const text = texts[i] ?? null;
      found.push(text === null ? null : decode(partition, hash, text));
    }
  }
  return found;
}

/** All of a partition. @throws ApiError UNAVAILABLE */
export async function listErased(client: RedisClient, partition: number): Promise<ErasedLearner[]> {
  const all = new Map<string, ErasedLearner | null>();
  for (let cursor = '0'; ; ) {
    const [next, flat] = await whileRedisServes(client.hscan(endedKey(partition), cursor, 'COUNT', chunk));
    for (let i = 0; i < flat.length; i += 2) {
      const [hash, text] = flat.slice(i, i + 2) as [string, string];
      all.set(hash, decode(partition, hash, text));
    }
    if (next === '0') return [...all.values()].filter((one) => one !== null);
    cursor = next;
  }
}

/** Notes that ClickHouse was asked, or forgets the learner. One who was erased again meanwhile stays as they are. */
export async function noteLook(
  client: RedisClient,
  { partition, hash, text, looks }: ErasedLearner,
  forget: boolean,
): Promise<void> {
  const next = forget ? '' : JSON.stringify({ ...JSON.parse(text), looks: looks + 1 });
  await whileRedisServes(replaceErased(client, partitionPrefix(partition), hash, text, next));
}

/** KEYS: the partition's prefix. ARGV: the learner's hash, what stands there, what is to stand there or '' to forget. */
const replaceErased = defineScript(1)<[prefix: string, hash: string, text: string, next: string], null>(`
local erased = KEYS[1] .. ':erased'
if redis.call('HGET', erased, ARGV[1]) ~= ARGV[2] then return end
if ARGV[3] == '' then redis.call('HDEL', erased, ARGV[1]) else redis.call('HSET', erased, ARGV[1], ARGV[3]) end
`);

/** Journal entries of histories that an erasure has ended. @throws ApiError UNAVAILABLE */
export async function lateAmong(
  client: RedisClient,
  partitions: number,
  entries: readonly JournalEntry[],
): Promise<JournalEntry[]> {
  const ofLearners = entries.flatMap((entry) => {
    const row = journalRowOf(entry.kind, entry.row.toString());
    // What was retracted is stored all the same: the erasure that ends the history forgets its id.
    if (row === null || entry.kind === 'taken_back') return [];
    const { tenant, userId, at } = row;
    const partition = partitionOf(tenant, userId, partitions);
    return [{ entry, at, partition, hash: learnerHash(tenant, userId) }];
  });
  const late: JournalEntry[] = [];
  for (const [partition, own] of byPartition(ofLearners)) {
    const hashes = own.map(({ hash }) => hash);
    const erased = await findErased(client, partition, hashes);
    for (const [i, { entry, at }] of own.entries()) {
      const end = erased[i];
      if (end && at <= lastOfEnded(entry.kind, end)) late.push(entry);
    }
  }
  return late;
}
