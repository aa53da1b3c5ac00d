import type { ClickHouseClient } from '@clickhouse/client';
import { dayMs } from '../../domain/base/common.js';
import type { ForecastOutcome } from '../../domain/prediction/interval-calibration.js';
import { formatSqlTime, selectManyRows, selectRows } from '../clickhouse/client.js';

const recentDays = 180;
/** Copying more to another thread would block this one for more than 15 ms. */
const maxOutcomes = 20_000;

/**
 * Positions in default intervals do not apply to fitted intervals, nor the reverse: selects the kind of the last
 * forecast. A reach of 0 has no finite position.
 */
export const recentOutcomes = `forecast_outcomes WHERE tenant = {tenant:String} AND isFinite(position)
  AND (accuracy_cases > 0) =
    (SELECT argMax(f.accuracy_cases > 0, f.made_at) FROM served_forecasts AS f WHERE f.tenant = {tenant:String})
  AND made_day + forecast_days >= toDate({since:DateTime64(3, 'UTC')})`;

export const buildRecentParams = (now: number) => ({ since: formatSqlTime(now - recentDays * dayMs) });

interface ModelOutcome extends ForecastOutcome {
  /** Of the accuracy model. */
  readonly cases: number;
}

/** Complete learners, except the last: outcomes of a learner are not independent. */
const selectOutcomes = `SELECT user_id AS learner, history, forecast_days AS horizon, position, accuracy_cases AS cases,
  1000 * toFloat64(toUnixTimestamp(toDateTime(made_day + forecast_days + 1, 'UTC'))) AS completedAt
FROM ${recentOutcomes} ORDER BY cityHash64(user_id) LIMIT ${maxOutcomes}`;

export const createOutcomeReads = (client: ClickHouseClient) => ({
  read: (tenant: string, now: number, signal: AbortSignal): Promise<ModelOutcome[]> =>
    selectManyRows(client, selectOutcomes, { params: { tenant, ...buildRecentParams(now) }, signal }),
  listTenants: async (): Promise<string[]> => {
    const rows = await selectRows<{ tenant: string }>(client, 'SELECT DISTINCT tenant FROM served_forecasts');
    return rows.map(({ tenant }) => tenant);
  },
});
