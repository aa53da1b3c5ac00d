/** How often a skill was answered. */
import type { ClickHouseClient } from '@clickhouse/client';
import { callersTime, selectRows } from '../clickhouse/client.js';

/** Answers of the tenant on the skill, those that were dropped for their age included. @throws Error without ClickHouse */
export async function countSkillAnswers(
  client: ClickHouseClient,
  tenant: string,
  skillId: string,
): Promise<number> {
  const query = `SELECT toFloat64(sum(attempts)) AS answers FROM daily_skill
WHERE tenant = {tenant:String} AND skill_id = {skillId:String}`;
  const [row] = await selectRows<{ readonly answers: number }>(client, query, callersTime(), {
    tenant,
    skillId,
  });
  return row?.answers ?? 0;
}
