/** One request of a test client, which may end before its answer. */
import { type Agent, request } from 'node:http';

export interface Heard {
  readonly status: number;
  readonly replayed: boolean;
  readonly text: string;
}

export interface Order {
  readonly agent: Agent;
  readonly port: number;
  readonly key: string;
  readonly path: string;
  /** POST by default. */
  readonly method?: 'DELETE';
  readonly body: string;
  /** After so many milliseconds the client hangs up; null: it waits. */
  readonly hangUpAfterMs: number | null;
}

/** A server that stands still may be resumed later than this: then the answer counts as lost. */
const patienceMs = 30_000;

/** @returns null where the connection was lost before the answer was complete */
export function exchange({
  agent,
  port,
  key,
  path,
  method,
  body,
  hangUpAfterMs,
}: Order): Promise<Heard | null> {
  return new Promise((resolve) => {
    const lost = (): void => resolve(null);
    const headers = {
      'X-API-Key': key,
      'Content-Type': 'application/json',
      'Content-Length': Buffer.byteLength(body),
    };
    const to = { host: '127.0.0.1', port, agent, method: method ?? 'POST', path, headers };
    const sent = request(to, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () => {
        const replayed = response.headers['idempotent-replayed'] === 'true';
        resolve({ status: response.statusCode ?? 0, replayed, text });
      });
      response.on('close', lost);
    });
    const timer = setTimeout(() => sent.destroy(), hangUpAfterMs ?? patienceMs);
    sent.on('error', lost);
    sent.on('close', () => {
      clearTimeout(timer);
      lost();
    });
    sent.end(body);
  });
}
