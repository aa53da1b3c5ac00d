import type { ListedLearner } from '../../contracts/responses/learners.js';
import type { TenantRead } from './tenant-read.js';

/**
 * The condition on `day` lets ClickHouse use the key, in which the week precedes `user_id`. Totals have the
 * day 1970-01-01.
 */
const selectLearners = `
SELECT user_id, toFloat64(sum(r.attempts - r.further_attempts)) AS total_attempts,
  toFloat64(sum(r.correct - r.further_correct)) AS correct_attempts,
  toUInt32(uniqExact(r.skill_id)) AS skills, toString(max(arrayMax(r.days))) AS last_day
FROM learner_sums AS r
WHERE tenant = {tenant:String} AND kind = 'total' AND day = toDate(0)
  AND startsWith(user_id, {prefix:String}) AND user_id > {after:String}
GROUP BY user_id ORDER BY user_id LIMIT {atMost:UInt32} SETTINGS optimize_aggregation_in_order = 1`;

export type LearnerList = ReturnType<typeof createLearnerList>;

export const createLearnerList =
  (read: TenantRead) =>
  /** Ordered by the bytes of the ids. May include learners during their erasure. */
  (tenant: string, prefix: string, after: string, atMost: number) =>
    read<ListedLearner>(selectLearners, tenant, { prefix, after, atMost });
