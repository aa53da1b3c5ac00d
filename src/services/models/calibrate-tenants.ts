import { distinct } from '../../lists.js';
import type { FitDependencies } from './fit-models.js';

/**
 * Recalibrates the intervals of each tenant by its recent outcomes. A killed run leaves the previous or the next
 * calibration of a tenant.
 * @param now Unix milliseconds @throws after an abort; at the end if a tenant failed
 */
export async function calibrateTenants(
  { models, outcomes, openPool }: Pick<FitDependencies, 'models' | 'outcomes' | 'openPool'>,
  now: number,
  signal: AbortSignal,
  tenants?: readonly string[],
): Promise<void> {
  const selected =
    tenants ?? distinct([...(await outcomes.listTenants()), ...(await models.listCalibrated())]);
  if (selected.length === 0) return;
  const pool = openPool();
  const failures: unknown[] = [];
  try {
    for (const tenant of selected) {
      signal.throwIfAborted();
      try {
        const recent = await outcomes.read(tenant, now, signal);
        const calibration = await pool.run('calibrateIntervals', recent, now);
        await models.saveCalibration(
          tenant,
          calibration,
          recent.some(({ cases }) => cases > 0),
        );
      } catch (error) {
        failures.push(error);
      }
    }
  } finally {
    await pool.close();
  }
  if (failures.length > 0)
    throw new AggregateError(failures, `the recalibrations of ${failures.length} tenants failed`);
}
