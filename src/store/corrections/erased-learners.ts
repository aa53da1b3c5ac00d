/**
 * Hashes of erased learners, stored for seven days to find late rows (from a suspended process, or parked).
 */
import Type from 'typebox';
import { Compile } from 'typebox/compile';
import type { CorrectedRows } from '../../contracts/corrections.js';
import { findErasureCutoff, parseRowLearner } from '../../contracts/journal.js';
import { hashLearner, learnerName } from '../../contracts/learner-name.js';
import { toFirstRowId } from '../../contracts/outbox-ids.js';
import { groupBy, groupByPartition, indices, splitIntoParts } from '../../lists.js';
import { forgetLearners } from '../catalogue/known-skills.js';
import { listImportMarks } from '../learners/import-store.js';
import type { JournalEntry } from '../outbox/journal.js';
import { type RedisClient, whileRedisServes } from '../redis/client.js';
import { forgetEvents } from '../redis/event-stream.js';
import { endedKey, forecastsKey, journalKey, learnerKey, parkedKey, partitionOf } from '../redis/keys.js';
import { fieldOf, readHash, removeMatching, repliesTo, replyPerKey } from '../redis/reads.js';
import { replaceField } from '../redis/script.js';

const chunk = 500;

const Stored = Type.Object({
  v: Type.Literal(1),
  tenant: Type.String(),
  /** Unix milliseconds on Redis' clock: of the erasure, and of the learner's last goal. */
  at: Type.Integer(),
  goalAt: Type.Integer(),
  correction: Type.String(),
  looks: Type.Integer(),
});
const check = Compile(Stored);

type ErasedLearner = NonNullable<ReturnType<typeof decode>>;

/** Null for another version. `below`: erased rows have lower ids. */
function decode(partition: number, hash: string, text: string) {
  const stored: unknown = JSON.parse(text);
  if (!check.Check(stored)) return null;
  const { v: _, correction, ...facts } = stored;
  return { ...facts, partition, hash, below: toFirstRowId(correction), text };
}

/** Null if not erased recently. */
export async function findErased(
  client: RedisClient,
  learners: readonly Pick<ErasedLearner, 'partition' | 'hash'>[],
): Promise<(ErasedLearner | null)[]> {
  const groups = [...groupByPartition(learners)];
  // Most partitions have no erased learners.
  const keys = groups.map(([partition]) => endedKey(partition));
  const have = await replyPerKey<number>(client, 'exists', keys);
  const parts = groups.filter((_, i) => have[i] === 1).flatMap(([, own]) => splitIntoParts(own, chunk));
  const asked = parts.map((part) => {
    const [{ partition }] = part as [(typeof learners)[number]];
    return ['hmget', endedKey(partition), ...part.map(({ hash }) => hash)] as const;
  });
  const texts = (await repliesTo<(string | null)[]>(client, asked)).flat();
  const found = new Map(parts.flat().map(({ hash }, i) => [hash, texts[i]]));
  return learners.map(({ partition, hash }) => {
    const text = found.get(hash);
    return text ? decode(partition, hash, text) : null;
  });
}

async function listErased(client: RedisClient, partition: number): Promise<ErasedLearner[]> {
  const all = await readHash(client, endedKey(partition), (hash, text) => decode(partition, hash, text));
  return [...all.values()].filter((one) => one !== null);
}

export const createErasedLearners = (client: RedisClient, partitions: number) => ({
  erased: async (): Promise<ErasedLearner[]> =>
    (await Promise.all(indices(partitions).map((partition) => listErased(client, partition)))).flat(),
  erasedAmong: (tenant: string, userIds: readonly string[]) =>
    findErased(
      client,
      userIds.map((userId) => erasedPlace(tenant, userId, partitions)),
    ),
  /** The last search removes the learner. Does nothing if the learner was erased again. */
  noteLook: async ({ partition, hash, text, looks }: ErasedLearner, forget: boolean): Promise<void> => {
    const next = forget ? '' : JSON.stringify({ ...JSON.parse(text), looks: looks + 1 });
    await replaceField(client, endedKey(partition), hash, text, next);
  },
  lateAmong: async (entries: readonly JournalEntry[]): Promise<JournalEntry[]> => {
    const ofLearners = entries.flatMap((entry) => {
      const row = parseRowLearner(entry.kind, entry.row.toString());
      // Retractions are stored first. The erasure removes them later.
      if (row === null || entry.kind === 'taken_back') return [];
      return [{ entry, at: row.at, ...erasedPlace(row.tenant, row.userId, partitions) }];
    });
    const erased = await findErased(client, ofLearners);
    return ofLearners.flatMap(({ entry, at }, i) => {
      const end = erased[i];
      return end && at <= findErasureCutoff(entry.kind, end) ? [entry] : [];
    });
  },
  /** Also removes parked rows. */
  removeWaiting: async (rows: readonly CorrectedRows[]): Promise<void> => {
    const byName = new Map(rows.map((one) => [learnerName(one.tenant, one.userId), one]));
    const isOver = (_: string, fields: readonly string[]): boolean => {
      const kind = fieldOf(fields, 'k') ?? '';
      const row = parseRowLearner(kind, fieldOf(fields, 'r') ?? '');
      const one = row === null ? undefined : byName.get(learnerName(row.tenant, row.userId));
      return one !== undefined && row !== null && row.at <= findErasureCutoff(kind, one);
    };
    // Forecasts of a class may be in any partition.
    const streams = [
      ...[...groupByPartition(rows).keys()].map(journalKey),
      ...indices(partitions).map(forecastsKey),
    ];
    for (const stream of [...streams, ...streams.map(parkedKey)])
      await removeMatching(client, stream, isOver);
  },
  removeEvents: (rows: readonly CorrectedRows[]) => forgetEvents(client, rows),
  removeMarks: async (rows: readonly CorrectedRows[]): Promise<Set<CorrectedRows>> => {
    const held = new Set<CorrectedRows>();
    for (const [partition, own] of groupByPartition(rows)) {
      const marks = await listImportMarks(client, partition);
      for (const one of own) {
        const field = learnerKey(partition, one.tenant, one.userId);
        for (const { key, running } of marks) {
          if (!running) await whileRedisServes(client.hdel(key, field));
          else if ((await whileRedisServes(client.hexists(key, field))) === 1) held.add(one);
        }
      }
    }
    return held;
  },
  forgetSkills: async (rows: readonly CorrectedRows[]): Promise<void> => {
    for (const [tenant, own] of groupBy(rows, (one) => one.tenant)) {
      const userIds = own.map(({ userId }) => userId);
      await forgetLearners(client, tenant, userIds);
    }
  },
});

const erasedPlace = (tenant: string, userId: string, partitions: number) => ({
  partition: partitionOf(tenant, userId, partitions),
  hash: hashLearner(tenant, userId),
});
