/** Dockerfile, docker-compose.yml and docs/compose, without Docker. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { loadConfig } from '../../src/config.js';
import { defaultAnalystLimits } from '../../src/contracts/settings/analyst-limits.js';
import { analystTables } from '../../src/contracts/settings/analyst-tables.js';
import { environmentSchema } from '../../src/contracts/settings/environment.js';
import { maxListpackBytes, minRewriteSize } from '../../src/contracts/settings/redis-settings.js';
import { root } from '../support/runner/root.js';

interface ComposeService {
  readonly image: string;
  readonly build?: string | { readonly target: string };
  readonly command?: readonly string[];
  readonly entrypoint?: readonly string[];
  readonly environment?: Readonly<Record<string, string | number>>;
  readonly healthcheck: { readonly test: readonly string[] };
  readonly secrets?: readonly string[];
  readonly volumes?: readonly string[];
  readonly mem_limit: string;
  readonly pids_limit: number;
}

const text = (name: string): string => readFileSync(join(root, name), 'utf8');
const compose = parse(text('docker-compose.yml'), { merge: true });
const services = Object.entries<ComposeService>(compose.services);

const units = { m: 2 ** 20, g: 2 ** 30 };
function bytesOf(size: string): number {
  const [, number, unit] = /^(\d+)([mg])b?$/.exec(size) ?? [];
  assert.ok(number !== undefined, size);
  return Number(number) * units[unit as 'm' | 'g'];
}

/** A tag with a full version. Other tags move to other images. */
const exact = /^[\w./-]+:v?\d+\.\d+\.\d+[\w.-]*$/;

test('docker-compose.yml limits memory and processes of each service', () => {
  const names = ['api', 'clickhouse', 'grafana', 'import', 'pipeline', 'prometheus', 'redis'];
  assert.deepEqual(services.map(([name]) => name).sort(), names);
  for (const [name, { mem_limit, pids_limit }] of services) {
    assert.ok(bytesOf(mem_limit) >= units.g, name);
    assert.ok(pids_limit >= 64 && pids_limit <= 4096, name);
  }
});

test('docker-compose.yml and Dockerfile name exact versions of images', () => {
  const { version } = JSON.parse(text('package.json'));
  for (const [name, { image, build }] of services) {
    assert.match(image, exact, name);
    if (build === undefined) continue;
    assert.equal(image, `skilltrace${name === 'import' ? '-import' : ''}:${version}`);
    if (typeof build === 'object')
      assert.match(text('Dockerfile'), new RegExp(`^FROM \\w+ AS ${build.target}$`, 'm'));
  }
  const stages = new Set<string>();
  for (const [, image = '', stage] of text('Dockerfile').matchAll(/^FROM (\S+)(?: AS (\S+))?$/gm)) {
    if (!stages.has(image)) assert.match(image, exact);
    if (stage !== undefined) stages.add(stage);
  }
  assert.ok(stages.size > 0);
});

/** Paths of files of this repository that a service mounts. */
const findMounts = ({ volumes = [] }: ComposeService): string[] =>
  volumes.flatMap((volume) => /^\.\/([^:]+):[^:]+:ro$/.exec(volume)?.[1] ?? []);

test('docker-compose.yml mounts existing files of the repository read-only', () => {
  for (const [name, service] of services) {
    for (const file of findMounts(service)) assert.ok(existsSync(join(root, file)), file);
    const own = (service.volumes ?? []).filter((volume) => volume.startsWith('.'));
    assert.equal(own.length, findMounts(service).length, name);
  }
});

test('docker-compose.yml passes secrets of docs/operate/deploy.md as files, to the services that use them', () => {
  for (const [name, service] of services) {
    const { environment = {}, secrets = [], command, entrypoint, healthcheck } = service;
    for (const [variable, value] of Object.entries(environment)) {
      if (/PASSWORD|KEY|SECRET|URL/.test(variable)) assert.match(variable, /_FILE$/, `${name}: ${variable}`);
      const file = /^\/run\/secrets\/(.*)$/.exec(String(value))?.[1];
      if (variable.endsWith('_FILE')) assert.ok(file !== undefined && secrets.includes(file), variable);
    }
    for (const secret of secrets) {
      assert.equal(compose.secrets[secret].file, `./secrets/${secret}`);
      assert.ok(text('docs/operate/deploy.md').includes(`secrets/${secret}\n`), secret);
    }
    const files = findMounts(service).filter((file) => /\.\w+$/.test(file));
    const used = JSON.stringify([command, entrypoint, healthcheck, environment, files.map(text)]);
    for (const secret of secrets) assert.ok(used.includes(`/run/secrets/${secret}`), `${name}: ${secret}`);
  }
  const passwordInUrl = /:\/\/[^/\s]*:(?!PASSWORD@)[^/\s@]+@/;
  assert.doesNotMatch(text('docker-compose.yml'), passwordInUrl);
  for (const ignored of ['.gitignore', '.dockerignore']) assert.match(text(ignored), /^(secrets\/|\*)$/m);
});

test('docker-compose.yml runs Redis with persistence, noeviction and memory for a rewrite', () => {
  const { command, mem_limit } = compose.services.redis;
  const started = command.join(' ');
  assert.match(started, /--appendonly yes /);
  assert.match(started, /--maxmemory-policy noeviction /);
  assert.ok(started.includes(`--hash-max-listpack-value ${maxListpackBytes} `), started);
  assert.ok(started.includes(`--auto-aof-rewrite-min-size ${minRewriteSize} `), started);
  const maxmemory = bytesOf(/--maxmemory (\S+)/.exec(started)?.[1] ?? '');
  assert.ok(bytesOf(mem_limit) >= 2 * maxmemory + units.g / 2);
});

test('docker-compose.yml sets only settings that loadConfig accepts', () => {
  const known = Object.keys(environmentSchema.properties);
  for (const name of ['api', 'pipeline']) {
    const environment: Record<string, string | number> = compose.services[name].environment;
    for (const variable of Object.keys(environment)) assert.ok(known.includes(variable), variable);
    const plain = Object.entries(environment).filter(([variable]) => !variable.endsWith('_FILE'));
    const withDefault = (value: string | number) => `${value}`.replace(/^\$\{.*:-(.*)\}$/, '$1');
    const settings = plain.map(([variable, value]) => [variable, withDefault(value)]);
    assert.equal(loadConfig(Object.fromEntries(settings)).role, name);
  }
});

test('docs/compose/analyst.xml grants the tables and limits of the embedded analyst account', () => {
  const file = 'docs/compose/analyst.xml';
  const database = compose.services.clickhouse.environment.CLICKHOUSE_DB;
  const grants = analystTables.map((name) => `        <query>GRANT SELECT ON ${database}.${name}</query>\n`);
  const wanted = text(file).replace(
    /(<grants>\n).*?( *<\/grants>)/s,
    (_, start, end) => `${start}${grants.join('')}${end}`,
  );
  if (process.env.WRITE_DOCS === '1') writeFileSync(join(root, file), wanted);
  else assert.equal(text(file), wanted, `${file}: WRITE_DOCS=1 npm test -- unit/docker writes it`);
  const { seconds, memoryBytes } = defaultAnalystLimits;
  const limits = { max_execution_time: seconds, max_memory_usage: memoryBytes };
  for (const [name, value] of Object.entries(limits)) {
    assert.ok(wanted.includes(`<${name}>${value}</${name}>`), name);
    assert.ok(wanted.includes(`<${name}><min>1</min><max>${value}</max></${name}>`), name);
  }
});

test('ClickHouse of docker-compose.yml hashes the analyst password and does not start with an empty one', () => {
  const [, option = '', script = ''] = compose.services.clickhouse.entrypoint;
  const start = (password: string) => {
    const changed = script
      .replaceAll('$$', '$')
      .replace('$(cat /run/secrets/analyst_password)', password)
      .replace('exec /entrypoint.sh', 'exec printenv ANALYST_PASSWORD_SHA256');
    return spawnSync('bash', [option, changed], { encoding: 'utf8' });
  };
  const setting = '<password_sha256_hex from_env="ANALYST_PASSWORD_SHA256"/>';
  assert.ok(text('docs/compose/analyst.xml').includes(setting));
  assert.equal(start('5ecre7').stdout.trim(), createHash('sha256').update('5ecre7').digest('hex'));
  const { status, stdout, stderr } = start('');
  assert.notEqual(status, 0);
  assert.equal(stdout, '');
  assert.match(stderr, /secrets\/analyst_password is empty/);
});
