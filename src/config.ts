import { accessSync, constants, readFileSync, statSync } from 'node:fs';
import { totalmem } from 'node:os';
import { resolve } from 'node:path';
import { Type } from 'typebox';
import { Value } from 'typebox/value';
import { defaultQuota, maxQuota } from './contracts/access/access.js';
import { plainName } from './contracts/schema/ids.js';
import {
  type Environment,
  type EnvironmentName,
  environmentSchema,
} from './contracts/settings/environment.js';
import { StartError } from './lifecycle.js';

/** `requestsPerMinute`: 1 to 10^9. */
export type ApiKeySetting = { key: string; tenant: string; requestsPerMinute: number };

export class ConfigError extends StartError {
  override readonly name = 'ConfigError';
}

type Source = Record<string, string | undefined>;
/** @param shown without secrets */
type ReportProblem = (name: EnvironmentName, shown: string, reason?: string) => void;

const { properties } = environmentSchema;
const names = Object.keys(properties) as EnvironmentName[];
const annotations = Type.Object({
  description: Type.String(),
  allowed: Type.String(),
  type: Type.Optional(Type.String()),
  default: Type.Optional(Type.Unknown()),
});
const getAnnotations = (name: EnvironmentName) => Value.Parse(annotations, properties[name]);

/**
 * An empty variable is unset.
 * @throws ConfigError with every wrong variable, its value without secrets, and the allowed values
 */
export function loadConfig(env: Source = process.env): Config {
  const problems: string[] = [];
  const complain: ReportProblem = (name, shown, reason) => {
    const why = reason === undefined ? '' : ` (${reason})`;
    problems.push(
      `${findSource(name, env)}: ${shown} is not allowed${why}; allowed: ${getAnnotations(name).allowed}`,
    );
  };
  const config = toConfig(readFiles(readValues(env, complain), complain), env, complain);
  if (problems.length > 0) throw new ConfigError(problems.join('\n'));
  return config;
}

export function describeSettings(): string {
  const lines = names.map((name) => {
    const { description, allowed, default: fallback } = getAnnotations(name);
    const shown = fallback === undefined ? 'not set' : String(fallback);
    return `  ${name} (default: ${shown})\n      ${description}\n      ${allowed}`;
  });
  return `Settings (environment variables):\n${lines.join('\n')}\n`;
}

/** Wrong values become defaults, so that all settings are checked. */
function readValues(env: Source, complain: ReportProblem): Environment {
  const values: Record<string, unknown> = {};
  for (const name of names) {
    const raw = readVariable(env, name);
    if (raw === undefined) continue;
    const value = getAnnotations(name).type === 'integer' && /^-?\d+$/.test(raw) ? Number(raw) : raw;
    if (Value.Check(properties[name], value)) values[name] = value;
    else complain(name, quote(raw));
  }
  return Value.Parse(environmentSchema, Value.Default(environmentSchema, values));
}

/** Settings with passwords. `*_FILE` names a file to read instead. */
const fileSettings = ['REDIS_URL', 'CLICKHOUSE_URL'] as const;

function readFiles(values: Environment, complain: ReportProblem): Environment {
  const read: Environment = { ...values };
  for (const name of fileSettings) {
    const fileName = `${name}_FILE` as const;
    const file = resolveReadableFile(fileName, values[fileName], complain);
    if (file === null) continue;
    const value = readFileSync(file, 'utf8').trim();
    if (values[name] !== undefined) complain(fileName, quote(file), `${name} is also set`);
    else if (value === '') complain(fileName, quote(file), 'the file is empty');
    else read[name] = value;
  }
  return read;
}

const findSource = (name: EnvironmentName, env: Source): string =>
  fileSettings.some((one) => one === name) && readVariable(env, name) === undefined ? `${name}_FILE` : name;

function readVariable(env: Source, name: EnvironmentName): string | undefined {
  const raw = env[name]?.trim();
  return raw === '' ? undefined : raw;
}

function toConfig(values: Environment, env: Source, complain: ReportProblem) {
  checkCombinations(values, complain);
  return {
    host: values.HOST,
    /** 0: any free port. */
    port: values.PORT,
    isPortSet: readVariable(env, 'PORT') !== undefined,
    apiProcesses: values.API_PROCESSES,
    dataDir: resolve(values.DATA_DIR),
    apiKeys: readKeys(values, complain),
    /** Comma-separated nodes for a cluster; null: embedded. */
    redisUrl: readRedisUrl(values.REDIS_URL, complain),
    redisWaitReplicas: values.REDIS_WAIT_REPLICAS,
    /** null: embedded. */
    clickhouseUrl: readClickhouseUrl(values.CLICKHOUSE_URL, complain),
    /** null: one server. */
    clickhouseCluster: values.CLICKHOUSE_CLUSTER ?? null,
    embeddedRedisPort: values.EMBEDDED_REDIS_PORT,
    embeddedClickhousePort: values.EMBEDDED_CLICKHOUSE_PORT,
    embeddedRedisFsync: values.EMBEDDED_REDIS_FSYNC,
    /** Bytes. */
    embeddedRedisMaxmemory: readMaxmemory(values.EMBEDDED_REDIS_MAXMEMORY, complain),
    analystLimits: {
      seconds: values.ANALYST_MAX_SECONDS,
      memoryBytes: readBytes('ANALYST_MAX_MEMORY', values.ANALYST_MAX_MEMORY, complain),
      rows: values.ANALYST_MAX_ROWS,
    },
    /** For all partitions together. */
    outboxMaxRows: values.OUTBOX_MAX_ROWS,
    /** Threads per API process; 0: depends on the load. */
    lanes: values.LANES,
    skillLimits: { perLearner: values.MAX_SKILLS_PER_LEARNER, perTenant: values.MAX_SKILLS_PER_TENANT },
    fitIntervalHours: values.FIT_INTERVAL_HOURS,
    auditIntervalHours: values.AUDIT_INTERVAL_HOURS,
    attemptRetentionDays: values.ATTEMPT_RETENTION_DAYS,
    webhookAllowPrivate: values.WEBHOOK_ALLOW_PRIVATE === 'true',
    role: values.ROLE,
    skillsFile: resolveReadableFile('SKILLS_FILE', values.SKILLS_FILE, complain),
    logLevel: values.LOG_LEVEL,
    tracing: readTracing(values, complain),
  };
}

export type Config = ReturnType<typeof toConfig>;

function checkCombinations(values: Environment, complain: ReportProblem): void {
  const taken = new Map<number, EnvironmentName>();
  for (const name of ['PORT', 'EMBEDDED_REDIS_PORT', 'EMBEDDED_CLICKHOUSE_PORT'] as const) {
    const port = values[name];
    const other = taken.get(port);
    if (other !== undefined) complain(name, String(port), `same port as ${other}`);
    if (port !== 0) taken.set(port, name);
  }
  const { REDIS_URL, REDIS_WAIT_REPLICAS, CLICKHOUSE_URL, CLICKHOUSE_CLUSTER } = values;
  if (REDIS_URL === undefined && REDIS_WAIT_REPLICAS > 0)
    complain('REDIS_WAIT_REPLICAS', `${REDIS_WAIT_REPLICAS}`, 'the embedded Redis has no replicas');
  if (CLICKHOUSE_URL === undefined && CLICKHOUSE_CLUSTER !== undefined)
    complain('CLICKHOUSE_CLUSTER', quote(CLICKHOUSE_CLUSTER), 'the embedded ClickHouse is a single server');
}

const unitBytes: Readonly<Record<string, number>> = { '': 1, kb: 2 ** 10, mb: 2 ** 20, gb: 2 ** 30 };
const minBytes = 64 * 2 ** 20;

function readMaxmemory(text: string | undefined, complain: ReportProblem): number {
  if (text !== undefined) return readBytes('EMBEDDED_REDIS_MAXMEMORY', text, complain);
  // Limit of the cgroup, if any.
  const limit = process.constrainedMemory() || Number.POSITIVE_INFINITY;
  return Math.floor(Math.min(limit, totalmem()) / 2);
}

/** Same units as Redis: 1kb is 1024 bytes. */
function readBytes(name: EnvironmentName, text: string, complain: ReportProblem): number {
  const [, digits, unit = ''] = /^(\d+)(\w*)$/.exec(text) ?? [];
  const bytes = Number(digits) * (unitBytes[unit] ?? Number.NaN);
  if (bytes < minBytes) complain(name, quote(text), 'too small');
  if (!Number.isSafeInteger(bytes)) complain(name, quote(text), 'too large');
  return bytes;
}

function readKeys(values: Environment, complain: ReportProblem): ApiKeySetting[] {
  const keys = new Map<string, ApiKeySetting>();
  const add = (name: EnvironmentName, list: string): void => {
    for (const [index, raw] of list.split(/[,\r\n]/).entries()) {
      const entry = raw.trim();
      const problem = entry === '' ? null : addKey(keys, entry);
      if (problem !== null) complain(name, `entry ${index + 1} ${maskKey(entry)}`, problem);
    }
  };
  add('API_KEYS', values.API_KEYS ?? '');
  const file = resolveReadableFile('API_KEYS_FILE', values.API_KEYS_FILE, complain);
  if (file !== null) add('API_KEYS_FILE', readFileSync(file, 'utf8').replace(/^\uFEFF/, ''));
  return [...keys.values()];
}

/** @returns null if the entry is valid */
function addKey(keys: Map<string, ApiKeySetting>, entry: string): string | null {
  const [key = '', tenant = 'default', quota = `${defaultQuota}`, ...rest] = entry.split(':');
  if (rest.length > 0) return 'more than three parts separated by colons';
  if (!plainName.test(key)) return 'invalid key';
  if (!plainName.test(tenant)) return 'invalid tenant';
  const requestsPerMinute = /^\d{1,10}$/.test(quota) ? Number(quota) : 0;
  if (requestsPerMinute < 1 || requestsPerMinute > maxQuota) return 'invalid requests_per_minute';
  const existing = keys.get(key) ?? { key, tenant, requestsPerMinute };
  keys.set(key, existing);
  const isSame = existing.tenant === tenant && existing.requestsPerMinute === requestsPerMinute;
  return isSame ? null : 'an earlier entry has the same key with other values';
}

/** A key with a colon looks like a key and a tenant: show only valid tenants and digits. */
function maskKey(entry: string): string {
  const [, ...parts] = entry.split(':');
  if (parts.length > 2) return '"***"';
  const [tenant, quota] = parts;
  const shown = [tenant !== undefined && plainName.test(tenant) && quota !== undefined ? tenant : '***'];
  if (quota !== undefined) shown.push(/^-?[\d.]*$/.test(quota) ? quota : '***');
  return `"${['***', ...(tenant === undefined ? [] : shown)].join(':')}"`;
}

function readRedisUrl(list: string | undefined, complain: ReportProblem): string | null {
  if (list === undefined) return null;
  const nodes = list
    .split(',')
    .map((node) => node.trim())
    .filter((node) => node !== '');
  const schemes = new Set(nodes.map((node) => checkRedisNode(node, nodes.length > 1, complain)));
  if (nodes.length === 0) complain('REDIS_URL', quote(list));
  if (schemes.size > 1 && !schemes.has(null))
    complain('REDIS_URL', 'a mix of redis:// and rediss://', 'use one scheme for all nodes');
  return nodes.join(',');
}

/** @returns null if the node is invalid */
function checkRedisNode(node: string, inCluster: boolean, complain: ReportProblem): string | null {
  const url = parseUrl(node);
  if (url === null || !['redis:', 'rediss:'].includes(url.protocol) || url.hostname === '') {
    complain('REDIS_URL', maskUrl(node));
    return null;
  }
  if (!/^\/?\d*$/.test(url.pathname)) {
    complain('REDIS_URL', maskUrl(node), 'the path must be a database number');
  } else if (inCluster && !['', '/', '/0'].includes(url.pathname)) {
    complain('REDIS_URL', maskUrl(node), 'a Redis Cluster has only database 0');
  }
  return url.protocol;
}

function readClickhouseUrl(raw: string | undefined, complain: ReportProblem): string | null {
  if (raw === undefined) return null;
  const url = parseUrl(raw);
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    complain('CLICKHOUSE_URL', maskUrl(raw));
  } else if (!/^(\/[^/]*)?$/.test(url.pathname)) {
    complain('CLICKHOUSE_URL', maskUrl(raw), 'the path must be a database name');
  }
  return raw;
}

function readTracing(
  { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, ...values }: Environment,
  complain: ReportProblem,
) {
  if (endpoint === undefined) return null;
  const isHttp = /^https?:\/\/[^?#]+$/.test(endpoint) && URL.canParse(endpoint);
  if (!isHttp) complain('OTEL_EXPORTER_OTLP_ENDPOINT', maskUrl(endpoint));
  const url = `${endpoint.replace(/\/+$/, '')}/v1/traces`;
  return { url, sampler: values.OTEL_TRACES_SAMPLER, ratio: Number(values.OTEL_TRACES_SAMPLER_ARG) };
}

const parseUrl = (raw: string): URL | null => (URL.canParse(raw) ? new URL(raw) : null);

/** A password may be before the last @, after a ?, or anywhere in a malformed URL. */
function maskUrl(raw: string): string {
  const [matched, scheme = '', login = '', place = '', query = ''] =
    /^([a-z+]+:\/\/)?(.*@)?([\w.-]*(?::\d*)?(?:\/\w*)?)(\?[^@]*)?$/is.exec(raw) ?? [];
  if (matched === undefined) return quote('***');
  return quote(`${scheme}${login && '***@'}${place}${query && '?***'}`);
}

function resolveReadableFile(
  name: EnvironmentName,
  path: string | undefined,
  complain: ReportProblem,
): string | null {
  if (path === undefined) return null;
  try {
    accessSync(path, constants.R_OK);
    if (statSync(path).isFile()) return resolve(path);
    complain(name, quote(path), 'not a file');
  } catch (error) {
    complain(name, quote(path), error instanceof Error ? error.message : String(error));
  }
  return null;
}

const quote = (value: string): string => JSON.stringify(value);

export const createChildEnvironment = (
  settings: Partial<Record<EnvironmentName, string>>,
): NodeJS.ProcessEnv => ({
  ...process.env,
  ...settings,
});
