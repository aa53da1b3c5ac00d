/**
 * Test clients that post, repeat and retract answers and keep a ledger. They retry rejected and lost requests with the same
 * event id, as the contract requires.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { drawSkills, seeded } from '../builders/random.js';
import type { Scoped } from '../scope.js';
import { type AnswerEvent, confirm, createEntry, type Entry, type Ledger } from './ledger.js';
import { drawTime } from './time-zones.js';

export interface ClientSettings {
  readonly port: number;
  /** A tenant's key has the tenant's name. */
  readonly tenants: readonly string[];
  readonly learners: readonly string[];
  readonly skills: readonly string[];
  /** Concurrent requests. */
  readonly loops: number;
  /** Share of the requests that the client aborts before the response. */
  readonly hangUps: number;
  readonly maxBatch: number;
  /** Each retraction occupies its partition for seconds. */
  readonly maxRetractions: number;
  /** Prefix of the event ids. */
  readonly name: string;
  readonly seed: number;
}

type Response = { readonly status: number; readonly replayed: boolean; readonly text: string };

const pauseMs = 15;
const retryMs = 100;
/** About the duration of a request. */
const maxHangUpMs = 12;
/** A stopped server may resume later than this: the client then treats the response as lost. */
const timeoutMs = 30_000;
const settleLimitMs = 120_000;
const internal = 500;
/** 207: a batch of which some events can be repeated. */
const retryable = new Set([207, 409, 429, internal, 503]);

export function startClients(t: Scoped, settings: ClientSettings) {
  const { port, tenants, learners, skills, loops, hangUps, maxBatch, maxRetractions, name } = settings;
  const random = seeded(settings.seed);
  const pick = <Value>(values: readonly Value[]): Value =>
    values[Math.floor(random() * values.length)] as Value;
  const ledger: Ledger = { entries: [], invalid: [], retried: 0, failed: 0 };
  const confirmed: Entry[] = [];
  let retractions = 0;
  let stopped = false;
  let giveUpAt = Number.POSITIVE_INFINITY;

  /** @returns null if the connection was lost */
  async function exchange(method: string, key: string, path: string, body?: object) {
    const signal = AbortSignal.timeout(random() < hangUps ? Math.ceil(random() * maxHangUpMs) : timeoutMs);
    const headers = { 'X-API-Key': key, ...(body && { 'Content-Type': 'application/json' }) };
    const init = { method, headers, signal, ...(body && { body: JSON.stringify(body) }) };
    try {
      const response = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`, init);
      const replayed = response.headers.get('idempotent-replayed') === 'true';
      return { status: response.status, replayed, text: await response.text() };
    } catch {
      return null;
    }
  }

  /** Retries until `accept` returns true or the response is invalid. */
  async function send(request: () => Promise<Response | null>, accept: (response: Response) => boolean) {
    for (;;) {
      const response = await request();
      if (response !== null && accept(response)) return;
      if (response !== null && !retryable.has(response.status))
        return void ledger.invalid.push(`${response.status} ${response.text}`);
      if (response?.status === internal) ledger.failed += 1;
      ledger.retried += 1;
      if (Date.now() > giveUpAt) return;
      await sleep(retryMs);
    }
  }

  function createAnswer(tenant: string): Entry {
    const event: AnswerEvent = {
      ...{ user_id: pick(learners), ...drawSkills(skills, random), is_correct: random() < 0.6 },
      ...{ time_spent_seconds: 5 + Math.floor(random() * 90), item_id: `item-${Math.floor(random() * 200)}` },
      ...(random() < 0.4 && { occurred_at: drawTime(random) }),
      event_id: `${name}-${ledger.entries.length}`,
    };
    const entry = createEntry(tenant, event);
    ledger.entries.push(entry);
    return entry;
  }

  /** Half of the requests have the skills in another order. */
  const reorder = (event: AnswerEvent): object =>
    event.skill_ids && random() < 0.5 ? { ...event, skill_ids: event.skill_ids.toReversed() } : event;

  const sendOne = (entry: Entry): Promise<void> =>
    send(
      () => exchange('POST', entry.tenant, 'track-answer', reorder(entry.event)),
      ({ status, text, replayed }) => {
        if (status !== 200) return false;
        confirm(entry, JSON.parse(text).data, replayed);
        return true;
      },
    );

  const sendBatch = (tenant: string, entries: readonly Entry[]): Promise<void> =>
    send(
      () => exchange('POST', tenant, 'track-answers', { events: entries.map(({ event }) => event) }),
      ({ status, text }) => {
        if (status !== 200 && status !== 207) return false;
        const { results } = JSON.parse(text).data;
        for (const [i, entry] of entries.entries()) recordResult(entry, results[i]);
        return status === 200;
      },
    );

  function recordResult(entry: Entry, result: { status: number; data: unknown; replayed?: boolean }): void {
    if (result.status === 200) confirm(entry, result.data, result.replayed === true);
    else if (result.status === internal) ledger.failed += 1;
    else if (!retryable.has(result.status)) ledger.invalid.push(JSON.stringify(result));
  }

  /** Retries until 200. A repeated request may get 404, because the first one may have been applied. */
  async function retract(entry: Entry): Promise<void> {
    retractions += 1;
    entry.retracted = true;
    let requests = 0;
    const path = `learners/${entry.event.user_id}/attempts/${entry.event.event_id}`;
    const request = () => {
      requests += 1;
      return exchange('DELETE', entry.tenant, path);
    };
    await send(request, ({ status }) => status === 200 || (status === 404 && requests > 1));
  }

  async function answerOnce(): Promise<void> {
    const tenant = pick(tenants);
    const chance = random();
    if (chance < 0.15) {
      const length = 1 + Math.floor(random() * maxBatch);
      const entries = Array.from({ length }, () => createAnswer(tenant));
      await sendBatch(tenant, entries);
      confirmed.push(...entries);
    } else if (chance > 0.97 && retractions < maxRetractions) {
      const entry = pick(confirmed.filter(({ retracted }) => !retracted));
      if (entry !== undefined) await retract(entry);
    } else if (chance < 0.2 && confirmed.length > 0) await sendOne(pick(confirmed));
    else {
      const entry = createAnswer(tenant);
      const copies = chance < 0.3 ? [entry, entry] : [entry];
      await Promise.all(copies.map(sendOne));
      confirmed.push(entry);
    }
  }

  async function answerUntilStopped(): Promise<void> {
    while (!stopped) {
      await answerOnce();
      await sleep(pauseMs);
    }
  }

  const running = Promise.all(Array.from({ length: loops }, answerUntilStopped));
  // A failed test ends without further retries.
  t.after(() => {
    stopped = true;
    giveUpAt = 0;
  });
  return {
    /** Resolves when all sent answers are confirmed, or cannot be. */
    stop: async (): Promise<Ledger> => {
      stopped = true;
      giveUpAt = Date.now() + settleLimitMs;
      await running;
      return ledger;
    },
  };
}
