/**
 * Hashes of erased learners, stored for seven days to find late rows (from a suspended process, or parked).
 */
import Type from 'typebox';
import { Compile } from 'typebox/compile';
import type { CorrectedRows } from '../../contracts/corrections/corrections.js';
import { findErasureCutoff, parseRowLearner } from '../../contracts/journal/journal.js';
import { hashLearner, learnerName } from '../../contracts/learners/learner-name.js';
import { toFirstRowId } from '../../contracts/outbox/outbox-ids.js';
import { groupBy, groupByPartition, indices, splitIntoParts } from '../../lists.js';
import { removeLearners } from '../catalogue/registered-skills.js';
import { removeLearnerFromGroups } from '../groups/group-store.js';
import { listImportMarks } from '../learners/import-store.js';
import type { JournalEntry } from '../outbox/journal.js';
import {
  findField,
  readHash,
  removeMatchingEntries,
  sendCommands,
  sendPerKey,
} from '../redis/commands/bulk-operations.js';
import { compareAndSetField } from '../redis/commands/script.js';
import { removeErasedEvents } from '../redis/commands/webhook-events.js';
import { mapRedisErrors, type RedisClient } from '../redis/connection/client.js';
import {
  erasedLearnersKey,
  forecastsKey,
  groupsJournalKey,
  journalKey,
  learnerKey,
  parkedKey,
  partitionOf,
} from '../redis/keys.js';

const hashesPerCommand = 500;

const StoredLearner = Type.Object({
  v: Type.Literal(1),
  tenant: Type.String(),
  /** Unix milliseconds on Redis' clock: of the erasure, and of the learner's last goal. */
  at: Type.Integer(),
  goalAt: Type.Integer(),
  correction: Type.String(),
  /** Number of searches for late rows in ClickHouse. */
  looks: Type.Integer(),
});
const storedCheck = Compile(StoredLearner);

type ErasedLearner = NonNullable<ReturnType<typeof decode>>;

/** Null for another version. `below`: erased rows have lower ids. */
function decode(partition: number, hash: string, text: string) {
  const stored: unknown = JSON.parse(text);
  if (!storedCheck.Check(stored)) return null;
  const { v: _, correction, ...facts } = stored;
  return { ...facts, partition, hash, below: toFirstRowId(correction), text };
}

/** Null if not erased recently. */
export async function findErasedLearners(
  client: RedisClient,
  learners: readonly Pick<ErasedLearner, 'partition' | 'hash'>[],
): Promise<(ErasedLearner | null)[]> {
  const groups = [...groupByPartition(learners)];
  // Most partitions have no erased learners.
  const keys = groups.map(([partition]) => erasedLearnersKey(partition));
  const existing = await sendPerKey<number>(client, 'exists', keys);
  const parts = groups
    .filter((_, i) => existing[i] === 1)
    .flatMap(([, own]) => splitIntoParts(own, hashesPerCommand));
  const commands = parts.map((part) => {
    const [{ partition }] = part as [(typeof learners)[number]];
    return ['hmget', erasedLearnersKey(partition), ...part.map(({ hash }) => hash)] as const;
  });
  const texts = (await sendCommands<(string | null)[]>(client, commands)).flat();
  const found = new Map(parts.flat().map(({ hash }, i) => [hash, texts[i]]));
  return learners.map(({ partition, hash }) => {
    const text = found.get(hash);
    return text ? decode(partition, hash, text) : null;
  });
}

async function listErasedLearners(client: RedisClient, partition: number): Promise<ErasedLearner[]> {
  const all = await readHash(client, erasedLearnersKey(partition), (hash, text) =>
    decode(partition, hash, text),
  );
  return [...all.values()].filter((one) => one !== null);
}

export const createErasedLearners = (client: RedisClient, partitions: number) => ({
  listErased: async (): Promise<ErasedLearner[]> =>
    (await Promise.all(indices(partitions).map((partition) => listErasedLearners(client, partition)))).flat(),
  findErased: (tenant: string, userIds: readonly string[]) =>
    findErasedLearners(
      client,
      userIds.map((userId) => locateHash(tenant, userId, partitions)),
    ),
  /** The last search removes the learner. Does nothing if the learner was erased again. */
  recordCheck: async ({ partition, hash, text, looks }: ErasedLearner, isLast: boolean): Promise<void> => {
    const next = isLast ? '' : JSON.stringify({ ...JSON.parse(text), looks: looks + 1 });
    await compareAndSetField(client, erasedLearnersKey(partition), hash, text, next);
  },
  findLateEntries: async (entries: readonly JournalEntry[]): Promise<JournalEntry[]> => {
    const located = entries.flatMap((entry) => {
      const row = parseRowLearner(entry.kind, entry.row.toString());
      // Retractions are stored first. The erasure removes them later.
      if (row === null || entry.kind === 'taken_back') return [];
      return [{ entry, at: row.at, ...locateHash(row.tenant, row.userId, partitions) }];
    });
    const erased = await findErasedLearners(client, located);
    return located.flatMap(({ entry, at }, i) => {
      const end = erased[i];
      return end && at <= findErasureCutoff(entry.kind, end) ? [entry] : [];
    });
  },
  /** In journals and forecasts, including parked rows. */
  removePendingRows: async (rows: readonly CorrectedRows[]): Promise<void> => {
    const byName = new Map(rows.map((one) => [learnerName(one.tenant, one.userId), one]));
    const isErased = (_: string, fields: readonly string[]): boolean => {
      const kind = findField(fields, 'k') ?? '';
      const row = parseRowLearner(kind, findField(fields, 'r') ?? '');
      const one = row === null ? undefined : byName.get(learnerName(row.tenant, row.userId));
      return one !== undefined && row !== null && row.at <= findErasureCutoff(kind, one);
    };
    // Forecasts of a class may be in any partition.
    const streams = [
      ...[...groupByPartition(rows).keys()].map(journalKey),
      ...indices(partitions).map(forecastsKey),
      groupsJournalKey,
    ];
    for (const stream of [...streams, ...streams.map(parkedKey)])
      await removeMatchingEntries(client, stream, isErased);
  },
  removeEvents: (rows: readonly CorrectedRows[]) => removeErasedEvents(client, rows),
  removeImportMarks: async (rows: readonly CorrectedRows[]): Promise<Set<CorrectedRows>> => {
    const importing = new Set<CorrectedRows>();
    for (const [partition, own] of groupByPartition(rows)) {
      const marks = await listImportMarks(client, partition);
      for (const one of own) {
        const field = learnerKey(partition, one.tenant, one.userId);
        for (const { key, running } of marks) {
          if (!running) await mapRedisErrors(client.hdel(key, field));
          else if ((await mapRedisErrors(client.hexists(key, field))) === 1) importing.add(one);
        }
      }
    }
    return importing;
  },
  removeFromGroups: async (rows: readonly CorrectedRows[]): Promise<void> => {
    for (const one of rows) await removeLearnerFromGroups(client, one, one.below.ms);
  },
  removeFromSkills: async (rows: readonly CorrectedRows[]): Promise<void> => {
    for (const [tenant, own] of groupBy(rows, (one) => one.tenant)) {
      const userIds = own.map(({ userId }) => userId);
      await removeLearners(client, tenant, userIds);
    }
  },
});

const locateHash = (tenant: string, userId: string, partitions: number) => ({
  partition: partitionOf(tenant, userId, partitions),
  hash: hashLearner(tenant, userId),
});
