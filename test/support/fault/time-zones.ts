/** Time zones of the tenants of a fault test. The zone of the last tenant changes in each round. */
import type { ClickHouseClient } from '@clickhouse/client';
import { Redis } from 'ioredis';
import { decodeLearner, learnerField } from '../../../src/store/learners/learner-codec.js';
import { learnerKey, partitionOf } from '../../../src/store/redis/keys.js';
import { defaultPartitions } from '../../../src/store/redis/server/deployment.js';
import { selectRows } from '../../../src/warehouse/clickhouse/client.js';
import { callerOf } from '../http/http.js';
import { askUntil } from '../wait.js';
import type { Deployment } from './deployment.js';

type Target = Pick<Deployment, 'port' | 'tenants' | 'redisUrl'>;

/** On 2026-11-01, days of Los Angeles and Havana have 25 hours. */
export const timeZonesOf = (round: number): readonly string[] => [
  ...['America/Los_Angeles', 'Asia/Kathmandu'],
  round % 2 === 0 ? 'America/Havana' : 'Australia/Lord_Howe',
];

/** A time within two days of the change of 2026-11-01. */
export const drawTime = (random: () => number): string =>
  new Date(Date.UTC(2026, 10, 1, 6) + Math.floor((random() - 0.5) * 4 * 86_400_000)).toISOString();

/** Retries until the service accepts the zone. */
export async function setTimeZone(target: Target, tenant: string, time_zone: string): Promise<void> {
  const put = () =>
    callerOf(target, tenant)
      .send('PUT', '/api/v1/settings', { time_zone })
      .catch(() => null);
  await askUntil(`the zone of ${tenant}`, put, (response) => response?.status === 202);
}

/** Waits until no learner has another zone. */
export async function timeZonesChanged(target: Target): Promise<void> {
  for (const tenant of target.tenants) {
    const read = () =>
      callerOf(target, tenant)
        .get('/api/v1/settings')
        .catch(() => null);
    const isDone = (response: Awaited<ReturnType<typeof read>>): boolean =>
      response?.json.data?.time_zone_change?.status === 'done';
    await askUntil(`days of ${tenant}`, read, isDone);
  }
}

/** SQL: rows on another day than that of ClickHouse's time zones. The first day is 1970-01-01. */
export const countMoved = (timeZone: string): string =>
  `countIf(local_date != greatest(toDate32(toTimeZone(occurred_at, '${timeZone}')), toDate32('1970-01-01')))`;

/** @returns learners in another zone, rows that ClickHouse counts on another day, and days with other sums */
export async function compareDays(
  { tenants, redisUrl }: Target,
  clickhouse: ClickHouseClient,
  timeZones: readonly string[],
  learners: readonly string[],
): Promise<string[]> {
  const redis = new Redis(redisUrl);
  const found: string[] = [];
  for (const [i, tenant] of tenants.entries()) {
    const timeZone = timeZones[i] as string;
    for (const userId of learners) {
      const key = learnerKey(partitionOf(tenant, userId, defaultPartitions), tenant, userId);
      const record = await redis.hgetBuffer(key, learnerField);
      const stored = record && decodeLearner(record).timeZone;
      if (stored !== null && stored !== timeZone) found.push(`${tenant} ${userId} has ${stored}`);
    }
    const where = `tenant = '${tenant}' AND user_id IN (${learners.map((id) => `'${id}'`).join()})`;
    const [row] = await selectRows<{ moved: number; sums: number }>(
      clickhouse,
      `SELECT
        toUInt32((SELECT ${countMoved(timeZone)}
          FROM attempts WHERE ${where})) AS moved,
        toUInt32((SELECT count() FROM (
          SELECT user_id, local_date AS day, toUInt64(count()) AS n FROM attempts WHERE ${where} GROUP BY user_id, day
          EXCEPT SELECT user_id, day, toUInt64(sum(answers)) AS n FROM learner_skill_daily WHERE ${where}
            GROUP BY user_id, day))) AS sums`,
    );
    if (row?.moved !== 0) found.push(`${tenant}: ${row?.moved} answers are on another day`);
    if (row?.sums !== 0) found.push(`${tenant}: ${row?.sums} days have other sums`);
  }
  redis.disconnect();
  return found;
}
