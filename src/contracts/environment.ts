import { type Static, type TProperties, type TSchemaOptions, Type } from 'typebox';

/** `description` says what a setting means, `allowed` which values it takes; both end up in help and errors. */
type Explained = TSchemaOptions & { description: string; allowed: string };

const port = (fallback: number, about: Explained) =>
  Type.Integer({ minimum: 0, maximum: 65535, default: fallback, ...about });
const text = (about: Explained) => Type.String({ minLength: 1, ...about });

const properties = {
  HOST: Type.String({
    default: '127.0.0.1',
    pattern: '^[A-Za-z0-9.:_%-]+$',
    description: 'address to listen on',
    allowed: 'an IP address or a host name',
  }),
  PORT: port(3000, {
    description: 'port to listen on; a taken port is an error',
    allowed: 'an integer from 0 to 65535 (0: any free port)',
  }),
  API_PROCESSES: Type.Integer({
    minimum: 1,
    maximum: 64,
    default: 1,
    description: 'API processes that share HOST:PORT, started and watched by this one',
    allowed: 'an integer from 1 to 64',
  }),
  LANES: Type.Integer({
    minimum: 0,
    maximum: 16,
    default: 0,
    description:
      'threads of a process that count answers; 0: as many as the load asks for, up to 4 and one fewer than CPU cores',
    allowed: 'an integer from 0 to 16',
  }),
  DATA_DIR: Type.String({
    minLength: 1,
    default: './data',
    description: "folder of the embedded servers' files, the development key and endpoints.json",
    allowed: 'a folder that this user may write and no other instance uses',
  }),
  API_KEYS: Type.Optional(
    text({
      description: 'API keys added at start',
      allowed:
        'comma- or line-separated key[:tenant[:requests_per_minute]]; ' +
        'key and tenant 1 to 128 of A-Za-z0-9._~-, requests_per_minute 1 to 1000000000 (default 100)',
    }),
  ),
  API_KEYS_FILE: Type.Optional(
    text({
      description: 'file with API keys added at start',
      allowed: 'a readable file in the syntax of API_KEYS',
    }),
  ),
  REDIS_URL: Type.Optional(
    text({
      description: 'Redis to use instead of the embedded one',
      allowed: 'redis:// or rediss:// with a host; several comma-separated ones are nodes of a Redis Cluster',
    }),
  ),
  REDIS_URL_FILE: Type.Optional(
    text({
      description: 'file with the value of REDIS_URL, which holds a password',
      allowed: 'a readable file; not beside REDIS_URL',
    }),
  ),
  REDIS_WAIT_REPLICAS: Type.Integer({
    minimum: 0,
    maximum: 10,
    default: 0,
    description: 'replicas of REDIS_URL that must have an answer before it is confirmed',
    allowed: 'an integer from 0 to 10; above 0 with REDIS_URL only',
  }),
  CLICKHOUSE_URL: Type.Optional(
    text({
      description: 'ClickHouse to use instead of the embedded one',
      allowed: 'http(s)://user:password@host:8123/database',
    }),
  ),
  CLICKHOUSE_URL_FILE: Type.Optional(
    text({
      description: 'file with the value of CLICKHOUSE_URL, which holds a password',
      allowed: 'a readable file; not beside CLICKHOUSE_URL',
    }),
  ),
  CLICKHOUSE_CLUSTER: Type.Optional(
    Type.String({
      pattern: '^[A-Za-z_][A-Za-z0-9_]{0,63}$',
      description: 'ClickHouse cluster on which the tables are made, replicated and distributed',
      allowed: 'name of a cluster in remote_servers, of A-Za-z0-9_; with CLICKHOUSE_URL only',
    }),
  ),
  EMBEDDED_REDIS_PORT: port(0, {
    description: 'loopback port of the embedded Redis',
    allowed: 'an integer from 0 to 65535 (0: any free port)',
  }),
  EMBEDDED_CLICKHOUSE_PORT: port(0, {
    description: 'loopback port of the embedded ClickHouse',
    allowed: 'an integer from 0 to 65535 (0: any free port)',
  }),
  EMBEDDED_REDIS_FSYNC: Type.Union([Type.Literal('everysec'), Type.Literal('always')], {
    default: 'everysec',
    description: 'what a killed embedded Redis may lose: its last second, or nothing',
    allowed: 'everysec or always',
  }),
  EMBEDDED_REDIS_MAXMEMORY: Type.Optional(
    Type.String({
      pattern: '^\\d{1,15}([kmg]b)?$',
      description:
        'memory that the embedded Redis may take: new answers are refused before; not set: half of what the machine, ' +
        'or the container, has',
      allowed: 'bytes, or a number with kb, mb or gb behind it; at least 64mb',
    }),
  ),
  OUTBOX_MAX_ROWS: Type.Integer({
    minimum: 16_000,
    maximum: 10_000_000_000,
    default: 4_000_000,
    description: 'bound on answers that wait for ClickHouse, shared evenly by the partitions',
    allowed: 'an integer from 16000 to 10000000000',
  }),
  MAX_SKILLS_PER_LEARNER: Type.Integer({
    minimum: 1,
    maximum: 100_000,
    default: 2_000,
    description: 'bound on the skills that one learner answers: each read of the learner takes them all',
    allowed: 'an integer from 1 to 100000',
  }),
  MAX_SKILLS_PER_TENANT: Type.Integer({
    minimum: 1,
    maximum: 1_000_000,
    default: 50_000,
    description: 'bound on the skills that a tenant knows, answered or set',
    allowed: 'an integer from 1 to 1000000',
  }),
  FIT_INTERVAL_HOURS: Type.Integer({
    minimum: 0,
    maximum: 8760,
    default: 24,
    description: "hours between two fits of the models' parameters",
    allowed: 'an integer from 0 to 8760 (0: no fits but by command)',
  }),
  AUDIT_INTERVAL_HOURS: Type.Integer({
    minimum: 0,
    maximum: 8760,
    default: 6,
    description: 'hours between two audits of what is stored',
    allowed: 'an integer from 0 to 8760 (0: no audits but by command)',
  }),
  ATTEMPT_RETENTION_DAYS: Type.Integer({
    minimum: 0,
    maximum: 36_500,
    default: 0,
    description: 'age from which stored answers and served forecasts are dropped, month by month; sums stay',
    allowed: 'an integer from 0 to 36500 (0: never)',
  }),
  ROLE: Type.Union([Type.Literal('all'), Type.Literal('api'), Type.Literal('pipeline')], {
    default: 'all',
    description: 'what this process does; api and pipeline need both URLs, or a DATA_DIR in use by a service',
    allowed: 'all, api or pipeline',
  }),
  SKILLS_FILE: Type.Optional(
    text({
      description: 'catalogue of skills, checked and set at each start; it wins for the skills that it names',
      allowed:
        'a readable CSV or JSON file with skill_id and, as wanted, tenant, name, section (math or rw), weight, ' +
        'p_init, p_learn, p_guess, p_slip',
    }),
  ),
  LOG_LEVEL: Type.Union(
    (['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const).map((level) =>
      Type.Literal(level),
    ),
    {
      default: 'info',
      description: 'least level that is logged',
      allowed: 'trace, debug, info, warn, error, fatal or silent',
    },
  ),
} satisfies TProperties;

/**
 * Every setting, named as its environment variable: the type, the check, the default and the help text.
 * What a pattern cannot say (URLs, keys, files) is checked in config.ts.
 */
export const environmentSchema = Type.Object(properties);

/** The settings after conversion from text and with defaults filled in. */
export type Environment = Static<typeof environmentSchema>;

export type EnvironmentName = keyof Environment;
