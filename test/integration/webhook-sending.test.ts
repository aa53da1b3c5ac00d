/** Sending webhook messages: signatures, confirmation, slow receivers, and blocked addresses. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { createDeliveryPool } from '../../src/compute/thread-pools.js';
import type { DeliveryReply, DeliveryTask } from '../../src/contracts/webhooks/delivery-tasks.js';
import { indices } from '../../src/lists.js';
import { createLogger } from '../../src/logger.js';
import { root } from '../support/runner/root.js';
import { listen } from '../support/servers/ports.js';
import { startReceiver, verified } from '../support/servers/receiver.js';
import { waitFor } from '../support/wait.js';

const logger = createLogger('fatal', 'test');
const pool = createDeliveryPool(64, logger);
after(() => pool.close());

const secretOf = (text: string): string => `whsec_${Buffer.from(text.padEnd(24, '.')).toString('base64')}`;
const [secret, older] = [secretOf('new'), secretOf('old')];
const message = {
  id: 'msg_1',
  body: '{"type":"webhook.test","timestamp":"2026-01-01T00:00:00.000Z","data":{"name":"Zoë"}}',
};
const payload = JSON.parse(message.body);
const taskTo = (url: string, change: Partial<DeliveryTask> = {}): DeliveryTask => ({
  ...{ url, secrets: [secret], allowPrivate: true, messages: [message] },
  ...change,
});
const send = async (task: DeliveryTask) => (await pool.send(task))[0] as DeliveryReply;
const sendTo = (url: string) => send(taskTo(url));

test('The delivery pool signs a message with each secret as the Standard Webhooks library expects', async (t) => {
  const receiver = await startReceiver(t);
  const reply = await send(taskTo(receiver.url, { secrets: [secret, older] }));
  assert.deepEqual(reply, { status: 204, reason: null });
  const [one] = receiver.received;
  assert.ok(one);
  assert.deepEqual([one.text, one.headers['content-type']], [message.body, 'application/json']);
  for (const each of [secret, older]) assert.deepEqual(verified(one, each), payload);
  assert.throws(() => verified(one, secretOf('another')));
  assert.throws(() => verified({ ...one, text: `${one.text} ` }, secret));
});

test('The delivery pool sends the messages of a task in parallel and returns each reply in order', async (t) => {
  const responses: (() => void)[] = [];
  const receiver = await startReceiver(t, {
    answer: ({ id }, response) => {
      responses.push(() => response.writeHead(200 + Number(id)).end());
      // Respond in reverse order, after the last request.
      if (responses.length === 8) for (const respond of responses.reverse()) respond();
    },
  });
  const messages = indices(8).map((i) => ({ ...message, id: `${i}` }));
  const replies = await pool.send(taskTo(receiver.url, { messages }));
  const expected = messages.map((_, i) => ({ status: 200 + i, reason: null }));
  assert.deepEqual(replies, expected);
  for (const one of receiver.received) assert.deepEqual(verified(one, secret), payload);
});

test('The delivery pool does not follow a redirect and returns error statuses', async (t) => {
  const target = await startReceiver(t);
  const receiver = await startReceiver(t, {
    answer: (_, response) => void response.writeHead(302, { location: target.url }).end(),
  });
  assert.deepEqual(await sendTo(receiver.url), { status: 302, reason: null });
  assert.equal(target.received.length, 0);
  receiver.answerWith(503);
  assert.deepEqual(await sendTo(receiver.url), { status: 503, reason: null });
});

test('The delivery pool stops reading a response that never ends', async (t) => {
  let written = 0;
  const receiver = await startReceiver(t, {
    answer: (_, response) => {
      response.writeHead(200);
      const writeMore = (): void => {
        while (!response.destroyed && written < 50 * 2 ** 20) {
          written += 2 ** 14;
          if (!response.write(Buffer.alloc(2 ** 14))) return void response.once('drain', writeMore);
        }
      };
      writeMore();
    },
  });
  assert.deepEqual(await sendTo(receiver.url), { status: 200, reason: null });
  assert.ok(written < 20 * 2 ** 20, `the receiver could write ${written} bytes`);
});

test('The delivery pool sends to other receivers and other messages while requests hang', async (t) => {
  const [hanging, healthy] = [await startReceiver(t, { answer: () => undefined }), await startReceiver(t)];
  const partly = await startReceiver(t, {
    answer: ({ id }, response) => void (id === 'ok' && response.writeHead(204).end()),
  });
  const slow: Promise<unknown>[] = indices(16).map(() => sendTo(hanging.url));
  const messages = indices(16).map((i) => ({ ...message, id: `${i}` }));
  slow.push(...indices(10).map(() => pool.send(taskTo(partly.url, { messages }))));
  await waitFor('hanging requests', () => partly.received.length === 160);
  for (const _ of indices(3)) assert.equal((await sendTo(healthy.url)).status, 204);
  const other = taskTo(partly.url, { messages: [{ ...message, id: 'ok' }] });
  assert.deepEqual(await send(other), { status: 204, reason: null });
  assert.equal(await Promise.race([...slow, 'all hang']), 'all hang');
  for (const receiver of [hanging, partly]) await receiver.stop();
  for (const reply of (await Promise.all(slow)).flat()) assert.equal((reply as DeliveryReply).status, null);
});

test('The delivery pool returns no status for an unreachable receiver or an incomplete response', async (t) => {
  const stopped = await startReceiver(t);
  await stopped.stop();
  assert.match(String((await sendTo(stopped.url)).reason), /ECONNREFUSED/);
  const cutting = await startReceiver(t, { answer: (_, response) => void response.destroy() });
  assert.equal((await sendTo(cutting.url)).status, null);
  const upgrade = 'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n';
  const upgrading = await startReceiver(t, { answer: (_, { socket }) => void socket?.end(upgrade) });
  const reason = 'the connection was closed without a response';
  assert.deepEqual(await sendTo(upgrading.url), { status: null, reason });
});

test('The delivery pool closes without waiting for a receiver that hangs', async (t) => {
  const receiver = await startReceiver(t, { answer: () => undefined });
  const other = createDeliveryPool(1, logger);
  const rejected = assert.rejects(other.send(taskTo(receiver.url)), /Terminating/);
  await waitFor('the message', () => receiver.received.length === 1);
  await Promise.all([other.close(), rejected]);
});

test('The delivery pool sends nothing by http or to private addresses unless they are allowed', async (t) => {
  const receiver = await startReceiver(t);
  const sendPublic = (url: string) => send(taskTo(url, { allowPrivate: false }));
  const hosts = ['127.0.0.1', '[::1]', '[::ffff:127.0.0.1]', 'localhost', '169.254.169.254', '10.0.0.1', '0'];
  for (const host of hosts) {
    const { status, reason } = await sendPublic(`https://${host}:${receiver.port}/`);
    assert.equal(status, null);
    assert.match(String(reason), /no public address/, host);
  }
  assert.equal((await sendPublic('http://example.org/')).reason, 'the URL must use https');
  assert.equal(receiver.received.length, 0);
});

test('The delivery pool rejects a self-signed certificate', async (t) => {
  const folder = join(root, 'test/fixtures/tls/localhost');
  const [key, cert] = ['key.pem', 'certificate.pem'].map((name) => readFileSync(join(folder, name)));
  const server = createServer({ key, cert }, (_, response) => response.end());
  const { status, reason } = await sendTo(`https://localhost:${await listen(t, server)}/`);
  assert.equal(status, null);
  assert.match(String(reason), /certificate is not trusted/);
});
