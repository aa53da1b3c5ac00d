/**
 * Learners who were erased in the last days, by a hash (contracts/learner-name.ts): what comes late of their ended
 * histories is told by it, from a process that stood still or from rows that had been put aside.
 */
import { Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { journalRowOf, lastOfEnded } from '../../contracts/journal.js';
import { learnerHash } from '../../contracts/learner-name.js';
import { firstRowOf } from '../../contracts/outbox-ids.js';
import { byPartition, inParts } from '../../lists.js';
import type { EndedHistories, EndedLearner } from '../../services/corrections/erasure-ports.js';
import type { JournalEntry } from '../outbox/journal.js';
import { type RedisClient, whileRedisServes } from '../redis/client.js';
import { endedKey, partitionOf, partitionPrefix } from '../redis/keys.js';
import { lookedAtEnded } from './correction-scripts.js';

/** Fields of one command: a fraction of a millisecond of Redis. */
const chunk = 500;

const Stored = Type.Object({
  v: Type.Literal(1),
  tenant: Type.String(),
  /** Unix milliseconds, of the erasure and of the learner's last goal. */
  at: Type.Integer(),
  goalAt: Type.Integer(),
  /** Outbox id of the correction. */
  correction: Type.String(),
  looks: Type.Integer(),
});
const storedCheck = Compile(Stored);

/** Null for what another version wrote: it looks after it. */
function decode(partition: number, hash: string, text: string): EndedLearner | null {
  const stored: unknown = JSON.parse(text);
  if (!storedCheck.Check(stored)) return null;
  const { tenant, at, goalAt, looks, correction } = stored;
  return { partition, hash, tenant, at, goalAt, looks, below: firstRowOf(correction), text };
}

/** In their order; null for who was not erased in the last days. */
export async function findEnded(
  client: RedisClient,
  partition: number,
  hashes: readonly string[],
): Promise<(EndedLearner | null)[]> {
  const key = endedKey(partition);
  if ((await whileRedisServes(client.exists(key))) === 0) return hashes.map(() => null);
  const found: (EndedLearner | null)[] = [];
  for (const part of inParts(hashes, chunk)) {
    const texts = await whileRedisServes(client.hmget(key, ...part));
    found.push(
      ...texts.map((text, i) => (text === null ? null : decode(partition, part[i] as string, text))),
    );
  }
  return found;
}

export function createEndedHistories(client: RedisClient, partitions: number): EndedHistories {
  async function allOf(partition: number): Promise<EndedLearner[]> {
    const all = new Map<string, EndedLearner | null>();
    for (let cursor = '0'; ; ) {
      const call = client.hscan(endedKey(partition), cursor, 'COUNT', chunk);
      const [next, flat] = await whileRedisServes(call);
      for (let i = 0; i < flat.length; i += 2) {
        const hash = flat[i] as string;
        all.set(hash, decode(partition, hash, flat[i + 1] as string));
      }
      if (next === '0') return [...all.values()].filter((one) => one !== null);
      cursor = next;
    }
  }

  return {
    all: async () => {
      const all = await Promise.all(Array.from({ length: partitions }, (_, partition) => allOf(partition)));
      return all.flat();
    },
    looked: async ({ partition, hash, text, ...ended }, keep) => {
      const next = keep ? JSON.stringify({ ...JSON.parse(text), looks: ended.looks + 1 }) : '';
      await whileRedisServes(lookedAtEnded(client, partitionPrefix(partition), hash, text, next));
    },
    lateAmong: async (entries) => {
      const late: JournalEntry[] = [];
      const all = entries.flatMap((entry) => toldBy(entry, partitions) ?? []);
      for (const [partition, told] of byPartition(all)) {
        const hashes = told.map(({ hash }) => hash);
        const found = await findEnded(client, partition, hashes);
        for (const [i, { entry, at }] of told.entries()) {
          const ended = found[i];
          if (ended && at <= lastOfEnded(entry.kind, ended)) late.push(entry);
        }
      }
      return late;
    },
  };
}

interface Told {
  readonly partition: number;
  readonly entry: JournalEntry;
  readonly hash: string;
  /** Unix milliseconds. */
  readonly at: number;
}

/** Null where it tells of no learner. */
function toldBy(entry: JournalEntry, partitions: number): Told | null {
  const of = journalRowOf(entry.kind, entry.row.toString());
  // What was taken back is stored all the same: the erasure that ends the history forgets its id.
  if (of === null || entry.kind === 'taken_back') return null;
  const partition = partitionOf(of.tenant, of.userId, partitions);
  return { partition, entry, at: of.at, hash: learnerHash(of.tenant, of.userId) };
}
