import type { CoverageBand } from '../../contracts/responses/models.js';
import { logLossClip } from '../../domain/base/prediction-metrics.js';
import { formatSqlTime } from '../clickhouse/client.js';
import { askedSkillCondition } from '../schema/attempt-tables.js';
import { buildCoverageQuery } from '../schema/forecast-views.js';
import { retainedCondition } from '../schema/rollups.js';
import { buildRecentParams, recentOutcomes } from './forecast-outcomes.js';
import type { TenantRead } from './tenant-read.js';

/** Answers by tenth of their served probability. `brier` and `log_loss` are means. */
export interface ReliabilityBin {
  /** 0 to 9. */
  readonly tenth: number;
  readonly answers: number;
  readonly accuracy: number;
  readonly p_correct: number;
  readonly brier: number;
  readonly log_loss: number;
}

/** The condition on `received_at` skips months. A caller's clock may be minutes ahead. */
const buildBinsQuery = (skillId: string | null): string => `
SELECT
  toUInt8(least(9, floor(10 * a.p_correct))) AS tenth, toUInt32(count()) AS answers, avg(is_correct) AS accuracy,
  avg(a.p_correct) AS p_correct, avg(pow(a.p_correct - is_correct, 2)) AS brier,
  avg(-log(greatest(if(is_correct = 1, a.p_correct, 1 - a.p_correct), ${logLossClip}))) AS log_loss
FROM attempts AS a
WHERE ${retainedCondition} AND tenant = {tenant:String} AND occurred_at >= {since:DateTime64(3, 'UTC')}
  AND received_at >= {since:DateTime64(3, 'UTC')} - INTERVAL 1 DAY${skillId === null ? '' : ` AND ${askedSkillCondition}`}
GROUP BY tenth ORDER BY tenth`;

const lastDayCondition = 'WHERE tenant = {tenant:String} AND made_day + forecast_days >= {since:Date}';
const selectBands = `
SELECT * EXCEPT (tenant) FROM (${buildCoverageQuery(lastDayCondition)}) ORDER BY forecast_days, history_from`;

const countRecentOutcomes = `
SELECT toUInt32(count()) AS outcomes, toUInt32(uniqExact(user_id)) AS learners FROM ${recentOutcomes}`;

export type OutcomeCounts = Readonly<Record<'outcomes' | 'learners', number>>;

export type ModelQuality = ReturnType<typeof createModelQuality>;

export const createModelQuality = (read: TenantRead) => ({
  /** @param skillId null: all skills @param since Unix milliseconds */
  fetchReliability: (tenant: string, skillId: string | null, since: number) =>
    read<ReliabilityBin>(buildBinsQuery(skillId), tenant, {
      since: formatSqlTime(since),
      ...(skillId && { skillId }),
    }),

  /** @param since earliest last day of a forecast, YYYY-MM-DD */
  fetchCoverage: (tenant: string, since: string): Promise<CoverageBand[]> =>
    read(selectBands, tenant, { since }),

  /** Outcomes that a recalibration would use. */
  countOutcomes: async (tenant: string, now: number) =>
    (await read<OutcomeCounts>(countRecentOutcomes, tenant, buildRecentParams(now)))[0] as OutcomeCounts,
});
