/** What an answer costs until it is acknowledged; draining it into ClickHouse is a figure of its own. */
export const acceptingParts: readonly string[] = [
  'front end',
  'workers',
  'forecast',
  'runtime',
  'libuv',
  'rest',
  'server',
  'redis',
];
/** What drains; Redis takes part in both. */
export const drainingParts: readonly string[] = ['pipeline', 'clickhouse'];
