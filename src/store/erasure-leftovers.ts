/** What of an erased learner is on its way through Redis beside the outbox: journal streams, refused rows, marks of imports. */
import { clockMs } from '../contracts/corrections.js';
import { journalRowOf } from '../contracts/journal.js';
import type { CorrectedRows } from '../services/correction-ports.js';
import type { ErasureLeftovers } from '../services/erasure-ports.js';
import { type RedisClient, whileRedisServes } from './client.js';
import { createCorrectionStore } from './corrections.js';
import { listImportMarks } from './import-store.js';
import { forecastsKey, journalKey, learnerKey, parkedKey } from './keys.js';

/** Entries of one read: a fraction of a millisecond of Redis. */
const pageRows = 500;

export function createErasureLeftovers(client: RedisClient, partitions: number): ErasureLeftovers {
  const corrections = createCorrectionStore(client);
  const everyPartition = Array.from({ length: partitions }, (_, partition) => partition);
  return {
    removeWaiting: async (rows) => {
      await corrections.removeParked(rows, true);
      const goals = journalKey(rows.partition);
      // Those of a class may be in the stream of any of its learners.
      const forecasts = everyPartition.map(forecastsKey);
      for (const stream of [goals, parkedKey(goals)]) await removeFrom(client, stream, rows, rows.goalAt);
      for (const stream of [...forecasts, ...forecasts.map(parkedKey)])
        await removeFrom(client, stream, rows, rows.belowMs + clockMs);
    },
    removeMarks: async ({ partition, tenant, userId }) => {
      const field = learnerKey(partition, tenant, userId);
      let held = 0;
      for (const { key, running } of await listImportMarks(client, partition)) {
        if (running) held += Number(await whileRedisServes(client.hexists(key, field)));
        else await whileRedisServes(client.hdel(key, field));
      }
      return held;
    },
  };
}

/** Removes the learner's entries that tell of a time until then, Unix milliseconds. */
async function removeFrom(
  client: RedisClient,
  stream: string,
  { tenant, userId, belowMs }: CorrectedRows,
  until: number,
): Promise<void> {
  for (let start = '-'; ; ) {
    const page = await whileRedisServes(client.xrange(stream, start, '+', 'COUNT', pageRows));
    const ids = page.filter(([, fields]) => isMeant(fields)).map(([id]) => id);
    if (ids.length > 0) await whileRedisServes(client.xdel(stream, ...ids));
    const last = page.at(-1)?.[0];
    if (last === undefined || page.length < pageRows) return;
    start = `(${last}`;
  }

  function isMeant(fields: readonly string[]): boolean {
    const kind = fields[fields.indexOf('k') + 1] ?? '';
    const of = journalRowOf(kind, fields[fields.indexOf('r') + 1] ?? '');
    const last = kind === 'taken_back' ? belowMs : until;
    return of !== null && of.tenant === tenant && of.userId === userId && of.at <= last;
  }
}
