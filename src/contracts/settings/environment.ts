import { type Static, type TSchemaOptions, Type } from 'typebox';
import { defaultAnalystLimits } from './analyst-limits.js';

const descriptions = {
  HOST: 'address to listen on',
  PORT: 'port to listen on; a taken port is an error',
  API_PROCESSES: 'API processes that share HOST:PORT, started and watched by this one',
  LANES:
    'threads of a process that count answers; 0: as many as the load asks for, up to 4 and one fewer than CPU cores',
  DATA_DIR: "folder of the embedded servers' files, the development key and endpoints.json",
  API_KEYS: 'API keys added at start',
  API_KEYS_FILE: 'file with API keys added at start',
  REDIS_URL: 'Redis to use instead of the embedded one',
  REDIS_URL_FILE: 'file with the value of REDIS_URL, which holds a password',
  REDIS_WAIT_REPLICAS: 'replicas of REDIS_URL that must have an answer before it is confirmed',
  CLICKHOUSE_URL: 'ClickHouse to use instead of the embedded one',
  CLICKHOUSE_URL_FILE: 'file with the value of CLICKHOUSE_URL, which holds a password',
  CLICKHOUSE_CLUSTER: 'ClickHouse cluster on which the tables are made, replicated and distributed',
  EMBEDDED_REDIS_PORT: 'loopback port of the embedded Redis',
  EMBEDDED_CLICKHOUSE_PORT: 'loopback port of the embedded ClickHouse',
  EMBEDDED_REDIS_FSYNC:
    'what a killed embedded Redis may lose: its last second (two while the disk is busy), or nothing',
  EMBEDDED_REDIS_MAXMEMORY:
    'memory that the embedded Redis may take: new answers are refused before; not set: half of what the machine, ' +
    'or the container, has',
  ANALYST_MAX_SECONDS:
    "seconds that an analyst's query of the embedded ClickHouse may take, until the last row is with its reader",
  ANALYST_MAX_MEMORY: "memory that an analyst's query of the embedded ClickHouse may take",
  ANALYST_MAX_ROWS:
    "rows that an analyst's query of the embedded ClickHouse may read, in all tables together",
  OUTBOX_MAX_ROWS: 'bound on answers that wait for ClickHouse, shared evenly by the partitions',
  MAX_SKILLS_PER_LEARNER:
    'bound on the skills that one learner answers: each read of the learner takes them all',
  MAX_SKILLS_PER_TENANT: 'bound on the skills that a tenant knows, answered or set',
  FIT_INTERVAL_HOURS: "hours between two fits of the models' parameters",
  AUDIT_INTERVAL_HOURS: 'hours between two audits of what is stored',
  ATTEMPT_RETENTION_DAYS:
    'age from which stored answers and served forecasts are dropped, month by month; sums stay',
  WEBHOOK_ALLOW_PRIVATE:
    'whether webhooks may be sent over http, and to private, loopback and link-local addresses',
  ROLE: 'what this process does; api and pipeline need both URLs, or a DATA_DIR in use by a service',
  SKILLS_FILE: 'catalogue of skills, checked and set at each start; it wins for the skills that it names',
  LOG_LEVEL: 'least level that is logged',
  OTEL_EXPORTER_OTLP_ENDPOINT: 'receiver of traces, by OTLP over HTTP; not set: there are none',
  OTEL_TRACES_SAMPLER: 'what is traced; with parentbased_ as the caller says, where it says so',
  OTEL_TRACES_SAMPLER_ARG: 'share of requests and of jobs that traceidratio traces',
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

const bytesAllowed = 'bytes, or a number with kb, mb or gb behind it; at least 64mb';
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
  DATA_DIR: text('DATA_DIR', 'a folder that this user may write and no other instance uses', {
    default: './data',
  }),
  API_KEYS: optional(
    'API_KEYS',
    'comma- or line-separated key[:tenant[:requests_per_minute]]; ' +
      'key and tenant 1 to 128 of A-Za-z0-9._~-, requests_per_minute 1 to 1000000000 (default 100)',
  ),
  API_KEYS_FILE: optional('API_KEYS_FILE', 'a readable file in the syntax of API_KEYS'),
  REDIS_URL: optional(
    'REDIS_URL',
    'redis:// or rediss:// with a host; several comma-separated ones are nodes of a Redis Cluster',
  ),
  REDIS_URL_FILE: optional('REDIS_URL_FILE', 'a readable file; not beside REDIS_URL'),
  REDIS_WAIT_REPLICAS: integer('REDIS_WAIT_REPLICAS', 0, 10, 0, '; above 0 with REDIS_URL only'),
  CLICKHOUSE_URL: optional('CLICKHOUSE_URL', 'http(s)://user:password@host:8123/database'),
  CLICKHOUSE_URL_FILE: optional('CLICKHOUSE_URL_FILE', 'a readable file; not beside CLICKHOUSE_URL'),
  CLICKHOUSE_CLUSTER: optional(
    'CLICKHOUSE_CLUSTER',
    'name of a cluster in remote_servers, of A-Za-z0-9_; with CLICKHOUSE_URL only',
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
  ANALYST_MAX_ROWS: integer('ANALYST_MAX_ROWS', 0, 1e15, defaultAnalystLimits.rows, ' (0: any number)'),
  OUTBOX_MAX_ROWS: integer('OUTBOX_MAX_ROWS', 16_000, 10_000_000_000, 4_000_000),
  MAX_SKILLS_PER_LEARNER: integer('MAX_SKILLS_PER_LEARNER', 1, 100_000, 2_000),
  MAX_SKILLS_PER_TENANT: integer('MAX_SKILLS_PER_TENANT', 1, 1_000_000, 50_000),
  FIT_INTERVAL_HOURS: integer('FIT_INTERVAL_HOURS', 0, 8760, 24, ' (0: no fits but by command)'),
  AUDIT_INTERVAL_HOURS: integer('AUDIT_INTERVAL_HOURS', 0, 8760, 6, ' (0: no audits but by command)'),
  ATTEMPT_RETENTION_DAYS: integer('ATTEMPT_RETENTION_DAYS', 0, 36_500, 0, ' (0: never)'),
  WEBHOOK_ALLOW_PRIVATE: oneOf('WEBHOOK_ALLOW_PRIVATE', ['false', 'true'], 'false'),
  ROLE: oneOf('ROLE', ['all', 'api', 'pipeline'], 'all'),
  SKILLS_FILE: optional(
    'SKILLS_FILE',
    'a readable CSV or JSON file with skill_id and, as wanted, tenant, name, section (math or rw), weight, ' +
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
