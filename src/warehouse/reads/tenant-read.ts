import type { ClickHouseClient } from '@clickhouse/client';
import type { Limiter } from '../../concurrency.js';
import { rejectAsUnavailable } from '../../errors.js';
import { selectRows } from '../clickhouse/client.js';

const maxSeconds = 5;
/** Statements may contain the ids of a class with 2,000 members. */
const settings = {
  ...{ max_execution_time: maxSeconds, max_memory_usage: '1000000000', max_query_size: '2000000' },
  output_format_json_quote_64bit_integers: 0,
  date_time_output_format: 'iso',
} as const;

/**
 * @throws ApiError UNAVAILABLE if ClickHouse is unavailable, too many reads are running, or a limit is
 * exceeded
 */
export type TenantRead = <Row>(query: string, tenant: string, params?: object) => Promise<Row[]>;

export const createTenantRead =
  (client: ClickHouseClient, limit: Limiter): TenantRead =>
  (query, tenant, params = {}) =>
    limit(tenant, () => {
      const signal = AbortSignal.timeout(1000 * maxSeconds);
      return rejectAsUnavailable(
        selectRows(client, query, { params: { tenant, ...params }, settings, signal }),
      );
    });
