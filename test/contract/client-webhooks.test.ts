/** Webhooks by the client's operations, up to a receiver: that of docs/webhooks.md among them. */
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
const clientIn = async (tenant: string): Promise<Skilltrace> =>
  new Skilltrace({ baseUrl, apiKey: await keys.add({ tenant }) });
const unknown = { code: 'WEBHOOK_NOT_FOUND', status: 404 };

test('an endpoint from its creation to its end', async (t) => {
  const client = await clientIn('whole');
  const receiver = await startReceiver(t);
  const setting = { url: receiver.url, event_types: ['goal.reached'] } as const;
  const { secret: first, ...made } = await client.createWebhook({ ...setting, description: undefined });
  const { secret: _, ...other } = await client.createWebhook(setting);
  assert.deepEqual(await client.webhook(made.webhook_id), made);
  const both = [made, other].sort((a, b) => (a.webhook_id < b.webhook_id ? -1 : 1));
  assert.deepEqual((await client.webhooks()).webhooks, both);
  assert.deepEqual(await listed(client.allWebhooks({ limit: 1 })), both);
  const change = { event_types: ['*'], description: 'all of it' } as const;
  assert.deepEqual(await client.changeWebhook(made.webhook_id, change), { ...made, ...change });

  const { secret } = await client.rotateSecret(made.webhook_id, { revoke_old: true });
  assert.notEqual(secret, first);
  const sent = [await client.testWebhook(made.webhook_id), await client.testWebhook(made.webhook_id)];
  const ids = sent.map(({ message_id }) => message_id);
  const [message] = (await receiver.payloads(2, secret)) as unknown as WebhookMessage[];
  assert.deepEqual([message?.type, message?.data], ['webhook.test', { webhook_id: made.webhook_id }]);
  await askUntil(
    'both delivered',
    () => client.deliveries(made.webhook_id),
    ({ deliveries }) =>
      deliveries.every(({ status, last_status }) => `${status} ${last_status}` === 'delivered 204'),
  );
  const deliveries = await listed(client.allDeliveries(made.webhook_id, { limit: 1 }));
  assert.deepEqual(deliveries.map(({ message_id }) => message_id).sort(), ids.sort());
  const [again = ''] = ids;
  assert.deepEqual(await client.redeliver(made.webhook_id, again), { message_id: again });
  await receiver.payloads(3, secret);
  assert.equal(receiver.received[2]?.id, again);

  assert.deepEqual(await client.deleteWebhook(made.webhook_id), { webhook_id: made.webhook_id });
  await assert.rejects(client.deliveries(made.webhook_id), unknown);
  await assert.rejects(client.redeliver(made.webhook_id, again), unknown);
});

test('what would make another is repeated only where it had no effect', async (t) => {
  const front = await startFront(t, { baseUrl, key: await keys.add({ tenant: 'repeated' }) });
  const client = new Skilltrace({ baseUrl: front.baseUrl, retry: { firstDelayMs: 1 } });
  const limited = { status: 429, body: '{"error":{"code":"RATE_LIMITED","message":"slower"}}' };
  front.decide = (_, i) => (i === 0 ? limited : 'lost');
  const setting = { url: 'https://hooks.example.org', event_types: ['*'] } as const;
  await assert.rejects(client.createWebhook(setting), { code: 'NETWORK_ERROR', tries: 2 });
  front.decide = () => null;
  const { webhooks } = await client.webhooks();
  assert.equal(webhooks.length, 1);
  const [{ webhook_id } = { webhook_id: '' }] = webhooks;
  front.decide = () => 'lost';
  await assert.rejects(client.testWebhook(webhook_id), { code: 'NETWORK_ERROR', tries: 1 });
  const before = front.passed.length;
  front.decide = (_, i) => (i === before ? 'lost' : null);
  assert.match((await client.rotateSecret(webhook_id)).secret, /^whsec_/);
  assert.equal((await client.deliveries(webhook_id)).deliveries.length, 1);
});

test('the receiver of the page verifies, and handles each message once', async (t) => {
  const client = await clientIn('receiver');
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
  const unsigned = () => fetch(url, { method: 'POST', body: '{}' }).catch(() => null);
  assert.equal((await askUntil('the receiver', unsigned, (answer) => answer !== null))?.status, 400);

  const answer = { user_id: 'ada', skill_id: 'algebra', is_correct: true };
  await client.trackAnswers(Array(8).fill(answer));
  const delivered = async (): Promise<boolean> => {
    const { deliveries } = await client.deliveries(webhook_id);
    return deliveries.length === 1 && deliveries[0]?.status === 'delivered';
  };
  await waitFor('the message', delivered);
  const [message] = (await client.deliveries(webhook_id)).deliveries;
  await client.redeliver(webhook_id, `${message?.message_id}`);
  await waitFor('the message again', delivered);
  receiver.kill('SIGTERM');
  await once(receiver, 'close');
  assert.deepEqual(lines, ['ada has mastered algebra']);
});
