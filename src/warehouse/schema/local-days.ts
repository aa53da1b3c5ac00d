/** Local days of times that have no `local_date`. They follow the tenant's current time zone. */
import { parseColumns, type View } from '../clickhouse/ddl.js';
import { tenantSettings } from './deployment-tables.js';

const lastColumn = (name: string): string => `argMax(s.${name}, s.updated_at) AS ${name}`;

export const timeZones: View = {
  name: 'time_zones',
  comment: 'Time zones of tenants; a tenant that is not listed has UTC',
  columns: [
    ...parseColumns('tenant LowCardinality(String) -- Owner of the learners'),
    ...tenantSettings.columns.filter(({ name }) => ['time_zone', 'starts', 'offsets'].includes(name)),
  ],
  query: `SELECT tenant, ${['time_zone', 'starts', 'offsets'].map(lastColumn).join(', ')}
FROM tenant_settings AS s GROUP BY tenant`,
};

/** @param time expression @param zones alias of `time_zones` in a LEFT JOIN: without a row, the offset is 0 */
export const toLocalDate = (time: string, zones = 'z'): string =>
  `toDate(addSeconds(${time}, ${zones}.offsets[arrayLastIndex(start -> start <= ${time}, ${zones}.starts)]))`;
