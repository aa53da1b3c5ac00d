/** Webhooks through the client, up to a receiver. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, test } from 'node:test';
import { transform } from 'esbuild';
import { Skilltrace, type WebhookMessage } from '../../src/client/index.js';
import { findFreePort } from '../../src/embedded/free-port.js';
import { listed } from '../support/listed.js';
import { root } from '../support/runner/root.js';
import { startFront } from '../support/servers/front.js';
import { startReceiver } from '../support/servers/receiver.js';
import { receiverOfDocs } from '../support/servers/receiver-of-docs.js';
import { keysOf, startService } from '../support/servers/service.js';
import { tempDir } from '../support/temp.js';
import { askUntil, waitFor } from '../support/wait.js';

const service = await startService({ after }, { webhookAllowPrivate: true });
const keys = await keysOf({ after }, service);
const { baseUrl } = service;
const connect = async (tenant: string): Promise<Skilltrace> =>
  new Skilltrace({ baseUrl, apiKey: await keys.add({ tenant }) });

test('Skilltrace creates, changes, tests, redelivers to and deletes a webhook', async (t) => {
  const client = await connect('whole');
  const receiver = await startReceiver(t);
  const setting = { url: receiver.url, event_types: ['goal.reached'] } as const;
  const { secret: first, ...made } = await client.createWebhook({ ...setting, description: undefined });
  const { secret: _, ...other } = await client.createWebhook(setting);
  const { webhook_id } = made;
  assert.deepEqual(await client.webhook(webhook_id), made);
  const both = [made, other].sort((a, b) => (a.webhook_id < b.webhook_id ? -1 : 1));
  assert.deepEqual((await client.webhooks()).webhooks, both);
  assert.deepEqual(await listed(client.allWebhooks({ limit: 1 })), both);
  const change = { event_types: ['*'], description: 'all of it' } as const;
  assert.deepEqual(await client.changeWebhook(webhook_id, change), { ...made, ...change });

  const { secret } = await client.rotateSecret(webhook_id, { revoke_old: true });
  assert.notEqual(secret, first);
  const ids = [await client.testWebhook(webhook_id), await client.testWebhook(webhook_id)].map(
    ({ message_id }) => message_id,
  );
  const [message] = (await receiver.payloads(2, secret)) as unknown as WebhookMessage[];
  assert.deepEqual([message?.type, message?.data], ['webhook.test', { webhook_id }]);
  await askUntil(
    'both deliveries',
    () => client.deliveries(webhook_id),
    ({ deliveries }) =>
      deliveries.every(({ status, last_status }) => `${status} ${last_status}` === 'delivered 204'),
  );
  const deliveries = await listed(client.allDeliveries(webhook_id, { limit: 1 }));
  assert.deepEqual(deliveries.map(({ message_id }) => message_id).sort(), ids.toSorted());
  const [message_id = ''] = ids;
  assert.deepEqual(await client.redeliver(webhook_id, message_id), { message_id });
  await receiver.payloads(3, secret);
  assert.equal(receiver.received[2]?.id, message_id);

  assert.deepEqual(await client.deleteWebhook(webhook_id), { webhook_id });
  const unknown = { code: 'WEBHOOK_NOT_FOUND', status: 404 };
  await assert.rejects(client.deliveries(webhook_id), unknown);
  await assert.rejects(client.redeliver(webhook_id, message_id), unknown);
});

test('Skilltrace repeats the creation of a webhook or message only if it had no effect', async (t) => {
  const front = await startFront(t, { baseUrl, key: await keys.add({ tenant: 'repeated' }) });
  const client = new Skilltrace({ baseUrl: front.baseUrl, retry: { firstDelayMs: 1 } });
  const limited = { status: 429, body: '{"error":{"code":"RATE_LIMITED","message":"slower"}}' };
  front.decide = (_, i) => (i === 0 ? limited : 'lost');
  const creation = client.createWebhook({ url: 'https://hooks.example.org', event_types: ['*'] });
  await assert.rejects(creation, { code: 'NETWORK_ERROR', tries: 2 });
  front.decide = () => null;
  const { webhooks } = await client.webhooks();
  assert.equal(webhooks.length, 1);
  const { webhook_id = '' } = webhooks[0] ?? {};
  front.decide = () => 'lost';
  await assert.rejects(client.testWebhook(webhook_id), { code: 'NETWORK_ERROR', tries: 1 });
  const before = front.passed.length;
  front.decide = (_, i) => (i === before ? 'lost' : null);
  assert.match((await client.rotateSecret(webhook_id)).secret, /^whsec_/);
  assert.equal((await client.deliveries(webhook_id)).deliveries.length, 1);
});

test('The receiver of docs/webhooks.md verifies messages, and handles a repeated message once', async (t) => {
  const client = await connect('receiver');
  const port = await findFreePort();
  const url = `http://127.0.0.1:${port}/hooks`;
  const { webhook_id, secret } = await client.createWebhook({ url, event_types: ['mastery.reached'] });
  const dir = await tempDir(t);
  symlinkSync(join(root, 'node_modules'), join(dir, 'node_modules'));
  const { code } = await transform(receiverOfDocs(), { loader: 'ts' });
  writeFileSync(join(dir, 'receiver.mjs'), code);
  const receiver = spawn(process.execPath, [join(dir, 'receiver.mjs')], {
    env: { PATH: process.env.PATH, WEBHOOK_SECRET: secret, PORT: `${port}` },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  t.after(() => receiver.kill('SIGKILL'));
  const lines: string[] = [];
  createInterface(receiver.stdout).on('line', (line) => lines.push(line));
  const sendUnsigned = () => fetch(url, { method: 'POST', body: '{}' }).catch(() => null);
  const rejected = await askUntil('the receiver', sendUnsigned, (response) => response !== null);
  assert.equal(rejected?.status, 400);

  await client.trackAnswers(Array(8).fill({ user_id: 'ada', skill_id: 'algebra', is_correct: true }));
  const isDelivered = async (): Promise<boolean> => {
    const { deliveries } = await client.deliveries(webhook_id);
    return deliveries.length === 1 && deliveries[0]?.status === 'delivered';
  };
  await waitFor('the message', isDelivered);
  const [message] = (await client.deliveries(webhook_id)).deliveries;
  await client.redeliver(webhook_id, `${message?.message_id}`);
  await waitFor('the repeated message', isDelivered);
  receiver.kill('SIGTERM');
  await once(receiver, 'close');
  assert.deepEqual(lines, ['ada has mastered algebra']);
});
