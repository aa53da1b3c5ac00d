/** Sends generated requests over a few connections and judges every answer. */
import { assertAnswer } from '../answer-check.js';
import { type Answer, openWire, rawRequest, type Wire } from '../http.js';
import { targetOf } from '../route-table.js';
import type { Ledger } from './ledger.js';
import type { KeyName, Request } from './requests.js';

/** After 10 s without a byte the service closes a connection: one that rested for longer than this is not used again. */
const restMs = 5000;

/** What uWebSockets.js keeps of a head: a longer one gets its own refusal. */
const maxHeadBytes = 4096;

export interface Drive {
  /** Sends all of them, a share over each connection. @throws AssertionError for an answer out of the contract */
  send(requests: readonly Request[]): Promise<void>;
  /** Answers by status; 0: the parser's own refusal of a head too long, or a connection that was idle for too long. */
  readonly statuses: ReadonlyMap<number, number>;
  end(): void;
}

export interface DriveOptions {
  readonly port: number;
  readonly keys: Readonly<Record<Exclude<KeyName, null>, string>>;
  /** Of the tenant of the key `ledger`. */
  readonly ledger: Ledger;
  readonly connections: number;
}

export function createDrive({ port, keys, ledger, connections }: DriveOptions): Drive {
  const statuses = new Map<number, number>();
  const wires: (Wire | undefined)[] = Array.from({ length: connections });
  const usedAt: number[] = Array.from({ length: connections }, () => 0);
  const count = (status: number): void => {
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
  };

  const sendOne = async (request: Request, place: number): Promise<void> => {
    const { bytes, headBytes } = bytesOf(request, request.key === null ? null : keys[request.key]);
    if (performance.now() - (usedAt[place] as number) > restMs) wires[place]?.end();
    const rested = wires[place]?.socket.destroyed === true;
    const wire = rested ? openWire(port) : (wires[place] ?? openWire(port));
    wires[place] = wire;
    const sentAt = performance.now();
    wire.send(bytes);
    const answer = await answerTo(wire, request, headBytes).catch((error: Error) => {
      // This machine stood still: the service closed what it took for idle.
      if (performance.now() - sentAt > restMs && wire.isClosed()) return null;
      throw new Error(`${JSON.stringify(bytes.toString('latin1'))}: ${error.message}`, { cause: error });
    });
    const counts = request.key === 'ledger';
    if (answer === null || answer.headers.connection === 'close' || wire.isClosed())
      wires[place] = closed(wire);
    if (counts) ledger.note(request, answer);
    count(answer?.status ?? 0);
    usedAt[place] = performance.now();
  };

  const share = async (requests: readonly Request[], place: number): Promise<void> => {
    for (let i = place; i < requests.length; i += connections) await sendOne(requests[i] as Request, place);
  };

  return {
    statuses,
    send: async (requests) => {
      await Promise.all(wires.map((_, place) => share(requests, place)));
    },
    end: () => {
      for (const wire of wires) wire?.end();
    },
  };
}

function closed(wire: Wire): undefined {
  wire.end();
}

function bytesOf({ method, path, headers, content }: Request, key: string | null) {
  const bytes = rawRequest(key, {
    method,
    path,
    headers: {
      ...headers,
      ...(content !== null && { 'Content-Type': content.type, 'Content-Encoding': content.encoding }),
    },
    body: content?.bytes ?? null,
  });
  return { bytes, headBytes: bytes.indexOf('\r\n\r\n') + 4 };
}

/** The answer, judged; null where the parser refused the head, which only a long one gives it cause for. */
async function answerTo(wire: Wire, request: Request, headBytes: number): Promise<Answer | null> {
  const { method, path, headers } = request;
  const mayBeLong = headBytes > maxHeadBytes - 100;
  const answer = await wire.next({ head: method === 'HEAD' }).catch((error: unknown) => {
    if (mayBeLong) return null;
    throw error;
  });
  if (answer === null || (mayBeLong && answer.status === 431)) return null;
  const sent = headers['X-Request-Id'];
  const requestId = typeof sent === 'string' && /^[A-Za-z0-9._:-]{1,128}$/.test(sent) ? sent : null;
  const target = targetOf(method, path.split('?')[0] as string);
  assertAnswer(answer, { method, target, requestId });
  return answer;
}
