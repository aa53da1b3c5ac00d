import { type Static, type TSchemaOptions, Type } from 'typebox';
import { defaultAnalystLimits } from './analyst-limits.js';

const descriptions = {
  HOST: 'Listen address of the HTTP API.',
  PORT: 'Listen port of the HTTP API; startup fails if the port is in use.',
  API_PROCESSES: 'Number of API processes that share HOST:PORT; this process starts and supervises them.',
  LANES: 'Worker threads per process that count answers; 0: up to 4 by load, at most CPU cores minus 1.',
  DATA_DIR: 'Folder for the files of the embedded servers, the development key and endpoints.json.',
  API_KEYS: 'API keys to add at startup.',
  API_KEYS_FILE: 'File with API keys to add at startup.',
  REDIS_URL: 'Redis server; not set: starts an embedded Redis.',
  REDIS_URL_FILE: 'File that contains the value of REDIS_URL, to keep the password out of the environment.',
  REDIS_WAIT_REPLICAS: 'Number of replicas that must acknowledge an answer before the response is sent.',
  CLICKHOUSE_URL: 'ClickHouse server; not set: starts an embedded ClickHouse.',
  CLICKHOUSE_URL_FILE:
    'File that contains the value of CLICKHOUSE_URL, to keep the password out of the environment.',
  CLICKHOUSE_CLUSTER: 'ClickHouse cluster in which to create replicated and distributed tables.',
  EMBEDDED_REDIS_PORT: 'Loopback port of the embedded Redis.',
  EMBEDDED_CLICKHOUSE_PORT: 'Loopback port of the embedded ClickHouse.',
  EMBEDDED_REDIS_FSYNC:
    'When the embedded Redis syncs its file. A killed Redis loses up to 1 s of writes with everysec (2 s on a busy disk) and none with always.',
  EMBEDDED_REDIS_MAXMEMORY:
    'Memory limit of the embedded Redis; new answers are rejected shortly below it; not set: half of the memory of the machine or container.',
  ANALYST_MAX_SECONDS:
    'Time limit for an analyst query on the embedded ClickHouse, in seconds, until the client has the last row.',
  ANALYST_MAX_MEMORY: 'Memory limit for an analyst query on the embedded ClickHouse.',
  ANALYST_MAX_ROWS: 'Maximum rows that an analyst query on the embedded ClickHouse reads from all tables.',
  OUTBOX_MAX_ROWS: 'Maximum answers that wait for ClickHouse, divided evenly between the partitions.',
  MAX_SKILLS_PER_LEARNER: 'Maximum skills per learner; each read of a learner loads all of them.',
  MAX_SKILLS_PER_TENANT: 'Maximum skills per tenant, with answers or configuration.',
  FIT_INTERVAL_HOURS: 'Time between two fits of the model parameters, in hours.',
  AUDIT_INTERVAL_HOURS: 'Time between two audits of the stored answers, in hours.',
  ATTEMPT_RETENTION_DAYS:
    'Age at which stored answers and served forecasts are deleted, in days; whole months are deleted, sums remain.',
  WEBHOOK_ALLOW_PRIVATE: 'Allows webhooks over http and to private, loopback and link-local addresses.',
  ROLE: 'Role of this process; api and pipeline need both URLs, or the DATA_DIR of a running service.',
  SKILLS_FILE:
    'Skill catalogue to load at each startup; it overrides stored settings of the skills in the file.',
  LOG_LEVEL: 'Lowest level of logged messages.',
  OTEL_EXPORTER_OTLP_ENDPOINT: 'OTLP/HTTP receiver for traces; not set: no traces.',
  OTEL_TRACES_SAMPLER:
    'Trace sampler; with the prefix parentbased_, the sampling decision of the caller takes precedence.',
  OTEL_TRACES_SAMPLER_ARG: 'Share of requests and jobs that traceidratio traces.',
} as const;

export type EnvironmentName = keyof typeof descriptions;

const integer = (name: EnvironmentName, minimum: number, maximum: number, fallback: number, note = '') => {
  const allowed = `an integer from ${minimum} to ${maximum}${note}`;
  return Type.Integer({ minimum, maximum, default: fallback, description: descriptions[name], allowed });
};
const anyPort = ' (0: any free port)';

const text = (name: EnvironmentName, allowed: string, more: TSchemaOptions = {}) =>
  Type.String({ minLength: 1, description: descriptions[name], allowed, ...more });

const optional = (name: EnvironmentName, allowed: string, pattern?: string) =>
  Type.Optional(text(name, allowed, pattern === undefined ? {} : { pattern }));

const bytesAllowed = 'bytes, or a number followed by kb, mb or gb; at least 64mb';
const bytesPattern = '^\\d{1,15}([kmg]b)?$';

const oneOf = <const Values extends string[]>(
  name: EnvironmentName,
  values: readonly [...Values],
  fallback: Values[number],
) => {
  const allowed = `${values.slice(0, -1).join(', ')} or ${values.at(-1)}`;
  return Type.Enum(values, { default: fallback, description: descriptions[name], allowed });
};

export const environmentSchema = Type.Object({
  HOST: text('HOST', 'an IP address or a host name', {
    default: '127.0.0.1',
    pattern: '^[A-Za-z0-9.:_%-]+$',
  }),
  PORT: integer('PORT', 0, 65_535, 3000, anyPort),
  API_PROCESSES: integer('API_PROCESSES', 1, 64, 1),
  LANES: integer('LANES', 0, 16, 0),
  DATA_DIR: text('DATA_DIR', 'a folder that this user can write to and no other instance uses', {
    default: './data',
  }),
  API_KEYS: optional(
    'API_KEYS',
    'key[:tenant[:requests_per_minute]], separated by commas or lines; ' +
      'key and tenant: 1 to 128 characters of A-Za-z0-9._~-; requests_per_minute: 1 to 1000000000 (default 100)',
  ),
  API_KEYS_FILE: optional('API_KEYS_FILE', 'a readable file in the syntax of API_KEYS'),
  REDIS_URL: optional(
    'REDIS_URL',
    'a redis:// or rediss:// URL; several comma-separated URLs are nodes of a Redis Cluster',
  ),
  REDIS_URL_FILE: optional('REDIS_URL_FILE', 'a readable file; not together with REDIS_URL'),
  REDIS_WAIT_REPLICAS: integer('REDIS_WAIT_REPLICAS', 0, 10, 0, '; above 0 only with REDIS_URL'),
  CLICKHOUSE_URL: optional('CLICKHOUSE_URL', 'http(s)://user:password@host:8123/database'),
  CLICKHOUSE_URL_FILE: optional('CLICKHOUSE_URL_FILE', 'a readable file; not together with CLICKHOUSE_URL'),
  CLICKHOUSE_CLUSTER: optional(
    'CLICKHOUSE_CLUSTER',
    'name of a cluster in remote_servers, characters A-Za-z0-9_; only with CLICKHOUSE_URL',
    '^[A-Za-z_][A-Za-z0-9_]{0,63}$',
  ),
  EMBEDDED_REDIS_PORT: integer('EMBEDDED_REDIS_PORT', 0, 65_535, 0, anyPort),
  EMBEDDED_CLICKHOUSE_PORT: integer('EMBEDDED_CLICKHOUSE_PORT', 0, 65_535, 0, anyPort),
  EMBEDDED_REDIS_FSYNC: oneOf('EMBEDDED_REDIS_FSYNC', ['everysec', 'always'], 'everysec'),
  EMBEDDED_REDIS_MAXMEMORY: optional('EMBEDDED_REDIS_MAXMEMORY', bytesAllowed, bytesPattern),
  ANALYST_MAX_SECONDS: integer('ANALYST_MAX_SECONDS', 1, 3600, defaultAnalystLimits.seconds),
  ANALYST_MAX_MEMORY: text('ANALYST_MAX_MEMORY', bytesAllowed, {
    default: `${defaultAnalystLimits.memoryBytes / 2 ** 30}gb`,
    pattern: bytesPattern,
  }),
  ANALYST_MAX_ROWS: integer('ANALYST_MAX_ROWS', 0, 1e15, defaultAnalystLimits.rows, ' (0: no limit)'),
  OUTBOX_MAX_ROWS: integer('OUTBOX_MAX_ROWS', 16_000, 10_000_000_000, 4_000_000),
  MAX_SKILLS_PER_LEARNER: integer('MAX_SKILLS_PER_LEARNER', 1, 100_000, 2_000),
  MAX_SKILLS_PER_TENANT: integer('MAX_SKILLS_PER_TENANT', 1, 1_000_000, 50_000),
  FIT_INTERVAL_HOURS: integer('FIT_INTERVAL_HOURS', 0, 8760, 24, ' (0: only with npm run fit)'),
  AUDIT_INTERVAL_HOURS: integer('AUDIT_INTERVAL_HOURS', 0, 8760, 6, ' (0: only with npm run audit)'),
  ATTEMPT_RETENTION_DAYS: integer('ATTEMPT_RETENTION_DAYS', 0, 36_500, 0, ' (0: keep forever)'),
  WEBHOOK_ALLOW_PRIVATE: oneOf('WEBHOOK_ALLOW_PRIVATE', ['false', 'true'], 'false'),
  ROLE: oneOf('ROLE', ['all', 'api', 'pipeline'], 'all'),
  SKILLS_FILE: optional(
    'SKILLS_FILE',
    'a readable CSV or JSON file with skill_id and optionally tenant, name, section (math or rw), weight, ' +
      'p_init, p_learn, p_guess, p_slip, p_forget',
  ),
  LOG_LEVEL: oneOf('LOG_LEVEL', ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'], 'info'),
  OTEL_EXPORTER_OTLP_ENDPOINT: optional('OTEL_EXPORTER_OTLP_ENDPOINT', 'http(s)://host:4318'),
  OTEL_TRACES_SAMPLER: text('OTEL_TRACES_SAMPLER', '(parentbased_)always_on, always_off or traceidratio', {
    default: 'parentbased_traceidratio',
    pattern: '^(parentbased_)?(always_on|always_off|traceidratio)$',
  }),
  OTEL_TRACES_SAMPLER_ARG: text('OTEL_TRACES_SAMPLER_ARG', 'a number from 0 to 1', {
    default: '0.01',
    pattern: '^(0|0?\\.\\d{1,15}|1(\\.0{1,15})?)$',
  }),
});

export type Environment = Static<typeof environmentSchema>;
