/** How what was predicted came out, over all learners of a tenant: probabilities of answers, intervals of forecasts. */
import type { Band } from '../../contracts/responses/models.js';
import { logLossClip } from '../../domain/base/metrics.js';
import { sqlTime } from '../clickhouse/client.js';
import { keptRows } from '../schema/rollups.js';
import { forecastCoverage } from '../schema/views.js';
import type { TenantRead } from './tenant-read.js';

/** Sums over the answers of which the probability served before them was in a tenth of 0 to 1. */
export interface ReliabilityBin {
  /** 0 to 9. */
  readonly tenth: number;
  readonly answers: number;
  readonly correct: number;
  /** Of the probabilities, of (p_correct - is_correct) squared, and of -ln of the probability of what happened. */
  readonly predicted: number;
  readonly squares: number;
  readonly nats: number;
}

/** An answer arrives no more than minutes before it was given: the day before leaves out months of arrival. */
const selectBins = (skillId: string | null): string => `
SELECT
  toUInt8(least(9, floor(10 * p_correct))) AS tenth, toUInt32(count()) AS answers, toUInt32(sum(is_correct)) AS correct,
  sum(p_correct) AS predicted, sum(pow(p_correct - is_correct, 2)) AS squares,
  sum(-log(greatest(if(is_correct = 1, p_correct, 1 - p_correct), ${logLossClip}))) AS nats
FROM attempts
WHERE ${keptRows} AND tenant = {tenant:String} AND occurred_at >= {since:DateTime64(3, 'UTC')}
  AND received_at >= {since:DateTime64(3, 'UTC')} - INTERVAL 1 DAY${skillId === null ? '' : ' AND skill_id = {skillId:String}'}
GROUP BY tenth ORDER BY tenth`;

const selectBands = `
SELECT * EXCEPT (tenant) FROM ${forecastCoverage.name} WHERE tenant = {tenant:String} ORDER BY forecast_days, history_from`;

export type ModelQuality = ReturnType<typeof createModelQuality>;

/** Its functions throw what the read throws. */
export const createModelQuality = (read: TenantRead) => ({
  /** Tenths with answers, lowest first. @param skillId null: all skills @param since Unix milliseconds */
  reliability: (tenant: string, skillId: string | null, since: number) =>
    read<ReliabilityBin>(selectBins(skillId), tenant, { since: sqlTime(since), ...(skillId && { skillId }) }),

  /** Rows of the view forecast_coverage, by horizon and history. */
  coverage: (tenant: string): Promise<Band[]> => read(selectBands, tenant),
});
