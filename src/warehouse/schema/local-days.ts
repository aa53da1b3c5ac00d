/** Local days of times that have no `local_date`. They follow the tenant's current time zone. */
import type { View } from '../clickhouse/ddl.js';
import { pickColumns, selectLastChanges } from './current-views.js';
import { tenantSettings } from './deployment-tables.js';

export const timeZones: View = {
  name: 'time_zones',
  comment: 'Time zones of tenants; a tenant that is not listed has UTC',
  columns: pickColumns(tenantSettings, 'tenant', 'time_zone', 'starts', 'offsets'),
  query: `SELECT tenant, last.1 AS time_zone, last.2 AS starts, last.3 AS offsets
FROM ${selectLastChanges(tenantSettings.name, 'tenant', 'time_zone, starts, offsets')}`,
};

/** Needs a LEFT JOIN with `time_zones AS z`: without a row, the offset is 0. @param time expression */
export const toLocalDate = (time: string): string =>
  `toDate(addSeconds(${time}, z.offsets[arrayLastIndex(start -> start <= ${time}, z.starts)]))`;
