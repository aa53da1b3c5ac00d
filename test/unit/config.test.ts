import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { totalmem } from 'node:os';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { buildDashboardLink, buildLocalUrl } from '../../src/app/startup/dashboard-link.js';
import { ConfigError, describeSettings, loadConfig } from '../../src/config.js';
import { environmentSchema } from '../../src/contracts/settings/environment.js';
import { parseRedisAddress } from '../../src/contracts/settings/redis-settings.js';
import { tempDir } from '../support/temp.js';

/** Message of the error, or an empty text. */
function findProblems(env: Record<string, string>): string {
  try {
    loadConfig(env);
    return '';
  } catch (error) {
    assert.ok(error instanceof ConfigError);
    return error.message;
  }
}

test('loadConfig has the defaults of the contract', () => {
  const { embeddedRedisMaxmemory, ...others } = loadConfig({});
  assert.ok(embeddedRedisMaxmemory > 64 * 2 ** 20 && embeddedRedisMaxmemory <= totalmem() / 2);
  assert.deepEqual(others, {
    host: '127.0.0.1',
    port: 3000,
    isPortSet: false,
    apiProcesses: 1,
    dataDir: resolve('data'),
    apiKeys: [],
    redisUrl: null,
    redisWaitReplicas: 0,
    clickhouseUrl: null,
    clickhouseCluster: null,
    embeddedRedisPort: 0,
    embeddedClickhousePort: 0,
    embeddedRedisFsync: 'everysec',
    analystLimits: { seconds: 60, memoryBytes: 2 ** 31, rows: 0 },
    outboxMaxRows: 4_000_000,
    lanes: 0,
    skillLimits: { perLearner: 2000, perTenant: 50_000 },
    fitIntervalHours: 24,
    auditIntervalHours: 6,
    attemptRetentionDays: 0,
    webhookAllowPrivate: false,
    role: 'all',
    skillsFile: null,
    logLevel: 'info',
    tracing: null,
  });
});

test('loadConfig treats an empty variable as not set', () => {
  const empty = Object.fromEntries(Object.keys(environmentSchema.properties).map((name) => [name, '']));
  assert.deepEqual(loadConfig(empty), loadConfig({}));
});

test('loadConfig parses valid values', async (t) => {
  const dir = await tempDir(t);
  const skills = join(dir, 'skills.csv');
  await writeFile(skills, 'skill_id\n');
  const config = loadConfig({
    HOST: '::',
    PORT: '0',
    API_PROCESSES: '64',
    DATA_DIR: dir,
    REDIS_URL: 'rediss://user:p%40ss@a:7000, rediss://b:7001',
    REDIS_WAIT_REPLICAS: '1',
    CLICKHOUSE_URL: 'https://u:p@ch:8443/learning',
    CLICKHOUSE_CLUSTER: 'main_1',
    EMBEDDED_REDIS_PORT: '65535',
    EMBEDDED_REDIS_FSYNC: 'always',
    EMBEDDED_REDIS_MAXMEMORY: '2gb',
    ANALYST_MAX_SECONDS: '300',
    ANALYST_MAX_MEMORY: '512mb',
    ANALYST_MAX_ROWS: '1000000000',
    MAX_SKILLS_PER_LEARNER: '7',
    OUTBOX_MAX_ROWS: '16000',
    ROLE: 'pipeline',
    SKILLS_FILE: skills,
    LOG_LEVEL: 'silent',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'https://user:token@collector:4318/tenant/',
    OTEL_TRACES_SAMPLER: 'traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '.25',
  });
  assert.equal(config.redisUrl, 'rediss://user:p%40ss@a:7000,rediss://b:7001');
  assert.equal(config.clickhouseUrl, 'https://u:p@ch:8443/learning');
  assert.equal(config.clickhouseCluster, 'main_1');
  assert.equal(config.embeddedRedisMaxmemory, 2 ** 31);
  assert.deepEqual(config.analystLimits, { seconds: 300, memoryBytes: 2 ** 29, rows: 1e9 });
  assert.deepEqual(config.skillLimits, { perLearner: 7, perTenant: 50_000 });
  const url = 'https://user:token@collector:4318/tenant/v1/traces';
  assert.deepEqual(config.tracing, { url, sampler: 'traceidratio', ratio: 0.25 });
  const { port, isPortSet, apiProcesses, role, skillsFile } = config;
  assert.deepEqual([port, isPortSet, apiProcesses, role, skillsFile], [0, true, 64, 'pipeline', skills]);
});

test('loadConfig reads API keys from API_KEYS and API_KEYS_FILE, each key once', async (t) => {
  const file = join(await tempDir(t), 'keys');
  await writeFile(file, '\uFEFFkey-c:school\r\n\nkey-a\n,key-d:school:1000000000,\n');
  const { apiKeys } = loadConfig({ API_KEYS: 'key-a, key-b:other:5,,', API_KEYS_FILE: file });
  assert.deepEqual(apiKeys, [
    { key: 'key-a', tenant: 'default', requestsPerMinute: 100 },
    { key: 'key-b', tenant: 'other', requestsPerMinute: 5 },
    { key: 'key-c', tenant: 'school', requestsPerMinute: 100 },
    { key: 'key-d', tenant: 'school', requestsPerMinute: 1_000_000_000 },
  ]);
});

test('loadConfig reads URLs from files, checks them like the variables, and never shows them', async (t) => {
  const dir = await tempDir(t);
  const write = async (name: string, text: string) => {
    await writeFile(join(dir, name), text);
    return join(dir, name);
  };
  const redis = await write('redis', '\uFEFFredis://:hunter2@a:7000,redis://b:7001\r\n');
  const clickhouse = await write('clickhouse', 'http://u:hunter2@ch:8123/learning\n');
  const files = { REDIS_URL_FILE: redis, CLICKHOUSE_URL_FILE: clickhouse };
  const { redisUrl, clickhouseUrl, redisWaitReplicas, clickhouseCluster } = loadConfig({
    ...files,
    REDIS_URL: ' ',
    REDIS_WAIT_REPLICAS: '1',
    CLICKHOUSE_CLUSTER: 'main',
  });
  assert.equal(redisUrl, 'redis://:hunter2@a:7000,redis://b:7001');
  assert.equal(clickhouseUrl, 'http://u:hunter2@ch:8123/learning');
  assert.deepEqual([redisWaitReplicas, clickhouseCluster], [1, 'main']);
  const wrong = await write('wrong', 'ftp://u:hunter2@h/a/b\n');
  const problems: [Record<string, string>, RegExp][] = [
    [{ REDIS_URL_FILE: wrong }, /^REDIS_URL_FILE: "\*\*\*" .*allowed: a redis:\/\//],
    [{ CLICKHOUSE_URL_FILE: wrong }, /^CLICKHOUSE_URL_FILE: .*allowed: http/],
    [{ CLICKHOUSE_URL_FILE: await write('none', '\n') }, /^CLICKHOUSE_URL_FILE: .*the file is empty/],
    [{ REDIS_URL_FILE: join(dir, 'nowhere') }, /^REDIS_URL_FILE: .*ENOENT/],
    [{ REDIS_URL_FILE: dir }, /^REDIS_URL_FILE: .*not a file/],
    [
      { ...files, REDIS_URL: 'redis://:hunter2@a' },
      /^REDIS_URL_FILE: .*REDIS_URL is also set.* not together with REDIS_URL$/,
    ],
    [{ ...files, CLICKHOUSE_URL: 'http://ch' }, /^CLICKHOUSE_URL_FILE: .*CLICKHOUSE_URL is also set/],
  ];
  for (const [env, message] of problems) {
    const text = findProblems(env);
    assert.match(text, message);
    assert.equal(text.split('\n').length, 1);
    assert.doesNotMatch(text, /hunter2/);
  }
});

const wrongValues: [name: string, value: string, shown: RegExp][] = [
  ['HOST', 'a b', /"a b"/],
  ['PORT', '65536', /"65536" .* 0 to 65535/],
  ['PORT', '3e3', /"3e3"/],
  ['API_PROCESSES', '0', /"0" .* 1 to 64/],
  ['API_KEYS', 'sec ret', /entry 1 "\*\*\*" .*invalid key/],
  ['API_KEYS', `ok,${'k'.repeat(129)}`, /entry 2 "\*\*\*"/],
  ['API_KEYS', 'k:t:0', /"\*\*\*:t:0" .*invalid requests_per_minute/],
  ['API_KEYS', 'k:t:1000000001', /1000000001/],
  ['API_KEYS', 'k::5', /invalid tenant/],
  ['API_KEYS', 'a:b:c:d', /more than three parts/],
  ['API_KEYS', 'k:t:5,k:t:6', /entry 2 .*the same key/],
  ['API_KEYS_FILE', '/nowhere/keys', /ENOENT/],
  ['API_KEYS_FILE', '/', /not a file/],
  ['REDIS_URL', 'http://localhost:6379', /"http:\/\/localhost:6379"/],
  ['REDIS_URL', 'redis://a:6379/x', /database number/],
  ['REDIS_URL', 'redis://a:1/1,redis://b:1', /only database 0/],
  ['REDIS_URL', 'redis://a:1,rediss://b:1', /mix/],
  ['REDIS_WAIT_REPLICAS', '11', /0 to 10/],
  ['REDIS_WAIT_REPLICAS', '1', /the embedded Redis has no replicas/],
  ['CLICKHOUSE_CLUSTER', 'a; DROP', /name of a cluster/],
  ['CLICKHOUSE_CLUSTER', 'main', /the embedded ClickHouse is a single server/],
  ['CLICKHOUSE_URL', 'tcp://h:9000', /"tcp:\/\/h:9000"/],
  ['CLICKHOUSE_URL', 'http://h:8123/a/b', /database name/],
  ['EMBEDDED_REDIS_PORT', '-1', /"-1"/],
  ['EMBEDDED_CLICKHOUSE_PORT', '3000', /same port as PORT/],
  ['EMBEDDED_REDIS_FSYNC', 'no', /everysec or always/],
  ['EMBEDDED_REDIS_MAXMEMORY', '63mb', /too small.*at least 64mb/],
  ['EMBEDDED_REDIS_MAXMEMORY', '9999999gb', /too large/],
  ['EMBEDDED_REDIS_MAXMEMORY', 'half', /kb, mb or gb/],
  ['ANALYST_MAX_SECONDS', '0', /1 to 3600/],
  ['ANALYST_MAX_MEMORY', '1gib', /kb, mb or gb/],
  ['ANALYST_MAX_ROWS', '-1', /0: no limit/],
  ['MAX_SKILLS_PER_LEARNER', '0', /1 to 100000/],
  ['MAX_SKILLS_PER_TENANT', '1000001', /1 to 1000000/],
  ['LANES', '17', /0 to 16/],
  ['OUTBOX_MAX_ROWS', '15999', /16000 to 10000000000/],
  ['FIT_INTERVAL_HOURS', '1.5', /0 to 8760/],
  ['AUDIT_INTERVAL_HOURS', '8761', /0 to 8760/],
  ['ROLE', 'worker', /all, api or pipeline/],
  ['SKILLS_FILE', '/nowhere/skills.csv', /ENOENT/],
  ['LOG_LEVEL', 'loud', /trace, debug/],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4318', /"collector:4318"/],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://user:hunter2@collector:99999', /"http:\/\/\*\*\*@collector:99999"/],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://collector/?token=hunter2', /"http:\/\/collector\/\?\*\*\*"/],
  ['OTEL_TRACES_SAMPLER', 'jaeger_remote', /always_on, always_off or traceidratio/],
  ['OTEL_TRACES_SAMPLER_ARG', '1e-2', /0 to 1/],
];
test('loadConfig rejects a wrong value with one line that names variable, value and allowed values', () => {
  for (const [name, value, shown] of wrongValues) {
    const line = findProblems({ [name]: value });
    assert.ok(line.startsWith(`${name}: `), `${name}=${value}: ${line}`);
    assert.match(line, shown);
    assert.match(line, /allowed: ./);
    assert.equal(line.split('\n').length, 1);
  }
  const several = findProblems({ PORT: 'x', ROLE: 'y', REDIS_URL: 'z', API_KEYS: 'a b' });
  const names = several.split('\n').map((line) => line.split(':')[0]);
  assert.deepEqual(names.sort(), ['API_KEYS', 'PORT', 'REDIS_URL', 'ROLE'], 'all wrong values together');
});

test('loadConfig shows no key and no password in its errors', () => {
  const keys = 'hunter2 x;hun:hunter2 x;hunter2:t:0;a:b:c:hunter2;a:b:hunter2;hunter2:a,hunter2:b';
  const settings: Record<string, string[]> = {
    API_KEYS: keys.split(';'),
    REDIS_URL: ['redis://:hunter2@h:99999', 'redis://:x/hunter2@h', 'http://hunter2@h', 'redis://:hunter2'],
    CLICKHOUSE_URL: ['http://u:hunter2@h:8123/a/b', 'http://u:hunter2', 'ftp://h?user=u&password=hunter2'],
  };
  for (const [name, values] of Object.entries(settings))
    for (const value of values) {
      const text = findProblems({ [name]: value });
      assert.notEqual(text, '', value);
      assert.doesNotMatch(text, /hunter2/);
    }
});

test('describeSettings explains every setting', () => {
  const help = describeSettings();
  for (const name of Object.keys(environmentSchema.properties))
    assert.match(help, new RegExp(`\\b${name} \\(`));
});

test('parseRedisAddress takes the login for all nodes from the first URL', () => {
  assert.deepEqual(parseRedisAddress('rediss://us%40er:p%3Aw@a:7000, rediss://b:7001'), {
    nodes: ['rediss://us%40er:p%3Aw@a:7000', 'rediss://b:7001'],
    login: { username: 'us@er', password: 'p:w', tls: {} },
  });
  assert.deepEqual(parseRedisAddress('redis://:secret@a').login, { password: 'secret' });
  assert.deepEqual(parseRedisAddress('redis://a').login, {});
});

test('buildDashboardLink contains the development key only in links to this machine', () => {
  const linkOf = (host: string): string | null => buildDashboardLink(buildLocalUrl(host, 3000), 'dev-1');
  assert.equal(linkOf('localhost'), 'http://localhost:3000/dashboard#key=dev-1');
  assert.equal(linkOf('0.0.0.0'), 'http://127.0.0.1:3000/dashboard#key=dev-1');
  for (const host of ['::1', '::']) assert.equal(linkOf(host), 'http://[::1]:3000/dashboard#key=dev-1');
  for (const host of ['192.0.2.1', 'school.example', '2001:db8::1']) assert.equal(linkOf(host), null);
});
