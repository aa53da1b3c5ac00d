/** A receiver of webhooks that is gone, refuses or hangs when the test says so, on one port. */
import type { ServerResponse } from 'node:http';
import { type Received, startReceiver } from '../servers/receiver.js';
import type { Scoped } from '../servers/service.js';

export type ReceiverMode = 'well' | 'gone' | 'refusing' | 'hanging';

export interface Told extends Received {
  readonly mode: ReceiverMode;
}

export async function startFaultyReceiver(t: Scoped) {
  const told: Told[] = [];
  const held: ServerResponse[] = [];
  let mode: ReceiverMode = 'well';
  let onRequest = (): void => undefined;
  const answer = (one: Received, response: ServerResponse): void => {
    told.push({ ...one, mode });
    onRequest();
    if (mode === 'hanging') held.push(response);
    else response.writeHead(mode === 'well' ? 204 : 500).end();
  };
  let current = await startReceiver(t, { answer });
  return {
    url: current.url,
    /** All requests so far. */
    told,
    /** Called before each is answered. */
    onRequest: (next: () => void): void => {
      onRequest = next;
    },
    /** Requests that hang end without an answer. */
    become: async (next: ReceiverMode): Promise<void> => {
      if (next === 'gone') await current.stop();
      else if (mode === 'gone') current = await startReceiver(t, { port: current.port, answer });
      mode = next;
      for (const response of held.splice(0)) response.destroy();
    },
  };
}

export type FaultyReceiver = Awaited<ReturnType<typeof startFaultyReceiver>>;
