/** Learners by the beginning of their ids, out of their sums. */
import type { ClickHouseClient } from '@clickhouse/client';
import type { Limiter } from '../../concurrency.js';
import type { ListedLearner } from '../../contracts/responses/bodies.js';
import { callersTime, selectRows } from '../clickhouse/client.js';
import { inOrder } from './tenant-tables.js';

export interface LearnerRange {
  readonly tenant: string;
  /** Empty: all learners. */
  readonly prefix: string;
  /** The learner before the first one; empty: none. */
  readonly after: string;
  readonly atMost: number;
}

/**
 * The engine makes of `startsWith` the range of the key from the prefix to the next text of its length, by bytes, and reads it
 * in its order until the page is full. `day` of totals is 1970-01-01; it is named because it stands before `user_id` in the key.
 */
const selectLearners = `
SELECT user_id, toFloat64(sum(r.attempts)) AS total_attempts, toFloat64(sum(r.correct)) AS correct_attempts,
  toUInt32(uniqExact(r.skill_id)) AS skills, toString(max(arrayMax(r.days))) AS last_day
FROM learner_sums AS r
WHERE tenant = {tenant:String} AND kind = 'total' AND day = toDate(0)
  AND startsWith(user_id, {prefix:String}) AND user_id > {after:String}
GROUP BY user_id ORDER BY user_id LIMIT {atMost:UInt32}`;

export type LearnerList = ReturnType<typeof createLearnerList>;

/** @param limit of each read. Rejects when ClickHouse is unavailable or does not answer in a few seconds. */
export const createLearnerList =
  (client: ClickHouseClient, limit: Limiter) =>
  /** By the bytes of their ids. Who is being erased may be among them. */
  (params: LearnerRange): Promise<ListedLearner[]> =>
    limit(params.tenant, () =>
      selectRows<ListedLearner>(client, selectLearners, { params, settings: inOrder, signal: callersTime() }),
    );
