/** Sends generated requests over several connections and checks every response against the OpenAPI document. */
import assert from 'node:assert/strict';
import { assertAnswer } from '../http/answer-check.js';
import { type Answer, openWire, rawRequest, type Wire } from '../http/http.js';
import { nameOf, type Target, targetOf } from '../http/route-table.js';
import type { ConfirmedAnswers } from './confirmed-answers.js';
import { type KeyName, placeholders, type Request } from './requests.js';

/** The service closes a connection after 10 s without a byte. */
const maxIdleMs = 5000;
/** uWebSockets.js rejects a longer head itself. */
const maxHeadBytes = 4096 - 100;

export type Keys = Readonly<Record<Exclude<KeyName, null>, string>>;

export function createSession(port: number, keys: Keys, confirmed: ConfirmedAnswers, connections: number) {
  /** The routes that succeeded, and the number of responses by status. */
  const coverage = { successes: new Set<string>(), statuses: new Map<number, number>() };
  const returned = createReturnedIds();
  const wires: (Wire | undefined)[] = Array.from({ length: connections });
  const usedAt: number[] = Array.from({ length: connections }, () => 0);

  const connectionAt = (slot: number): Wire => {
    const old = wires[slot];
    const isIdle = performance.now() - (usedAt[slot] ?? 0) > maxIdleMs;
    if (old !== undefined && !isIdle && !old.isClosed()) return old;
    old?.end();
    const wire = openWire(port);
    wires[slot] = wire;
    return wire;
  };

  const sendOne = async (generated: Request, slot: number): Promise<void> => {
    const request = { ...generated, path: returned.fill(generated.path) };
    const target = targetOf(request.method, request.path.split('?')[0] ?? '');
    const bytes = encode(request, request.key === null ? null : keys[request.key]);
    const wire = connectionAt(slot);
    const sentAt = performance.now();
    wire.send(bytes);
    let answer: Answer | null = null;
    try {
      answer = await wire.next({ head: request.method === 'HEAD' }).catch((error: unknown) => {
        if (wire.isClosed() && mayBeLost(request, target, bytes, performance.now() - sentAt)) return null;
        throw error;
      });
      if (answer?.status === 431 && isLong(bytes)) answer = null;
      if (answer !== null) assertDescribed(answer, request, target);
    } catch (error) {
      throw new Error(`${JSON.stringify(bytes.toString('latin1'))}: ${error}`, { cause: error });
    }
    usedAt[slot] = performance.now();
    if (answer === null || answer.headers.connection === 'close') {
      wire.end();
      wires[slot] = undefined;
    }
    if (request.key === 'ledger') confirmed.record(request, answer);
    if (answer === null) return;
    returned.record(request, answer);
    coverage.statuses.set(answer.status, (coverage.statuses.get(answer.status) ?? 0) + 1);
    if (answer.status < 400 && target.route !== null) coverage.successes.add(nameOf(target.route));
  };

  return {
    coverage,
    /** @throws Error for a response that the OpenAPI document does not allow */
    send: async (requests: readonly Request[]): Promise<void> => {
      const rest = [...requests];
      const work = async (slot: number): Promise<void> => {
        for (let next = rest.shift(); next !== undefined; next = rest.shift()) await sendOne(next, slot);
      };
      await Promise.all(wires.map((_, slot) => work(slot)));
    },
    end: (): void => {
      for (const wire of wires) wire?.end();
    },
  };
}

const isLong = (bytes: Buffer): boolean => bytes.indexOf('\r\n\r\n') > maxHeadBytes;

/**
 * An export is cut when its learner is erased or corrected, which never happens to the ledger's learners. On a busy machine,
 * the service may close the connection as idle.
 */
const mayBeLost = ({ key }: Request, { route }: Target, bytes: Buffer, ms: number): boolean =>
  isLong(bytes) || (key !== 'ledger' && route?.path.endsWith('/export') === true) || ms > maxIdleMs;

function encode({ method, path, headers, content }: Request, key: string | null): Buffer {
  if (content === null) return rawRequest(key, { method, path, headers });
  const { bytes: body, type, encoding } = content;
  const described = { ...headers, 'Content-Type': type, 'Content-Encoding': encoding };
  return rawRequest(key, { method, path, headers: described, body });
}

function assertDescribed(answer: Answer, { method, headers }: Request, target: Target): void {
  const sent = headers['X-Request-Id'];
  const requestId = typeof sent === 'string' && /^[A-Za-z0-9._:-]{1,128}$/.test(sent) ? sent : null;
  assert.notEqual(answer.status, 500, answer.text);
  assertAnswer(answer, { method, target, requestId });
}

/** Remembers the newest ids and cursors of responses, and puts them into the paths of later requests. */
function createReturnedIds() {
  const ids: Record<string, string> = {};
  const cursors = new Map<string, string>();
  const listOf = (path: string): string => path.split('?')[0] ?? '';
  let eventPath: string | null = null;
  const remember = (placeholder: string, id: unknown): void => {
    if (typeof id === 'string') ids[placeholder] = id;
  };
  return {
    record: ({ path, key }: Request, { status, text }: Answer): void => {
      if (status >= 300 || !text.startsWith('{"success":true')) return;
      const { data } = JSON.parse(text);
      remember(placeholders.erasure, data.erasure_id);
      remember(placeholders.message, data.message_id);
      if (key === 'wild') remember(placeholders.webhook, data.webhook_id);
      // Only created keys, because the session needs its keys until the end.
      if (typeof data.key === 'string') remember(placeholders.key, data.key_id);
      if (typeof data.next_cursor === 'string') cursors.set(listOf(path), data.next_cursor);
      const [attempt] = key === 'ledger' ? [] : (data.attempts ?? []);
      if (typeof attempt?.event_id === 'string')
        eventPath = [data.user_id, 'attempts', attempt.event_id].map(encodeURIComponent).join('/');
    },
    fill: (path: string): string => {
      let filled = path.replace(/[^/]*\/attempts\/~event~/, (whole) => eventPath ?? whole);
      for (const [placeholder, id] of Object.entries(ids)) filled = filled.replace(placeholder, id);
      return filled.replace(placeholders.cursor, (whole) => cursors.get(listOf(filled)) ?? whole);
    },
  };
}
