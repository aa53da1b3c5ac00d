/** Servers that cannot be reached: which of many causes it is, told at the start, and at once where waiting is of no use. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { get } from 'node:https';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createServer as createTlsServer } from 'node:tls';
import { connectStateStore } from '../../src/app/startup/engine.js';
import { prepareSchema } from '../../src/app/startup/prepare-schema.js';
import { describeConnectionError } from '../../src/connection-problem.js';
import { createClosers, StartError } from '../../src/lifecycle.js';
import { createLogger } from '../../src/logger.js';
import { root } from '../support/runner/root.js';
import { freshDatabase } from '../support/servers/embedded.js';
import { tempDir } from '../support/temp.js';
import { waitFor } from '../support/wait.js';

const [plain, tls] = [await freePort(), await freePort()];
/** Other files are given any port from a thousand on. */
const free = 1;
/** Of `elsewhere.invalid`, signed by itself, good until 2126; made for these tests. */
const certificate = join(root, 'test/fixtures/tls/certificate.pem');
const key = join(root, 'test/fixtures/tls/key.pem');
const password = 'right-and-secret';

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

/** Serves both with and without TLS. */
function startRedis(): ChildProcess {
  const options = { port: plain, bind: '127.0.0.1', requirepass: password, save: '' };
  const secure = {
    'tls-port': tls,
    'tls-cert-file': certificate,
    'tls-key-file': key,
    'tls-auth-clients': 'no',
  };
  const words = Object.entries({ ...options, ...secure }).flatMap(([name, value]) => [
    `--${name}`,
    `${value}`,
  ]);
  return spawn('redis-server', words, { stdio: 'ignore' });
}

async function start(t: TestContext, redisUrl: string, lines: string[] = []) {
  const logger = createLogger('info', 'test', { write: (line) => lines.push(JSON.parse(line).msg) });
  const closers = createClosers(logger);
  t.after(() => closers.close());
  const endpoints = { redisUrl, clickhouseUrl: 'http://127.0.0.1:1', analystUrl: null };
  return connectStateStore(endpoints, { redisWaitReplicas: 0 }, logger, closers);
}

let redis = startRedis();
test.after(() => redis.kill('SIGKILL'));
await Promise.race([waitFor('Redis to listen', () => listens(tls)), once(redis, 'exit')]);
const skip = redis.exitCode === null ? false : 'this redis-server speaks no TLS';

/** Causes that no waiting mends. */
const atOnce: Readonly<Record<string, readonly [url: string, told: RegExp]>> = {
  'a wrong password': [`redis://:wr0ng@127.0.0.1:${plain}`, /wrong user name or password \(WRONGPASS\)/],
  'an unknown user': [`redis://eve:wr0ng@127.0.0.1:${plain}`, /wrong user name or password \(WRONGPASS\)/],
  'no password': [`redis://127.0.0.1:${plain}`, /a password is needed, and the URL has none \(NOAUTH\)/],
  'nodes of a Cluster and a wrong password': [
    `redis://:wr0ng@127.0.0.1:${plain},redis://:wr0ng@localhost:${plain}`,
    /wrong user name or password \(WRONGPASS\)/,
  ],
  'an untrusted certificate': [
    `rediss://:wr0ng@127.0.0.1:${tls}`,
    /certificate is not trusted: NODE_EXTRA_CA_CERTS=FILE .*\(DEPTH_ZERO_SELF_SIGNED_CERT\)/,
  ],
  'TLS where there is none': [
    `rediss://:wr0ng@127.0.0.1:${plain}`,
    /rediss:\/\/ but the server speaks no TLS/,
  ],
  'no TLS where there is one': [`redis://:wr0ng@127.0.0.1:${tls}`, /redis:\/\/ but the server wants TLS/],
};

for (const [name, [url, told]] of Object.entries(atOnce)) {
  test(`${name}: named within seconds`, { skip }, async (t) => {
    const since = performance.now();
    await assert.rejects(start(t, url), (error) => {
      assert.ok(error instanceof StartError);
      assert.match(error.message, /^REDIS_URL: Redis cannot be reached at (127\.0\.0\.1|localhost)/);
      assert.match(error.message, told);
      assert.doesNotMatch(error.message, /wr0ng/);
      return true;
    });
    assert.ok(performance.now() - since < 5000);
  });
}

/** Causes that may pass: waited for, then named. */
const inTheEnd: Readonly<Record<string, readonly [url: string, told: RegExp]>> = {
  'nobody listens': [`redis://127.0.0.1:${free}`, /connection refused \(ECONNREFUSED\)/],
  'nodes of which nobody listens': [
    `redis://127.0.0.1:${free},redis://localhost:${free}`,
    /connection refused \(ECONNREFUSED\)/,
  ],
  'no such host': ['redis://host.invalid', /host not found .*\((ENOTFOUND|EAI_AGAIN)\)/],
};

test('refused connections and unknown hosts are waited for and named', async (t) => {
  await Promise.all(
    Object.entries(inTheEnd).map(([name, [url, told]]) => assert.rejects(start(t, url), told, name)),
  );
});

test('a certificate of another host, by a process that trusts it', { skip }, async (t) => {
  const env = {
    ...{ PATH: process.env.PATH, NODE_EXTRA_CA_CERTS: certificate, PORT: '0' },
    ...{ REDIS_URL: `rediss://:wr0ng@127.0.0.1:${tls}`, CLICKHOUSE_URL: 'http://127.0.0.1:1' },
    DATA_DIR: await tempDir(t),
  };
  const main = join(root, 'src/setup.mjs');
  const child = spawn(process.execPath, [main, 'start'], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', (text) => {
    said += text;
  });
  const [code] = await once(child, 'close');
  assert.equal(code, 1);
  assert.match(
    said,
    /^REDIS_URL: .* its certificate is for another host name \(ERR_TLS_CERT_ALTNAME_INVALID\).*\n$/,
  );
});

test('a connection that is lost later is told of with its cause, and its end', { skip }, async (t) => {
  const lines: string[] = [];
  await start(t, `redis://:${password}@127.0.0.1:${plain}`, lines);
  const gone = once(redis, 'exit');
  redis.kill('SIGKILL');
  await gone;
  await waitFor('the loss to be told', () =>
    lines.includes('Redis cannot be reached: connection refused (ECONNREFUSED)'),
  );
  redis = startRedis();
  await waitFor('the return to be told', () => lines.includes('Redis can be reached again'));
  assert.equal(lines.length, 2, lines.join('\n'));
});

test('a ClickHouse that cannot be used does not stop a start, and the log says why', async (t) => {
  const { clickhouseUrl } = await freshDatabase();
  const change = (from: RegExp, to: string) => clickhouseUrl.replace(from, to);
  const causes: readonly (readonly [url: string, told: RegExp])[] = [
    [change(/:[^:@/]+@/, ':wr0ng@'), /wrong user name or password \(516\)/],
    [change(/^http:/, 'https:'), /the URL asks for TLS, the server speaks none \(EPROTO\)/],
    [change(/:\d+\//, `:${free}/`), /connection refused \(ECONNREFUSED\)/],
  ];
  for (const [url, told] of causes) {
    const lines: string[] = [];
    const logger = createLogger('info', 'test', { write: (line) => lines.push(JSON.parse(line).msg) });
    const closers = createClosers(logger);
    t.after(() => closers.close());
    await prepareSchema({ redisUrl: '', clickhouseUrl: url, analystUrl: null }, logger, closers);
    assert.match(lines.join(), /^the ClickHouse schema cannot be prepared yet: /);
    assert.match(lines.join(), told);
    assert.doesNotMatch(lines.join(), /wr0ng/);
  }
});

test('a failure of TLS is not taken for a server that speaks none', async (t) => {
  const server = createTlsServer({
    cert: readFileSync(certificate),
    key: readFileSync(key),
    minVersion: 'TLSv1.3',
  });
  server.listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const request = get({ port, host: '127.0.0.1', rejectUnauthorized: false, maxVersion: 'TLSv1.2' });
  const [error] = await once(request, 'error');
  assert.match(describeConnectionError(error).text, /alert protocol version/);
  assert.equal(describeConnectionError(error).isPermanent, false);
});

function listens(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  return new Promise<boolean>((resolve) => {
    socket.once('connect', () => resolve(true));
    socket.once('error', () => resolve(false));
  }).finally(() => socket.destroy());
}
