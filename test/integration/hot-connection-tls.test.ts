/** The connection of answers is encrypted and authenticated as every other. */
import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startOnFreePort } from '../../src/embedded/free-port.js';
import { root } from '../support/runner/root.js';

/** Of `localhost`, signed by itself, good for a hundred years; made for these tests. */
const folder = join(root, 'test/fixtures/tls/localhost');
const certificate = join(folder, 'certificate.pem');
const program = fileURLToPath(new URL('../support/servers/hot-over-tls.js', import.meta.url));

/** @returns null where this redis-server was built without TLS */
async function startRedis(port: number): Promise<ChildProcess | null> {
  const secure = ['--tls-cert-file', certificate, '--tls-key-file', join(folder, 'key.pem')];
  const users = ['--requirepass', 'one', '--user', 'bob', 'on', '>two', '~*', '+@all'];
  const words = ['--port', '0', '--tls-port', `${port}`, '--tls-auth-clients', 'no', ...secure, ...users];
  const child = spawn('redis-server', [...words, '--save', ''], { stdio: ['ignore', 'pipe', 'ignore'] });
  for await (const text of child.stdout as AsyncIterable<Buffer>)
    if (text.includes('Ready to accept connections')) return child;
  return null;
}

/** @returns what it says where it fails */
const send = (url: string): Promise<string> =>
  new Promise((resolve) => {
    const env = { ...process.env, NODE_EXTRA_CA_CERTS: certificate };
    execFile(process.execPath, [program, url], { env, timeout: 20_000 }, (error, _, said) =>
      resolve(error === null ? '' : said),
    );
  });

test('over TLS, with a password and with a name', { timeout: 60_000 }, async (t) => {
  let port = 0;
  const redis = await startOnFreePort((free) => {
    port = free;
    return startRedis(free);
  });
  if (redis === null) return t.skip('this redis-server knows no TLS');
  t.after(async () => {
    redis.kill('SIGKILL');
    await once(redis, 'exit');
  });
  for (const login of [':one', 'bob:two'])
    assert.equal(await send(`rediss://${login}@localhost:${port}`), '');
  assert.match(await send(`rediss://:wrong@localhost:${port}`), /not available/);
  assert.match(await send(`redis://:one@localhost:${port}`), /not available/);
});
