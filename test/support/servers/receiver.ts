/** A receiver of webhooks: an HTTP server that records requests and responds as the test configures. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { waitFor } from '../wait.js';
import type { Scoped } from './service.js';

export interface Received {
  readonly id: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

type Answer = number | ((request: Received, response: ServerResponse) => void);

/** @param port 0: any free one */
export async function startReceiver(t: Scoped, { port = 0, answer = 204 as Answer } = {}) {
  const received: Received[] = [];
  let current = answer;
  const server = createServer(async (request, response) => {
    const text = await textOf(request);
    const one = { id: String(request.headers['webhook-id']), headers: request.headers, text };
    received.push(one);
    if (typeof current === 'number') response.writeHead(current).end();
    else current(one, response);
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const stop = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  t.after(stop);
  const { port: own } = server.address() as AddressInfo;
  return {
    port: own,
    url: `http://127.0.0.1:${own}/hook`,
    received,
    stop,
    answerWith: (next: Answer): void => {
      current = next;
    },
    /** Waits for this number of messages and verifies their signatures. @returns their payloads */
    payloads: async (count: number, secret: string) => {
      await waitFor(`${count} webhooks`, () => received.length >= count);
      return received.map((one) => verified(one, secret));
    },
  };
}

/** @throws WebhookVerificationError */
export const verified = ({ text, headers }: Received, secret: string) =>
  new Webhook(secret).verify(text, headers as Record<string, string>) as {
    readonly type: string;
    readonly timestamp: string;
    readonly data: Record<string, unknown>;
  };

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}
