/** Figures per minute and API process, for the last 24 hours. */
import { readStreamPages } from '../redis/commands/bulk-operations.js';
import { executeAll, type RedisClient } from '../redis/connection/client.js';
import { minutesKey } from '../redis/keys.js';

type Counts = Readonly<Record<string, number>>;

export interface StoredMinute {
  /** Since 1970. A process writes a minute in parts if it starts or stops. */
  readonly minute: number;
  readonly answers: number;
  readonly statuses: Counts;
  /** Tracking requests by upper bound in seconds. */
  readonly buckets: Counts;
  /** By key id. */
  readonly keys: Readonly<
    Record<string, readonly [requests: number, answers: number, errors: number, rejected: number]>
  >;
}

export const maxHistoryHours = 24;
const minuteMs = 60_000;
/** 24 hours of 20 processes: about 30 MB. */
const maxEntries = 30_000;

export type MinuteStore = ReturnType<typeof createMinuteStore>;

export const createMinuteStore = (client: RedisClient) => ({
  append: (figures: StoredMinute): Promise<unknown> => {
    const oldest = (figures.minute - maxHistoryHours * 60) * minuteMs;
    const stored = JSON.stringify(figures);
    const append = client.multi().xadd(minutesKey, 'MAXLEN', '~', maxEntries, '*', 'm', stored);
    return executeAll(append.xtrim(minutesKey, 'MINID', '~', oldest));
  },
  /** Oldest first. @param from minutes since 1970 */
  readSince: async (from: number): Promise<StoredMinute[]> => {
    const minutes: StoredMinute[] = [];
    for await (const page of readStreamPages(client, minutesKey, { from: `${from * minuteMs}` }))
      minutes.push(...page.map(([, [, text = '']]) => JSON.parse(text)));
    return minutes.filter(({ minute }) => minute >= from);
  },
});
