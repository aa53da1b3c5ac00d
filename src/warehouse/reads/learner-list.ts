import type { ListedLearner } from '../../contracts/responses/bodies.js';
import type { TenantRead } from './tenant-read.js';

/**
 * The engine reads the key range of the prefix until the page is full. Totals have the day 1970-01-01, which precedes `user_id`
 * in the key.
 */
const selectLearners = `
SELECT user_id, toFloat64(sum(r.attempts)) AS total_attempts, toFloat64(sum(r.correct)) AS correct_attempts,
  toUInt32(uniqExact(r.skill_id)) AS skills, toString(max(arrayMax(r.days))) AS last_day
FROM learner_sums AS r
WHERE tenant = {tenant:String} AND kind = 'total' AND day = toDate(0)
  AND startsWith(user_id, {prefix:String}) AND user_id > {after:String}
GROUP BY user_id ORDER BY user_id LIMIT {atMost:UInt32} SETTINGS optimize_aggregation_in_order = 1`;

export type LearnerList = ReturnType<typeof createLearnerList>;

export const createLearnerList =
  (read: TenantRead) =>
  /**
   * By the bytes of their ids; may include learners that are being erased.
   * @param after the learner before the first one; empty: none
   */
  (tenant: string, prefix: string, after: string, atMost: number) =>
    read<ListedLearner>(selectLearners, tenant, { prefix, after, atMost });
