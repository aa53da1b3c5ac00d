import { indices } from '../../lists.js';
import { mapRedisErrors, type RedisClient } from '../redis/connection/client.js';
import { importMarksKey } from '../redis/keys.js';

export interface ImportRecord {
  /** Names the marks of counted lines. */
  readonly id: string;
  /** Number of imports of this content. */
  readonly run: number;
  /** Lines up to this one are counted or rejected. */
  readonly line: number;
  /** Unix milliseconds. */
  readonly startedAt: number;
  readonly finishedAt: number | null;
}

/** `finished_at` is empty until the end. Braces put the lock on the same node. */
const importKey = (contentHash: string): string => `st:import:{${contentHash}}`;
const importsKey = 'st:imports';
export const importLockKey = (contentHash: string): string => `${importKey(contentHash)}:lock`;

/** A stopped process uses the marks to skip lines in flight. */
const marksGraceSeconds = 600;

export type ImportStore = ReturnType<typeof createImportStore>;

/** @param contentHash of the file and of options that change its meaning */
export function createImportStore(client: RedisClient, partitions: number, contentHash: string) {
  const key = importKey(contentHash);
  const saveFields = (fields: object) => mapRedisErrors(client.hset(key, fields));
  return {
    find: async (): Promise<ImportRecord | null> => {
      const fields = await mapRedisErrors(client.hgetall(key));
      const { id, run, line, started_at: startedAt, finished_at: finishedAt } = fields;
      if (id === undefined) return null;
      const numbers = { run: Number(run), line: Number(line), startedAt: Number(startedAt) };
      return { id, ...numbers, finishedAt: finishedAt ? Number(finishedAt) : null };
    },
    start: async (previous: ImportRecord | null): Promise<ImportRecord> => {
      const run = (previous?.run ?? 0) + 1;
      const [id, startedAt] = [`${contentHash.slice(0, 32)}.${run}`, Date.now()];
      // First, so that an erasure finds all marks.
      await mapRedisErrors(client.hset(importsKey, id, contentHash));
      await saveFields({ id, run, line: 0, started_at: startedAt, finished_at: '' });
      return { id, run, line: 0, startedAt, finishedAt: null };
    },
    savePosition: (line: number) => saveFields({ line }),
    finish: async (id: string, line: number, now: number): Promise<void> => {
      // If the process dies before the end, the next run finishes.
      await saveFields({ line });
      const marks = indices(partitions).map((partition) => importMarksKey(partition, id));
      await mapRedisErrors(Promise.all(marks.map((mark) => client.expire(mark, marksGraceSeconds))));
      await saveFields({ finished_at: now });
    },
  };
}

export async function listImportMarks(client: RedisClient, partition: number) {
  const contents = Object.entries(await mapRedisErrors(client.hgetall(importsKey)));
  return Promise.all(
    contents.map(async ([id, content]) => ({
      key: importMarksKey(partition, id),
      running: (await mapRedisErrors(client.exists(importLockKey(content)))) === 1,
    })),
  );
}
