/** What of an erased learner is on its way through Redis beside the outbox: journal streams, refused rows, marks of imports. */

import { journalRowOf, lastOfEnded } from '../../contracts/journal.js';
import { learnerName } from '../../contracts/learner-name.js';
import { byPartition, groupedBy } from '../../lists.js';
import type { CorrectedRows } from '../../services/corrections/correction-ports.js';
import type { ErasureLeftovers } from '../../services/corrections/erasure-ports.js';
import { forgetLearners } from '../catalogue/known-skills.js';
import { type ImportMarks, listImportMarks } from '../rebuild/import-store.js';
import { type RedisClient, whileRedisServes } from '../redis/client.js';
import { forecastsKey, journalKey, learnerKey, parkedKey } from '../redis/keys.js';
import { fieldOf, streamPages } from '../redis/streams.js';
import { createCorrectionStore } from './corrections.js';

/** Entries of one read: a fraction of a millisecond of Redis. */
const pageRows = 500;

type Rows = readonly CorrectedRows[];

export function createErasureLeftovers(client: RedisClient, partitions: number): ErasureLeftovers {
  const corrections = createCorrectionStore(client);
  const everyPartition = Array.from({ length: partitions }, (_, partition) => partition);
  return {
    removeWaiting: async (rows) => {
      await corrections.removeParked(rows, true);
      // Forecasts of a class may be in the stream of any of its learners.
      const streams = [...byPartition(rows).keys()].map(journalKey).concat(everyPartition.map(forecastsKey));
      for (const stream of [...streams, ...streams.map(parkedKey)]) await removeFrom(client, stream, rows);
    },
    forgetSkills: async (rows) => {
      for (const [tenant, own] of groupedBy(rows, (one) => one.tenant)) {
        const userIds = own.map(({ userId }) => userId);
        await forgetLearners(client, tenant, userIds);
      }
    },
    removeMarks: async (rows) => {
      const held = new Map<CorrectedRows, number>();
      for (const [partition, own] of byPartition(rows)) {
        const marks = await listImportMarks(client, partition);
        for (const one of own) held.set(one, await removeMarks(client, marks, one));
      }
      return rows.map((one) => held.get(one) ?? 0);
    },
  };
}

/** @returns how many have to stay */
async function removeMarks(
  client: RedisClient,
  marks: readonly ImportMarks[],
  { partition, tenant, userId }: CorrectedRows,
): Promise<number> {
  const field = learnerKey(partition, tenant, userId);
  let held = 0;
  for (const { key, running } of marks) {
    if (running) held += Number(await whileRedisServes(client.hexists(key, field)));
    else await whileRedisServes(client.hdel(key, field));
  }
  return held;
}

/** Removes the learners' entries that tell of the ended histories. */
async function removeFrom(client: RedisClient, stream: string, rows: Rows): Promise<void> {
  const byName = new Map(rows.map((one) => [learnerName(one.tenant, one.userId), one]));
  const read = (from: string, size: number) =>
    whileRedisServes(client.xrange(stream, from, '+', 'COUNT', size));
  for await (const page of streamPages(pageRows, read)) {
    const ids = page.filter(([, fields]) => isMeant(fields)).map(([id]) => id);
    if (ids.length > 0) await whileRedisServes(client.xdel(stream, ...ids));
  }

  function isMeant(fields: readonly string[]): boolean {
    const kind = fieldOf(fields, 'k') ?? '';
    const of = journalRowOf(kind, fieldOf(fields, 'r') ?? '');
    const one = of === null ? undefined : byName.get(learnerName(of.tenant, of.userId));
    return one !== undefined && of !== null && of.at <= lastOfEnded(kind, one);
  }
}
