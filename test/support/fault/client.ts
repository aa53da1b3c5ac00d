/**
 * A platform that keeps posting answers and keeps a ledger. What is refused for now, and what no answer came for, is sent
 * again with the same event id, as the contract asks for; some answers are sent twice at once, or again later, and a few
 * are taken back.
 */
import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { seeded } from '../builders/random.js';
import { exchange } from './exchange.js';
import { type AnswerEvent, confirm, type Entry, emptyLedger, type Ledger, newEntry } from './ledger.js';

export interface ClientSettings {
  readonly port: number;
  /** Each with the key of its name. */
  readonly tenants: readonly string[];
  readonly learners: readonly string[];
  readonly skills: readonly string[];
  /** Requests at the same time. */
  readonly loops: number;
  /** Share of the requests whose client hangs up before the answer. */
  readonly hangUps: number;
  /** Most answers of a batch. */
  readonly largestBatch: number;
  /** Most answers that are taken back: each holds up the rows of its partition for seconds. */
  readonly mostTakenBack: number;
  /** Begins the event ids. */
  readonly name: string;
  readonly seed: number;
}

const restMs = 15;
const retryMs = 100;
/** A client hangs up within this time, which is about what an answer takes. */
const hangUpWithinMs = 12;
/** How long open answers are sent again after the end; it only bounds a failing test. */
const settleLimitMs = 120_000;
/** What callers may try again after. */
const internal = 500;
const passing = new Set([409, 429, internal, 503]);

export interface LedgerClient {
  /** Sends no new answers; resolves when those that are open are confirmed, or will not be. */
  stop(): Promise<Ledger>;
}

export function startClient(settings: ClientSettings): LedgerClient {
  const { port, tenants, learners, skills, loops, hangUps, largestBatch, mostTakenBack, name } = settings;
  const random = seeded(settings.seed);
  const oneOf = <Value>(values: readonly Value[]): Value =>
    values[Math.floor(random() * values.length)] as Value;
  const agent = new Agent({ keepAlive: true, maxSockets: 2 * loops });
  const ledger = emptyLedger();
  const confirmed: Entry[] = [];
  let takenBack = 0;
  let stopped = false;
  let giveUpAt = Number.POSITIVE_INFINITY;

  function makeEntry(tenant: string): Entry {
    const event: AnswerEvent = {
      user_id: oneOf(learners),
      skill_id: oneOf(skills),
      is_correct: random() < 0.6,
      time_spent_seconds: 5 + Math.floor(random() * 90),
      item_id: `item-${Math.floor(random() * 200)}`,
      event_id: `${name}-${ledger.entries.length}`,
    };
    const entry = newEntry(tenant, event);
    ledger.entries.push(entry);
    return entry;
  }

  /** @returns whether the request was answered by a confirmation of everything in it */
  async function send(
    tenant: string,
    path: string,
    body: object,
    take: (text: string, replayed: boolean) => boolean,
  ) {
    const hangUpAfterMs = random() < hangUps ? random() * hangUpWithinMs : null;
    const heard = await exchange({
      agent,
      port,
      key: tenant,
      path,
      body: JSON.stringify(body),
      hangUpAfterMs,
    });
    if (heard !== null && (heard.status === 200 || heard.status === 207)) {
      if (take(heard.text, heard.replayed)) return true;
    } else if (heard !== null && !passing.has(heard.status)) {
      ledger.faulty.push(`${heard.status} ${heard.text}`);
      return true;
    }
    if (heard?.status === internal) ledger.failed += 1;
    ledger.refused += 1;
    return false;
  }

  const sendOne = (entry: Entry): Promise<boolean> =>
    send(entry.tenant, '/api/v1/track-answer', entry.event, (text, replayed) => {
      confirm(entry, JSON.parse(text).data, replayed);
      return true;
    });

  const sendBatch = (tenant: string, entries: readonly Entry[]): Promise<boolean> =>
    send(tenant, '/api/v1/track-answers', { events: entries.map(({ event }) => event) }, (text) => {
      const { results } = JSON.parse(text).data;
      return entries.map((entry, i) => takeResult(entry, results[i])).every(Boolean);
    });

  function takeResult(entry: Entry, result: { status: number; data: unknown; replayed?: boolean }): boolean {
    if (result.status === 200) confirm(entry, result.data, result.replayed === true);
    else if (result.status === internal) ledger.failed += 1;
    else if (!passing.has(result.status)) ledger.faulty.push(JSON.stringify(result));
    return result.status === 200;
  }

  /** Who was not told asks again, and then hears that there is no such answer. */
  async function takeBack(entry: Entry): Promise<void> {
    entry.takenBack = true;
    let isUnsure = false;
    const { user_id: userId, event_id: eventId } = entry.event;
    await untilConfirmed(async () => {
      const heard = await exchange({
        agent,
        port,
        key: entry.tenant,
        method: 'DELETE',
        path: `/api/v1/learners/${userId}/attempts/${eventId}`,
        body: '',
        hangUpAfterMs: random() < hangUps ? random() * hangUpWithinMs : null,
      });
      const status = heard?.status ?? 0;
      const isGone = status === 200 || (isUnsure && status === 404);
      isUnsure = true;
      if (!isGone && heard !== null && !passing.has(status)) {
        ledger.faulty.push(`taking ${eventId} back: ${status} ${heard.text}`);
        return true;
      }
      if (!isGone) ledger.refused += 1;
      return isGone;
    });
  }

  async function untilConfirmed(attempt: () => Promise<boolean>): Promise<void> {
    while (!(await attempt())) {
      if (Date.now() > giveUpAt) return;
      await sleep(retryMs);
    }
  }

  async function answerOnce(): Promise<void> {
    const tenant = oneOf(tenants);
    const chance = random();
    if (chance < 0.15) {
      const entries = Array.from({ length: 1 + Math.floor(random() * largestBatch) }, () =>
        makeEntry(tenant),
      );
      await untilConfirmed(() => sendBatch(tenant, entries));
      confirmed.push(...entries);
      return;
    }
    if (chance > 0.97 && takenBack < mostTakenBack) {
      const entry = oneOf(confirmed.filter((one) => !one.takenBack));
      if (entry === undefined) return;
      takenBack += 1;
      await takeBack(entry);
      return;
    }
    const again = chance < 0.2 && confirmed.length > 0;
    const entry = again ? oneOf(confirmed) : makeEntry(tenant);
    const copies = chance > 0.2 && chance < 0.3 ? 2 : 1;
    await Promise.all(Array.from({ length: copies }, () => untilConfirmed(() => sendOne(entry))));
    if (!again) confirmed.push(entry);
  }

  const running = Array.from({ length: loops }, async () => {
    while (!stopped) {
      await answerOnce();
      await sleep(restMs);
    }
  });
  return {
    stop: async () => {
      stopped = true;
      giveUpAt = Date.now() + settleLimitMs;
      await Promise.all(running);
      agent.destroy();
      return ledger;
    },
  };
}
