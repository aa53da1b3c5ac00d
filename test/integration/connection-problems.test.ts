/** Connections to Redis and ClickHouse that fail, and Redis over TLS. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { get } from 'node:https';
import type { AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { after, type TestContext, test } from 'node:test';
import { createServer as createTlsServer } from 'node:tls';
import { connectStateStore } from '../../src/app/startup/engine.js';
import { prepareSchema } from '../../src/app/startup/prepare-schema.js';
import { describeConnectionError } from '../../src/connection-problem.js';
import { startOnFreePort } from '../../src/embedded/free-port.js';
import { createClosers } from '../../src/lifecycle.js';
import { createLogger } from '../../src/logger.js';
import { endOf } from '../support/commands/command.js';
import { root } from '../support/runner/root.js';
import { freshDatabase } from '../support/servers/embedded.js';
import { tempDir } from '../support/temp.js';
import { waitFor } from '../support/wait.js';

/** No test listens on a port below 1000. */
const closedPort = 1;
/** Self-signed, for the host name `localhost`. */
const certificate = join(root, 'test/fixtures/tls/localhost/certificate.pem');
const key = join(root, 'test/fixtures/tls/localhost/key.pem');

const { redis, port, tlsPort } = await startOnFreePort((tls) =>
  startOnFreePort((plain) => startRedis(plain, tls)),
);
let server = redis;
after(() => server.kill('SIGKILL'));
const skip = tlsPort === null ? 'this redis-server has no TLS' : false;

async function startRedis(port: number, tlsPort: number) {
  const tls = ['--tls-port', `${tlsPort}`, '--tls-cert-file', certificate, '--tls-key-file', key];
  const started = await spawnRedis(port, [...tls, '--tls-auth-clients', 'no']);
  return { redis: started ?? (await startPlain(port)), port, tlsPort: started && tlsPort };
}

const startPlain = async (port: number): Promise<ChildProcess> =>
  (await spawnRedis(port, [])) ?? assert.fail('redis-server does not start');

/** With the passwords `one` of the default user and `two` of `bob`. @returns null if it ends */
async function spawnRedis(port: number, more: readonly string[]): Promise<ChildProcess | null> {
  const users = ['--requirepass', 'one', '--user', 'bob', 'on', '>two', '~*', '+@all'];
  const options = ['--port', `${port}`, '--bind', '127.0.0.1', '--save', '', ...users, ...more];
  const child = spawn('redis-server', options, { stdio: ['ignore', 'pipe', 'ignore'] });
  for await (const text of child.stdout as AsyncIterable<Buffer>)
    if (text.includes('Ready to accept connections')) return child;
  return null;
}

async function connect(t: TestContext, redisUrl: string, lines: string[] = []) {
  const logger = createLogger('info', 'test', { write: (line) => lines.push(JSON.parse(line).msg) });
  const closers = createClosers(logger);
  t.after(() => closers.close());
  const endpoints = { redisUrl, clickhouseUrl: `http://127.0.0.1:${closedPort}`, analystUrl: null };
  return connectStateStore(endpoints, { redisWaitReplicas: 0 }, logger, closers);
}

test('A start names a permanent problem of REDIS_URL without waiting, and no password', {
  skip,
}, async (t) => {
  const wrongPassword = 'wrong user name or password \\(WRONGPASS\\)';
  const cases: readonly (readonly [url: string, problem: string])[] = [
    [`redis://:wr0ng@127.0.0.1:${port}`, wrongPassword],
    [`redis://eve:wr0ng@127.0.0.1:${port}`, wrongPassword],
    [`redis://:wr0ng@127.0.0.1:${port},redis://:wr0ng@localhost:${port}`, wrongPassword],
    [`redis://127.0.0.1:${port}`, 'the server requires a password but the URL has none \\(NOAUTH\\)'],
    [
      `rediss://:wr0ng@127.0.0.1:${tlsPort}`,
      'certificate is not trusted; add its authority with NODE_EXTRA_CA_CERTS=FILE .*SELF_SIGNED',
    ],
    [`rediss://:wr0ng@127.0.0.1:${port}`, 'rediss:// but the server does not support TLS'],
    [`redis://:wr0ng@127.0.0.1:${tlsPort}`, 'redis:// but the server requires TLS'],
  ];
  for (const [url, problem] of cases) {
    const since = performance.now();
    const reached = 'REDIS_URL: cannot reach Redis at (127\\.0\\.0\\.1|localhost)';
    const message = new RegExp(`^(?!.*wr0ng)${reached}.*${problem}`, 's');
    await assert.rejects(connect(t, url), { name: 'StartError', message });
    // Problems that may pass are retried for 10 s.
    assert.ok(performance.now() - since < 9000, url);
  }
});

test('A start names a refused connection or an unknown host of REDIS_URL after retries', async (t) => {
  const refused = /connection refused \(ECONNREFUSED\)/;
  const cases: readonly (readonly [url: string, problem: RegExp])[] = [
    [`redis://127.0.0.1:${closedPort}`, refused],
    [`redis://127.0.0.1:${closedPort},redis://localhost:${closedPort}`, refused],
    ['redis://host.invalid', /(host not found|name resolution) \((ENOTFOUND|EAI_AGAIN)\)/],
  ];
  await Promise.all(cases.map(([url, problem]) => assert.rejects(connect(t, url), problem, url)));
});

test('npm start names a trusted certificate of another host', { skip }, async (t) => {
  const env = {
    ...{ PATH: process.env.PATH, NODE_EXTRA_CA_CERTS: certificate, PORT: '0', DATA_DIR: await tempDir(t) },
    REDIS_URL: `rediss://:wr0ng@127.0.0.1:${tlsPort}`,
    CLICKHOUSE_URL: `http://127.0.0.1:${closedPort}`,
  };
  const setup = join(root, 'src/setup.mjs');
  const { code, err } = await endOf(spawn(process.execPath, [setup, 'start'], { env }));
  assert.equal(code, 1);
  const problem = 'certificate is for another host name (ERR_TLS_CERT_ALTNAME_INVALID)';
  assert.ok(err.startsWith('REDIS_URL: ') && err.includes(problem), err);
});

test('The hot connection uses TLS, passwords and user names of REDIS_URL', { skip }, async () => {
  const source = (name: string) => JSON.stringify(import.meta.resolve(`../../src/store/redis/${name}.js`));
  // Reads NODE_EXTRA_CA_CERTS at its start. The value is larger than a TLS record.
  const program = `
    const { openHotConnection } = await import(${source('connection/hot-connection')});
    const { createCommandEncoder } = await import(${source('wire/command-encoder')});
    const hot = openHotConnection(process.argv[1], 0);
    await hot.waitUntilReady();
    const request = createCommandEncoder(64);
    for (const words of [['SET', 'large', '7'.repeat(100_000)], ['GET', 'large'], ['NOSUCHCOMMAND']]) {
      request.command(words.length, words[0]);
      for (const word of words.slice(1)) request.text(word);
    }
    const [, stored, unknown] = await hot.send(request);
    console.log(stored.length, unknown instanceof Error, hot.currentSocket().constructor.name);
    hot.close();`;
  const run = (url: string) => {
    const env = { ...process.env, NODE_EXTRA_CA_CERTS: certificate };
    return endOf(spawn(process.execPath, ['--input-type=module', '-e', program, url], { env }));
  };
  for (const login of [':one', 'bob:two']) {
    const { out, err } = await run(`rediss://${login}@localhost:${tlsPort}`);
    assert.equal(out, '100000 true TLSSocket\n', err);
  }
  for (const url of [`rediss://:wrong@localhost:${tlsPort}`, `redis://:one@localhost:${tlsPort}`])
    assert.match((await run(url)).err, /temporarily unavailable/, url);
});

test('The log names a lost connection to Redis once, and its return', async (t) => {
  const lines: string[] = [];
  await connect(t, `redis://:one@127.0.0.1:${port}`, lines);
  const exit = once(server, 'exit');
  server.kill('SIGKILL');
  await exit;
  const lost =
    'Redis is unreachable: connection refused (ECONNREFUSED); answers are rejected with 503 until it responds';
  await waitFor('the loss in the log', () => lines.includes(lost));
  server = await startPlain(port);
  await waitFor('the return in the log', () => lines.length > 1);
  assert.deepEqual(lines, [lost, 'Redis is reachable again']);
});

test('A start logs the problem of CLICKHOUSE_URL and continues', async (t) => {
  const { clickhouseUrl } = await freshDatabase();
  const cases: readonly (readonly [from: RegExp, to: string, problem: RegExp])[] = [
    [/:[^:@/]+@/, ':wr0ng@', /wrong user name or password \(516\)/],
    [/^http:/, 'https:', /the URL uses TLS but the server does not support TLS \(EPROTO\)/],
    [/:\d+\//, `:${closedPort}/`, /connection refused \(ECONNREFUSED\)/],
  ];
  for (const [from, to, problem] of cases) {
    const lines: string[] = [];
    const logger = createLogger('info', 'test', { write: (line) => lines.push(JSON.parse(line).msg) });
    const closers = createClosers(logger);
    t.after(() => closers.close());
    const endpoints = { redisUrl: '', clickhouseUrl: clickhouseUrl.replace(from, to), analystUrl: null };
    await prepareSchema(endpoints, logger, closers);
    assert.match(lines.join(), /^cannot prepare the ClickHouse schema yet, retrying: /);
    assert.match(lines.join(), problem);
    assert.doesNotMatch(lines.join(), /wr0ng/);
  }
});

test('describeConnectionError distinguishes a failed TLS handshake from a server without TLS', async (t) => {
  const options = { cert: readFileSync(certificate), key: readFileSync(key), minVersion: 'TLSv1.3' } as const;
  const server: ReturnType<typeof createServer> = createTlsServer(options).listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const request = get({ port, host: '127.0.0.1', rejectUnauthorized: false, maxVersion: 'TLSv1.2' });
  const [error] = await once(request, 'error');
  const { text, isPermanent } = describeConnectionError(error);
  assert.match(text, /alert protocol version/);
  assert.equal(isPermanent, false);
});
