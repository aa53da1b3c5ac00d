import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Closers } from '../../src/lifecycle.js';
import { computeSum, indices } from '../../src/lists.js';
import { fetchStreamLengths } from '../../src/store/redis/commands/bulk-operations.js';
import { goalChecksKey, messagesPrefix, webhookEventsKey } from '../../src/store/redis/keys.js';
import { createEndpointStore } from '../../src/store/webhooks/endpoints.js';
import type { Service } from '../targets/service.js';
import { waitUntilDone } from '../targets/wait.js';

export type Subscriber = Awaited<ReturnType<typeof startSubscriber>>;

/** Polling costs CPU of the measured Redis. */
export const pollMs = 200;

/** The endpoint is disabled at first. `heard` has the bodies received so far. */
export async function startSubscriber(service: Service, tenant: string, closers: Closers) {
  const { redis, partitions } = service;
  const { url, heard } = await startReceiver(closers);
  const endpoints = createEndpointStore(redis);
  const secret = `whsec_${Buffer.alloc(32).toString('base64')}`;
  const { id } = await endpoints.create(tenant, { url, eventTypes: ['*'], description: null }, secret);
  const listen = async (isOn: boolean): Promise<void> => {
    await endpoints.change(tenant, id, (one) => ({ ...one, disabledReason: isOn ? null : 'request' }));
  };
  await listen(false);
  const streams = indices(partitions).map(webhookEventsKey);
  const checks = indices(partitions).map(goalChecksKey);
  const findUndelivered = async (): Promise<string | null> => {
    const lengths = await fetchStreamLengths(redis, streams);
    const left = await redis.exists(...checks, `${messagesPrefix(id)}:due`);
    return left + computeSum(lengths) === 0 ? null : 'Some webhooks are undelivered';
  };
  /** Makes goal checks due, and resolves when all messages are delivered. */
  const waitUntilDelivered = async (): Promise<void> => {
    await Promise.all(checks.map((key) => makeChecksDue(service, key)));
    await waitUntilDone(findUndelivered, { pollMs });
  };
  return { listen, heard, waitUntilDelivered };
}

async function startReceiver(closers: Closers) {
  const heard: string[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (piece: string) => {
      body += piece;
    });
    request.on('end', () => {
      heard.push(body);
      response.writeHead(204).end();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closers.add('webhook receiver', () => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, heard };
}

/** Skips running checks, marked with `!`. */
async function makeChecksDue({ redis }: Service, key: string): Promise<void> {
  const names = (await redis.zrange(key, '0', '-1')).filter((name) => !name.startsWith('!'));
  if (names.length > 0) await redis.zadd(key, 'XX', ...names.flatMap((name) => [1, name]));
}
