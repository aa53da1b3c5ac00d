/** A receiver of webhooks: an HTTP server that records requests and responds as the test configures. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { text as readText } from 'node:stream/consumers';
import { Webhook } from 'standardwebhooks';
import type { Scoped } from '../scope.js';
import { waitFor } from '../wait.js';
import { listen } from './ports.js';

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
    const text = await readText(request);
    const one = { id: String(request.headers['webhook-id']), headers: request.headers, text };
    received.push(one);
    if (typeof current === 'number') response.writeHead(current).end();
    else current(one, response);
  });
  const own = await listen(t, server, port);
  const stop = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
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
