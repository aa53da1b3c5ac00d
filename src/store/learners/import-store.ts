/** What is kept of imports: a hash per content, a lock, and per partition the marks that the commits write. */
import { indices } from '../../lists.js';
import { type RedisClient, whileRedisServes } from '../redis/client.js';
import { importMarksKey } from '../redis/keys.js';

/** What is remembered of the import of one content. */
export interface ImportRecord {
  /** Names the marks of the counted lines; another one for each time that the content is imported. */
  readonly id: string;
  /** How many times an import of the content was started from its first line. */
  readonly run: number;
  /** Everything up to this line is counted or rejected. */
  readonly line: number;
  /** Unix milliseconds. */
  readonly startedAt: number;
  readonly finishedAt: number | null;
}

/** Fields `id`, `run`, `line`, `started_at`, `finished_at` (empty while it is not finished); the braces put the lock on the same node. */
const importKey = (content: string): string => `st:import:{${content}}`;
/** Hash of the imports: field = id, value = hash of the content. */
const importsKey = 'st:imports';
export const importLockKey = (content: string): string => `${importKey(content)}:lock`;

/**
 * The marks outlive the import for a while: a second process that lost its lock while it was stopped still finds
 * them, skips what it has in flight, and then sees that the lock is not its own.
 */
const marksGraceSeconds = 600;

export type ImportStore = ReturnType<typeof createImportStore>;

/**
 * @param content hash of the file and of what changes its meaning
 * @throws ApiError UNAVAILABLE from each of its functions
 */
export function createImportStore(client: RedisClient, partitions: number, content: string) {
  const key = importKey(content);
  const set = (fields: object) => whileRedisServes(client.hset(key, fields));
  return {
    find: async (): Promise<ImportRecord | null> => {
      const fields = await whileRedisServes(client.hgetall(key));
      const { id, run, line, started_at: startedAt, finished_at: finishedAt } = fields;
      if (id === undefined) return null;
      const numbers = { run: Number(run), line: Number(line), startedAt: Number(startedAt) };
      return { id, ...numbers, finishedAt: finishedAt ? Number(finishedAt) : null };
    },
    start: async ({ id, run, line, startedAt }: ImportRecord): Promise<void> => {
      // First: an erasure finds the marks of every import that has any.
      await whileRedisServes(client.hset(importsKey, id, content));
      await set({ id, run, line, started_at: startedAt, finished_at: '' });
    },
    savePosition: (line: number) => set({ line }),
    /** Remembers the import as finished and forgets its marks. @param now Unix milliseconds */
    finish: async (id: string, line: number, now: number): Promise<void> => {
      // A kill between these steps leaves an import that has nothing left to count, and is finished by the next run.
      await set({ line });
      const marks = indices(partitions).map((partition) => importMarksKey(partition, id));
      await whileRedisServes(Promise.all(marks.map((mark) => client.expire(mark, marksGraceSeconds))));
      await set({ finished_at: now });
    },
  };
}

/** The marks of every import in one partition: the key of their hash, and whether the import runs. */
export async function listImportMarks(client: RedisClient, partition: number) {
  const contents = Object.entries(await whileRedisServes(client.hgetall(importsKey)));
  return Promise.all(
    contents.map(async ([id, content]) => ({
      key: importMarksKey(partition, id),
      running: (await whileRedisServes(client.exists(importLockKey(content)))) === 1,
    })),
  );
}
