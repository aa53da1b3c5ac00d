/** What is kept of imports: a hash per content, a lock, and per partition the marks that the commits write. */
import type { ImportRecord, ImportStore } from '../../services/import/ports.js';
import { type RedisClient, whileRedisServes } from '../redis/client.js';
import { importMarksKey } from '../redis/keys.js';

/** Fields `id`, `run`, `line`, `started_at`, `finished_at` (empty while it is not finished); the braces put the lock on the same node. */
const importKey = (content: string): string => `st:import:{${content}}`;
/** Hash of the imports: field = id, value = hash of the content. */
const importsKey = 'st:imports';
export const importLockKey = (content: string): string => `${importKey(content)}:lock`;

/**
 * The marks outlive the import for a while: a second process that lost its lock while it was stopped still finds
 * them, skips what it has under way, and then sees that the lock is not its own.
 */
const marksGraceSeconds = 600;

export function createImportStore(client: RedisClient, partitions: number): ImportStore {
  return {
    find: async (content) => decode(await whileRedisServes(client.hgetall(importKey(content)))),
    put: async (content, record) => {
      // First: who erases a learner finds the marks of every import that has any.
      await whileRedisServes(client.hset(importsKey, record.id, content));
      await whileRedisServes(client.hset(importKey(content), encode(record)));
    },
    savePosition: async (content, line) => {
      await whileRedisServes(client.hset(importKey(content), 'line', line));
    },
    finish: async (content, id, line, now) => {
      // A kill between these steps leaves an import that has nothing left to count, and is finished by the next run.
      await whileRedisServes(client.hset(importKey(content), 'line', line));
      const keys = Array.from({ length: partitions }, (_, partition) => importMarksKey(partition, id));
      await whileRedisServes(Promise.all(keys.map((key) => client.expire(key, marksGraceSeconds))));
      await whileRedisServes(client.hset(importKey(content), 'finished_at', now));
    },
  };
}

export interface ImportMarks {
  /** Hash of the marks in one partition. */
  readonly key: string;
  readonly running: boolean;
}

/** The marks of every import, in one partition. */
export async function listImportMarks(client: RedisClient, partition: number): Promise<ImportMarks[]> {
  const contents = Object.entries(await whileRedisServes(client.hgetall(importsKey)));
  return Promise.all(
    contents.map(async ([id, content]) => ({
      key: importMarksKey(partition, id),
      running: (await whileRedisServes(client.exists(importLockKey(content)))) === 1,
    })),
  );
}

const encode = (record: ImportRecord): Record<string, string | number> => ({
  id: record.id,
  run: record.run,
  line: record.line,
  started_at: record.startedAt,
  finished_at: record.finishedAt ?? '',
});

function decode(fields: Readonly<Record<string, string>>): ImportRecord | null {
  const { id, run, line, started_at: startedAt, finished_at: finishedAt } = fields;
  if (id === undefined) return null;
  return {
    id,
    run: Number(run),
    line: Number(line),
    startedAt: Number(startedAt),
    finishedAt: finishedAt ? Number(finishedAt) : null,
  };
}
