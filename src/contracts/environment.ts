import { type Static, type TProperties, type TSchemaOptions, Type } from 'typebox';

/** `description` says what a setting means, `allowed` which values it takes; both end up in help and errors. */
type Explained = TSchemaOptions & { description: string; allowed: string };

/** @param note on what a value among the allowed ones means */
const integer = (minimum: number, maximum: number, fallback: number, description: string, note = '') => {
  const allowed = `an integer from ${minimum} to ${maximum}${note}`;
  return Type.Integer({ minimum, maximum, default: fallback, description, allowed });
};
const port = (fallback: number, description: string) =>
  integer(0, 65_535, fallback, description, ' (0: any free port)');
const text = (about: Explained) => Type.Optional(Type.String({ minLength: 1, ...about }));
const oneOf = <const Values extends string[]>(
  values: readonly [...Values],
  fallback: Values[number],
  description: string,
) => {
  const allowed = `${values.slice(0, -1).join(', ')} or ${values.at(-1)}`;
  return Type.Enum(values, { default: fallback, description, allowed });
};

const properties = {
  HOST: Type.String({
    default: '127.0.0.1',
    pattern: '^[A-Za-z0-9.:_%-]+$',
    description: 'address to listen on',
    allowed: 'an IP address or a host name',
  }),
  PORT: port(3000, 'port to listen on; a taken port is an error'),
  API_PROCESSES: integer(1, 64, 1, 'API processes that share HOST:PORT, started and watched by this one'),
  LANES: integer(
    0,
    16,
    0,
    'threads of a process that count answers; 0: as many as the load asks for, up to 4 and one fewer than CPU cores',
  ),
  DATA_DIR: Type.String({
    minLength: 1,
    default: './data',
    description: "folder of the embedded servers' files, the development key and endpoints.json",
    allowed: 'a folder that this user may write and no other instance uses',
  }),
  API_KEYS: text({
    description: 'API keys added at start',
    allowed:
      'comma- or line-separated key[:tenant[:requests_per_minute]]; ' +
      'key and tenant 1 to 128 of A-Za-z0-9._~-, requests_per_minute 1 to 1000000000 (default 100)',
  }),
  API_KEYS_FILE: text({
    description: 'file with API keys added at start',
    allowed: 'a readable file in the syntax of API_KEYS',
  }),
  REDIS_URL: text({
    description: 'Redis to use instead of the embedded one',
    allowed: 'redis:// or rediss:// with a host; several comma-separated ones are nodes of a Redis Cluster',
  }),
  REDIS_URL_FILE: text({
    description: 'file with the value of REDIS_URL, which holds a password',
    allowed: 'a readable file; not beside REDIS_URL',
  }),
  REDIS_WAIT_REPLICAS: integer(
    0,
    10,
    0,
    'replicas of REDIS_URL that must have an answer before it is confirmed',
    '; above 0 with REDIS_URL only',
  ),
  CLICKHOUSE_URL: text({
    description: 'ClickHouse to use instead of the embedded one',
    allowed: 'http(s)://user:password@host:8123/database',
  }),
  CLICKHOUSE_URL_FILE: text({
    description: 'file with the value of CLICKHOUSE_URL, which holds a password',
    allowed: 'a readable file; not beside CLICKHOUSE_URL',
  }),
  CLICKHOUSE_CLUSTER: Type.Optional(
    Type.String({
      pattern: '^[A-Za-z_][A-Za-z0-9_]{0,63}$',
      description: 'ClickHouse cluster on which the tables are made, replicated and distributed',
      allowed: 'name of a cluster in remote_servers, of A-Za-z0-9_; with CLICKHOUSE_URL only',
    }),
  ),
  EMBEDDED_REDIS_PORT: port(0, 'loopback port of the embedded Redis'),
  EMBEDDED_CLICKHOUSE_PORT: port(0, 'loopback port of the embedded ClickHouse'),
  EMBEDDED_REDIS_FSYNC: oneOf(
    ['everysec', 'always'],
    'everysec',
    'what a killed embedded Redis may lose: its last second, or nothing',
  ),
  EMBEDDED_REDIS_MAXMEMORY: Type.Optional(
    Type.String({
      pattern: '^\\d{1,15}([kmg]b)?$',
      description:
        'memory that the embedded Redis may take: new answers are refused before; not set: half of what the machine, ' +
        'or the container, has',
      allowed: 'bytes, or a number with kb, mb or gb behind it; at least 64mb',
    }),
  ),
  OUTBOX_MAX_ROWS: integer(
    16_000,
    10_000_000_000,
    4_000_000,
    'bound on answers that wait for ClickHouse, shared evenly by the partitions',
  ),
  MAX_SKILLS_PER_LEARNER: integer(
    1,
    100_000,
    2_000,
    'bound on the skills that one learner answers: each read of the learner takes them all',
  ),
  MAX_SKILLS_PER_TENANT: integer(
    1,
    1_000_000,
    50_000,
    'bound on the skills that a tenant knows, answered or set',
  ),
  FIT_INTERVAL_HOURS: integer(
    0,
    8760,
    24,
    "hours between two fits of the models' parameters",
    ' (0: no fits but by command)',
  ),
  AUDIT_INTERVAL_HOURS: integer(
    0,
    8760,
    6,
    'hours between two audits of what is stored',
    ' (0: no audits but by command)',
  ),
  ATTEMPT_RETENTION_DAYS: integer(
    0,
    36_500,
    0,
    'age from which stored answers and served forecasts are dropped, month by month; sums stay',
    ' (0: never)',
  ),
  ROLE: oneOf(
    ['all', 'api', 'pipeline'],
    'all',
    'what this process does; api and pipeline need both URLs, or a DATA_DIR in use by a service',
  ),
  SKILLS_FILE: text({
    description: 'catalogue of skills, checked and set at each start; it wins for the skills that it names',
    allowed:
      'a readable CSV or JSON file with skill_id and, as wanted, tenant, name, section (math or rw), weight, ' +
      'p_init, p_learn, p_guess, p_slip',
  }),
  LOG_LEVEL: oneOf(
    ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
    'info',
    'least level that is logged',
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
