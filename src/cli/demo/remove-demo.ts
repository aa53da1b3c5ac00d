import { setTimeout as sleep } from 'node:timers/promises';
import type { Engine } from '../../app/startup/engine.js';
import { hashLearner } from '../../contracts/learners/learner-name.js';
import { demoLearnerId, drawSkills, maxLearners, namedLearnerIds } from '../../lab/demo/school.js';
import { formatNumber } from '../../lab/report/format.js';
import { StartError } from '../../lifecycle.js';
import { indices } from '../../lists.js';
import { removeCatalogue } from '../../store/catalogue/catalogue-store.js';
import { removeMapping } from '../../store/catalogue/xapi-mappings.js';
import { createErasureStore } from '../../store/corrections/erasures.js';
import { removeGroups } from '../../store/groups/restore-groups.js';
import { removeModels } from '../../store/models/model-store.js';
import { removeEndpoints } from '../../store/webhooks/endpoints.js';
import { selectRows } from '../../warehouse/clickhouse/client.js';
import { removeTenantFacts } from '../../warehouse/maintenance/tenant-facts.js';
import type { CommandContext } from '../support/command.js';

const allLearners = [...indices(maxLearners).map((i) => demoLearnerId(i + 1)), ...namedLearnerIds];

const selectForeignLearner = `SELECT user_id AS other FROM (
  SELECT tenant, user_id FROM attempts UNION ALL SELECT tenant, user_id FROM goal_changes
  UNION ALL SELECT tenant, user_id FROM archived_learner_skill
) WHERE tenant = {tenant:String} AND user_id NOT IN {allLearners:Array(String)} LIMIT 1`;

/**
 * True also for a partial demo: the import sets skills first, `removeDemo` removes them last.
 * @throws StartError if the tenant has other data
 */
export async function hasDemo({ skills, clickhouse }: Engine, tenant: string): Promise<boolean> {
  const demoSkills = drawSkills(0).map(({ id }) => id);
  const tenantSkills = await skills.list(tenant, null, demoSkills.length + 1);
  const options = { params: { tenant, allLearners } };
  const [found] = await selectRows<{ other: string }>(clickhouse, selectForeignLearner, options);
  const other = found?.other ?? tenantSkills.find((id) => !demoSkills.includes(id));
  if (other === undefined) return tenantSkills.length > 0;
  const reason = `Tenant ${tenant} has other data than a demo (${other})`;
  throw new StartError(`${reason}. Pass a different --tenant`);
}

/**
 * Each step can be repeated. Receipts of the erasures stay, without ids.
 * @returns number of erased learners; null after a signal
 */
export async function removeDemo(context: CommandContext, engine: Engine, tenant: string) {
  const { redis, clickhouse, partitions, endpoints } = engine;
  const store = createErasureStore(redis, partitions);
  const erasures = await Promise.all(allLearners.map((userId) => store.begin(tenant, userId, false)));
  if (erasures.some(({ status }) => status === 'full' || status === 'lost'))
    throw new StartError('Redis accepts no erasures now. Run the command again later');
  /** Two per learner: delete the rows, then verify. */
  const countErasureSteps = async (): Promise<number> => {
    const open = (await store.open()).filter(({ rows }) => rows.tenant === tenant);
    return open.length + open.filter(({ before }) => before === null).length;
  };
  const countPendingChanges = async () => (await engine.journal.facts()).journalLength;
  if (!(await waitUntilZero(context, 'erasure steps left', countErasureSteps))) return null;
  if (!(await waitUntilZero(context, 'changes waiting for ClickHouse', countPendingChanges))) return null;
  // Otherwise a later check for late rows would delete goals and forecasts of the next demo, which have past
  // times.
  const hashes = new Set(allLearners.map((userId) => hashLearner(tenant, userId)));
  for (const one of await store.listErased()) if (hashes.has(one.hash)) await store.recordCheck(one, true);
  await removeGroups(redis, tenant);
  await removeModels(redis, tenant);
  await removeEndpoints(redis, tenant);
  await removeMapping(redis, tenant);
  await removeTenantFacts(clickhouse, tenant, endpoints.clickhouseCluster);
  await removeCatalogue(redis, tenant);
  return erasures.filter(({ status }) => status !== 'absent').length;
}

const pollMs = 200;
/** Deletions are slow on a busy machine. */
const maxStallMs = 180_000;

/** @returns false after a signal @throws StartError if the count stops changing */
export async function waitUntilZero(
  { closers, showProgress }: CommandContext,
  label: string,
  count: () => Promise<number>,
): Promise<boolean> {
  let [lastCount, changedAt] = [0, performance.now()];
  for (let remaining = await count(); remaining > 0; remaining = await count()) {
    if (closers.closing) return false;
    if (remaining !== lastCount) [lastCount, changedAt] = [remaining, performance.now()];
    if (performance.now() - changedAt > maxStallMs)
      throw new StartError(
        `No progress for ${maxStallMs / 1000} s: ${formatNumber(remaining)} ${label}. Run the command with --reset`,
      );
    showProgress(`${formatNumber(remaining)} ${label}`);
    await sleep(pollMs);
  }
  return !closers.closing;
}
