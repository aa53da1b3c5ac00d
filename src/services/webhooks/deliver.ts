/**
 * Sends an endpoint's messages: those of one learner one after the other, so that they arrive in their order where none fails,
 * those of different learners side by side. A message is sent until the endpoint has confirmed it, by the schedule of
 * standardwebhooks.com; what was sent when a process died is sent again.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { allEnded } from '../../concurrency.js';
import type { DeliveryReply, DeliveryTask } from '../../contracts/delivery-tasks.js';
import { learnerHashOf } from '../../contracts/webhook-events.js';
import { groupedBy } from '../../lists.js';
import { keepRecent } from '../../store/redis/recent.js';
import type { Endpoint, EndpointStore } from '../../store/webhooks/endpoints.js';
import type { EndpointPlace, Message, MessageStore } from '../../store/webhooks/messages.js';
import type { Logger } from '../../telemetry.js';

/** Seconds between a failed try and the next one; a message has one try more than there are pauses. */
const retrySeconds = [5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400] as const;
/** So that messages of one moment part: up to a tenth more. */
const jitter = 0.1;

/** Milliseconds until the next try; null after the last. @param tries there were @param random 0 to 1 */
export function retryDelay(tries: number, random: number): number | null {
  const seconds = retrySeconds[tries - 1];
  return seconds === undefined ? null : Math.round(seconds * 1000 * (1 + jitter * random));
}

/** Tries in a row that fail before the endpoint has a pause: its other messages lose no tries meanwhile. */
const patience = 8;
const firstPauseMs = 1000;
const maxPauseMs = 300_000;

/** Tries in a row that failed, pauses that they led to, and the end of the last, by a clock that only goes forward. */
type Trouble = { readonly failures: number; readonly pauses: number; readonly until: number };

/** After one more failure; what was in flight when a pause began changes nothing. Pauses double. */
export function troubleAfter(before: Trouble | undefined, now: number): Trouble {
  const { failures, pauses, until } = before ?? { failures: 0, pauses: 0, until: 0 };
  if (until > now) return { failures, pauses, until };
  if (failures + 1 < patience) return { failures: failures + 1, pauses, until };
  const pauseMs = Math.min(firstPauseMs * 2 ** pauses, maxPauseMs);
  return { failures: failures + 1, pauses: pauses + 1, until: now + pauseMs };
}

/** Of one endpoint at a time; side by side. */
export const sentTogether = 8;
const pageMessages = 64;
/** A full page takes no less, 250 messages a second: thousands of one moment leave the cores to answers. */
const pageMs = 256;
/** A run sends nothing more after it, for another endpoint may wait. */
const runMs = 10_000;
/** Endpoints that failed last; one that was deleted leaves its trouble behind. */
const maxTroubles = 10_000;
/** Disabled, with messages that wait: it may be enabled. */
const disabledRestMs = 60_000;

const gone = 410;

export type DeliveryCounts = Record<'delivered' | 'failed' | 'given_up', number>;

export interface DeliveryParts {
  readonly endpoints: Pick<EndpointStore, 'find' | 'disable'>;
  readonly messages: MessageStore;
  /** Sends once. */
  readonly send: (task: DeliveryTask) => Promise<DeliveryReply>;
  readonly allowPrivate: boolean;
  readonly counts: DeliveryCounts;
  readonly logger: Logger;
}

/** Sends what is due of an endpoint, for a while. `moved` is called after each message. @throws what Redis does: the next run goes on */
export type Deliver = (endpoint: EndpointPlace, signal: AbortSignal, moved: () => void) => Promise<void>;

export function createDeliverer(parts: DeliveryParts): Deliver {
  const { endpoints, messages, counts, logger } = parts;
  /** By endpoint, as this process saw them. */
  const troubles = new Map<string, Trouble>();
  const pauseOf = ({ id }: EndpointPlace): number =>
    Math.max(0, (troubles.get(id)?.until ?? 0) - performance.now());

  /** One alone finds out whether a receiver that failed is there again. */
  const senders = ({ id }: EndpointPlace): number => (troubles.has(id) ? 1 : sentTogether);

  return async (place, signal, moved) => {
    const until = performance.now() + runMs;
    const isOver = (): boolean => signal.aborted || performance.now() >= until || pauseOf(place) > 0;
    while (!isOver()) {
      const endpoint = await endpoints.find(place.tenant, place.id);
      if (!endpoint?.enabled) return void (await messages.rest(place, disabledRestMs));
      const due = await messages.due(endpoint, Date.now(), pageMessages);
      if (due.length === 0) break;
      const paced = due.length === pageMessages ? sleep(pageMs) : undefined;
      await sendAll(due, senders(endpoint), isOver, (message) => sendOne(endpoint, message).then(moved));
      await paced;
    }
    await messages.rest(place, pauseOf(place));
  };

  async function sendOne(endpoint: Endpoint, message: Message): Promise<void> {
    const { url, secrets } = endpoint;
    const { id, body } = message;
    const reply = await parts.send({ url, secrets, id, body, allowPrivate: parts.allowPrivate });
    const tried = { ...message, tries: message.tries + 1, lastStatus: reply.status };
    const isConfirmed = reply.status !== null && reply.status >= 200 && reply.status < 300;
    if (!isConfirmed) return noteFailure(endpoint, tried, reply);
    counts.delivered += 1;
    troubles.delete(endpoint.id);
    await messages.settle(endpoint, { ...tried, status: 'delivered' }, null);
  }

  async function noteFailure(endpoint: Endpoint, message: Message, reply: DeliveryReply): Promise<void> {
    counts.failed += 1;
    const { tenant, id: webhook } = endpoint;
    const trouble = troubleAfter(troubles.get(webhook), performance.now());
    keepRecent(troubles, webhook, trouble, maxTroubles);
    const afterMs = reply.status === gone ? null : retryDelay(message.tries, Math.random());
    logger.debug(
      { tenant, webhook, message: message.id, tries: message.tries, ...reply },
      'a webhook failed',
    );
    await messages.settle(endpoint, { ...message, status: afterMs === null ? 'failed' : 'pending' }, afterMs);
    if (afterMs === null) await giveUp(endpoint, message, reply);
  }

  /** An endpoint that is gone, or confirmed nothing for as long as the schedule of a message lasts, is disabled. */
  async function giveUp(endpoint: Endpoint, message: Message, { status }: DeliveryReply): Promise<void> {
    counts.given_up += 1;
    if (status !== gone && (await messages.lastDelivery(endpoint)) > message.at) return;
    const { tenant, id } = endpoint;
    await endpoints.disable(tenant, id, status === gone ? 'gone' : 'failing');
    // Ends the run, whose other messages would fail for good. Whoever enables the endpoint finds it without trouble.
    troubles.set(id, { failures: 0, pauses: 0, until: performance.now() + firstPauseMs });
    const reason = status === gone ? 'it answered 410 Gone' : 'it has failed for days';
    logger.error({ tenant, webhook: id }, `a webhook is disabled: ${reason}`);
  }
}

/** Messages of one learner one after the other. @throws what failed first, when what was begun has ended */
async function sendAll(
  due: readonly Message[],
  senders: number,
  isOver: () => boolean,
  send: (message: Message) => Promise<void>,
): Promise<void> {
  // One iterator for all who send: each takes the learner that is next.
  const learners = groupedBy(due, ({ id }) => learnerHashOf(id) ?? id).values();
  const sendNext = async (): Promise<void> => {
    for (const own of learners)
      for (const message of own) {
        if (isOver()) return;
        await send(message);
      }
  };
  await allEnded(Array.from({ length: senders }, sendNext));
}
