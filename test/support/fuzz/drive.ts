/** Sends generated requests over a few connections and judges every answer. */
import assert from 'node:assert/strict';
import { assertAnswer } from '../http/answer-check.js';
import { type Answer, openWire, rawRequest, type Wire } from '../http/http.js';
import { targetOf } from '../http/route-table.js';
import { type AnswerCounts, createAnswerCounts, type Outcome } from './counts.js';
import type { Ledger } from './ledger.js';
import { createMemory } from './memory.js';
import type { KeyName, Request } from './requests.js';

/** After 10 s without a byte the service closes a connection: one that rested for longer than this is not used again. */
const restMs = 5000;

/** What uWebSockets.js keeps of a head: a longer one gets its own refusal. */
const maxHeadBytes = 4096;

export interface Drive {
  /** Sends all of them, over all connections. @throws AssertionError for an answer out of the contract */
  send(requests: readonly Request[]): Promise<void>;
  readonly counts: AnswerCounts;
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
  const counts = createAnswerCounts();
  const memory = createMemory();
  const wires: (Wire | undefined)[] = Array.from({ length: connections });
  const usedAt: number[] = Array.from({ length: connections }, () => 0);

  const sendOne = async (generated: Request, place: number): Promise<void> => {
    const request = { ...generated, path: memory.fill(generated.path) };
    const { bytes, headBytes } = bytesOf(request, request.key === null ? null : keys[request.key]);
    if (performance.now() - (usedAt[place] as number) > restMs) wires[place]?.end();
    const rested = wires[place]?.socket.destroyed === true;
    const wire = rested ? openWire(port) : (wires[place] ?? openWire(port));
    wires[place] = wire;
    const sentAt = performance.now();
    wire.send(bytes);
    const told = await wire.next({ head: request.method === 'HEAD' }).catch((error: Error): Unanswered => {
      if (headBytes > maxHeadBytes - 100) return 'head too long';
      if (wire.isClosed() && mayBeCut(request)) return 'export cut';
      // This machine stood still: the service closed what it took for idle.
      if (performance.now() - sentAt > restMs && wire.isClosed()) return 'lost';
      throw new Error(`${textOf(bytes)}: ${error.message}`, { cause: error });
    });
    const outcome = judged(told, request, headBytes, bytes);
    const answer = typeof outcome === 'string' ? null : outcome;
    if (answer === null || answer.headers.connection === 'close' || wire.isClosed())
      wires[place] = closed(wire);
    if (request.key === 'ledger') ledger.note(request, answer);
    if (answer !== null) memory.note(request, answer);
    counts.note(targetIn(request), typeof outcome === 'string' ? outcome : outcome.status);
    usedAt[place] = performance.now();
  };

  /** Each takes the next one that is left, for some answers take a hundred times as long as others. */
  const takeFrom = async (left: Request[], place: number): Promise<void> => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) await sendOne(next, place);
  };

  return {
    counts,
    send: async (requests) => {
      const left = [...requests];
      await Promise.all(wires.map((_, place) => takeFrom(left, place)));
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

const textOf = (bytes: Buffer): string => JSON.stringify(bytes.toString('latin1'));

const targetIn = ({ method, path }: Request) => targetOf(method, path.split('?')[0] as string);

/** An export ends without its last line when its learner is erased or corrected meanwhile: never where the books are kept. */
const mayBeCut = (request: Request): boolean =>
  request.key !== 'ledger' && targetIn(request).route?.path.endsWith('/export') === true;

type Unanswered = Exclude<Outcome, number>;

/** The answer as the service's own, unless the parser refused a head that is too long. @throws AssertionError */
function judged(
  told: Answer | Unanswered,
  request: Request,
  headBytes: number,
  bytes: Buffer,
): Answer | Unanswered {
  if (typeof told === 'string') return told;
  if (headBytes > maxHeadBytes - 100 && told.status === 431) return 'head too long';
  const sent = request.headers['X-Request-Id'];
  const requestId = typeof sent === 'string' && /^[A-Za-z0-9._:-]{1,128}$/.test(sent) ? sent : null;
  try {
    assert.notEqual(told.status, 500, told.text);
    assertAnswer(told, { method: request.method, target: targetIn(request), requestId });
  } catch (error) {
    throw new Error(`${textOf(bytes)}: ${(error as Error).message}`, { cause: error });
  }
  return told;
}
