import { StartError } from '../../src/lifecycle.js';
import { splitIntoParts } from '../../src/lists.js';
import { type LearnerStates, readPacked } from '../../src/store/learners/learner-reads.js';
import { partitionOf } from '../../src/store/redis/keys.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { findLedgerProblems } from '../report/section.js';
import type { Ledger } from '../results/results.js';
import type { Service } from '../targets/service.js';
import type { Tally } from './measure.js';

export interface TenantAnswers {
  readonly drains: Service;
  readonly key: string;
  readonly tally: Tally;
}

const learnersPerPage = 500;

/** Drains the outbox first. @param maxSkills skills per answer @throws StartError if Redis or ClickHouse lacks an answer, or has it twice */
export async function checkLedger(
  { drains: service, key: tenant, tally: { acknowledged } }: TenantAnswers,
  userIds: readonly string[],
  maxSkills = 1,
): Promise<Ledger> {
  await service.drainImmediately();
  const inRedis = await countRedisAttempts(service, tenant, userIds, maxSkills);
  const rows = await countClickHouseRows(service, tenant);
  const ledger = { acknowledged, inRedis, ...rows };
  const problems = findLedgerProblems(ledger);
  if (problems.length > 0)
    throw new StartError(`The answer check of scenario ${tenant} failed: ${problems.join('; ')}`);
  return ledger;
}

async function countRedisAttempts(
  { redis, partitions }: Service,
  tenant: string,
  userIds: readonly string[],
  maxSkills: number,
): Promise<number> {
  let attempts = 0;
  for (const page of splitIntoParts(userIds, learnersPerPage)) {
    const places = page.map((userId) => ({
      partition: partitionOf(tenant, userId, partitions),
      tenant,
      userId,
    }));
    for (const packed of await readPacked(redis, places))
      attempts += countAttempts(packed.unpack(), maxSkills);
  }
  return attempts;
}

/** @throws Error if a learner's record and its skills disagree */
function countAttempts(whole: LearnerStates | null, maxSkills: number): number {
  if (whole === null) return 0;
  const { attempts } = whole.learner;
  let onSkills = 0;
  for (const [, skill] of whole.skills) onSkills += skill.attempts;
  if (onSkills < attempts || onSkills > maxSkills * attempts)
    throw new Error(`The skills of a learner have ${onSkills} attempts, but the learner has ${attempts}`);
  return attempts;
}

async function countClickHouseRows({ clickhouse }: Service, tenant: string) {
  const query = `SELECT toFloat64(count()) AS rows, toFloat64(uniqExact(partition_id, outbox_ms, outbox_seq)) AS distinct_rows
    FROM attempts WHERE tenant = {tenant:String}`;
  const [found] = await selectRows<{ rows: number; distinct_rows: number }>(clickhouse, query, {
    params: { tenant },
  });
  return { inClickHouse: found?.rows ?? 0, distinctInClickHouse: found?.distinct_rows ?? 0 };
}
