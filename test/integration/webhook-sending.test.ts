/** One webhook over the wire: what is sent, what counts as confirmed, and whither nothing is sent. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { createDeliveryPool } from '../../src/compute/thread-pools.js';
import type { DeliveryReply, DeliveryTask } from '../../src/contracts/webhooks/delivery-tasks.js';
import { createLogger } from '../../src/logger.js';
import { root } from '../support/runner/root.js';
import { exitAfterTests } from '../support/servers/linger.js';
import { startReceiver, verified } from '../support/servers/receiver.js';
import { waitFor } from '../support/wait.js';

exitAfterTests();

const thread = createDeliveryPool(64, createLogger('fatal', 'test'));
after(() => thread.close());

const secretOf = (text: string): string => `whsec_${Buffer.from(text.padEnd(24, '.')).toString('base64')}`;
const [secret, older] = [secretOf('new'), secretOf('old')];

const message = {
  id: 'msg_1',
  body: '{"type":"webhook.test","timestamp":"2026-01-01T00:00:00.000Z","data":{"name":"Zoë"}}',
};

const task = (url: string, change: Partial<DeliveryTask> = {}): DeliveryTask => ({
  ...{ url, secrets: [secret], allowPrivate: true, messages: [message] },
  ...change,
});

/** Sends a task of one message. */
const send = async (one: DeliveryTask) => (await thread.send(one))[0] as DeliveryReply;

test('a message is signed with each secret, as the public library tests it', async (t) => {
  const receiver = await startReceiver(t);
  const sent = task(receiver.url, { secrets: [secret, older] });
  assert.deepEqual(await send(sent), { status: 204, reason: null });
  const [one] = receiver.received;
  assert.ok(one);
  assert.equal(one.text, message.body);
  assert.equal(one.headers['content-type'], 'application/json');
  for (const known of [secret, older]) assert.deepEqual(verified(one, known), JSON.parse(message.body));
  assert.throws(() => verified(one, secretOf('another')));
  assert.throws(() => verified({ ...one, text: `${one.text} ` }, secret));
});

test('messages of a task go side by side, and each has its own reply', async (t) => {
  const held: (() => void)[] = [];
  const receiver = await startReceiver(t, {
    answer: ({ id }, response) => {
      held.push(() => response.writeHead(200 + Number(id)).end());
      // In another order than they came, and none before the last is there.
      if (held.length === 8) for (const release of held.reverse()) release();
    },
  });
  const messages = Array.from({ length: 8 }, (_, i) => ({ ...message, id: `${i}` }));
  const replies = await thread.send(task(receiver.url, { messages }));
  assert.deepEqual(
    replies,
    messages.map((_, i) => ({ status: 200 + i, reason: null })),
  );
  for (const one of receiver.received) assert.deepEqual(verified(one, secret), JSON.parse(message.body));
});

test('a redirect is not followed, and an error is a status', async (t) => {
  const target = await startReceiver(t);
  const receiver = await startReceiver(t, {
    answer: (_, response) => void response.writeHead(302, { location: target.url }).end(),
  });
  assert.deepEqual(await send(task(receiver.url)), { status: 302, reason: null });
  assert.equal(target.received.length, 0);
  receiver.answerWith(503);
  assert.deepEqual(await send(task(receiver.url)), { status: 503, reason: null });
});

test('of a response that never ends 64 KiB are read', async (t) => {
  let written = 0;
  const receiver = await startReceiver(t, {
    answer: (_, response) => {
      response.writeHead(200);
      const more = (): void => {
        while (!response.destroyed && written < 50 * 2 ** 20) {
          written += 2 ** 14;
          if (!response.write(Buffer.alloc(2 ** 14))) return void response.once('drain', more);
        }
      };
      more();
    },
  });
  assert.deepEqual(await send(task(receiver.url)), { status: 200, reason: null });
  assert.ok(written < 20 * 2 ** 20, `${written} bytes were taken`);
});

test('a receiver that hangs holds up nobody', async (t) => {
  const hanging = await startReceiver(t, { answer: () => undefined });
  const well = await startReceiver(t);
  const slow = Array.from({ length: 16 }, () => send(task(hanging.url)));
  for (let i = 0; i < 3; i++) assert.equal((await send(task(well.url))).status, 204);
  assert.equal(await Promise.race([...slow, Promise.resolve('all hang')]), 'all hang');
  await hanging.stop();
  for (const reply of await Promise.all(slow)) assert.equal(reply.status, null);
});

test('what hangs of a host holds up no other message to that host', async (t) => {
  const receiver = await startReceiver(t, {
    answer: ({ id }, response) => void (id === 'ok' && response.writeHead(204).end()),
  });
  const hanging = Array.from({ length: 16 }, (_, i) => ({ ...message, id: `${i}` }));
  const slow = Array.from({ length: 10 }, () => thread.send(task(receiver.url, { messages: hanging })));
  await waitFor('all that hang', () => receiver.received.length === 160);
  const well = task(receiver.url, { messages: [{ ...message, id: 'ok' }] });
  assert.deepEqual(await send(well), { status: 204, reason: null });
  await receiver.stop();
  await Promise.all(slow);
});

test('who cannot be reached, or cuts the response, has no status', async (t) => {
  const gone = await startReceiver(t);
  await gone.stop();
  assert.match(String((await send(task(gone.url))).reason), /ECONNREFUSED/);
  const cut = await startReceiver(t, { answer: (_, response) => void response.destroy() });
  assert.equal((await send(task(cut.url))).status, null);
});

test('a receiver that asks for another protocol has confirmed nothing', async (t) => {
  const head = 'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n';
  const receiver = await startReceiver(t, { answer: (_, { socket }) => void socket?.end(head) });
  const reason = 'the connection was closed without a response';
  assert.deepEqual(await send(task(receiver.url)), { status: null, reason });
});

test('a stop does not wait for a receiver that hangs', async (t) => {
  const receiver = await startReceiver(t, { answer: () => undefined });
  const other = createDeliveryPool(1, createLogger('fatal', 'test'));
  const sent = assert.rejects(other.send(task(receiver.url)), /Terminating/);
  await waitFor('the message', () => receiver.received.length === 1);
  await Promise.all([other.close(), sent]);
});

test('nothing is sent without TLS, or to an address that is not public, whatever its name', async (t) => {
  const receiver = await startReceiver(t);
  const { port } = receiver;
  const hosts = ['127.0.0.1', '[::1]', '[::ffff:127.0.0.1]', 'localhost', '169.254.169.254', '10.0.0.1', '0'];
  for (const host of hosts) {
    const reply = await send(task(`https://${host}:${port}/`, { allowPrivate: false }));
    assert.equal(reply.status, null);
    assert.match(String(reply.reason), /no public address/, host);
  }
  const plain = await send(task('http://example.org/', { allowPrivate: false }));
  assert.equal(plain.reason, 'https is needed');
  assert.equal(receiver.received.length, 0);
});

test('a certificate that nobody has signed is refused', async (t) => {
  const folder = join(root, 'test/fixtures/tls/localhost');
  const [key, cert] = ['key.pem', 'certificate.pem'].map((name) => readFileSync(join(folder, name)));
  const server = createServer({ key, cert }, (_, response) => response.end());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const reply = await send(task(`https://localhost:${port}/`));
  assert.equal(reply.status, null);
  assert.match(String(reply.reason), /certificate is not trusted/);
});
