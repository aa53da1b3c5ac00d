/**
 * Sends messages in waves of at most one per learner, to preserve their order. Retries follow
 * standardwebhooks.com. After a crash, messages in flight are sent again.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { DeliveryReply, DeliveryTask } from '../../contracts/webhooks/delivery-tasks.js';
import { parseLearnerHash } from '../../contracts/webhooks/webhook-events.js';
import type { Logger } from '../../logger.js';
import { setRecentlyUsed } from '../../store/redis/commands/recently-used.js';
import type { Endpoint, EndpointStore } from '../../store/webhooks/endpoints.js';
import type {
  EndpointReference,
  Message,
  MessageOutcome,
  MessageState,
  MessageStore,
} from '../../store/webhooks/messages.js';

const retrySeconds = [5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400] as const;
/** Spreads retries of messages that failed together. */
const jitter = 0.1;

/** Milliseconds until the next attempt; null after the last. @param random 0 to 1 */
export function computeRetryDelay(tries: number, random: number): number | null {
  const seconds = retrySeconds[tries - 1];
  return seconds === undefined ? null : Math.round(seconds * 1000 * (1 + jitter * random));
}

/** Consecutive failures before a pause. A pause costs messages no attempts. */
const failuresBeforePause = 8;
const firstPauseMs = 1000;
const maxPauseMs = 300_000;

/** `until`: end of the last pause, monotonic. */
type FailureState = { readonly failures: number; readonly pauses: number; readonly until: number };

/** Failures during a pause do not count. Pauses double. */
export function computeFailureState(before: FailureState | undefined, now: number): FailureState {
  const { failures, pauses, until } = before ?? { failures: 0, pauses: 0, until: 0 };
  if (until > now) return { failures, pauses, until };
  if (failures + 1 < failuresBeforePause) return { failures: failures + 1, pauses, until };
  const pauseMs = Math.min(firstPauseMs * 2 ** pauses, maxPauseMs);
  return { failures: failures + 1, pauses: pauses + 1, until: now + pauseMs };
}

export const maxWaveMessages = 16;
const maxPageMessages = 64;
/** Limits sending to 250 messages per second, to leave CPU time for requests. */
const minPageMs = 256;
/** Limits a run, because other endpoints may be waiting. */
const maxRunMs = 10_000;
/** Limits the map: deleted endpoints stay in it. */
const maxFailureStates = 10_000;
/** A disabled endpoint with pending messages may be enabled again. */
const disabledPauseMs = 60_000;

const httpGone = 410;

export type DeliveryCounts = Record<'delivered' | 'failed' | 'given_up', number>;

export interface DeliveryDependencies {
  readonly endpoints: Pick<EndpointStore, 'find' | 'disable'>;
  readonly messages: MessageStore;
  /** Replies are in message order. */
  readonly send: (task: DeliveryTask) => Promise<DeliveryReply[]>;
  readonly allowPrivate: boolean;
  readonly counts: DeliveryCounts;
  readonly logger: Logger;
}

/** Calls `onProgress` after each wave. @throws errors of Redis; the next run continues */
export type Deliver = (
  endpoint: EndpointReference,
  signal: AbortSignal,
  onProgress: () => void,
) => Promise<void>;

export function createDeliverer(dependencies: DeliveryDependencies): Deliver {
  const { endpoints, messages, counts, logger } = dependencies;
  const failureStates = new Map<string, FailureState>();
  const getRemainingPause = ({ id }: EndpointReference): number =>
    Math.max(0, (failureStates.get(id)?.until ?? 0) - performance.now());

  /** A single message tests whether a failing receiver works again. */
  const selectPageSize = ({ id }: EndpointReference): number => (failureStates.has(id) ? 1 : maxPageMessages);

  return async (reference, signal, onProgress) => {
    const until = performance.now() + maxRunMs;
    const isRunOver = (): boolean =>
      signal.aborted || performance.now() >= until || getRemainingPause(reference) > 0;
    while (!isRunOver()) {
      const endpoint = await endpoints.find(reference.tenant, reference.id);
      if (!endpoint?.enabled) return void (await messages.scheduleNextRun(reference, disabledPauseMs));
      const due = await messages.listDue(endpoint, Date.now(), selectPageSize(reference));
      if (due.length === 0) break;
      const pageDelay = due.length === maxPageMessages ? sleep(minPageMs) : undefined;
      for (const wave of buildWaves(due)) {
        if (isRunOver()) break;
        await sendWave(endpoint, wave);
        onProgress();
      }
      await pageDelay;
    }
    await messages.scheduleNextRun(reference, getRemainingPause(reference));
  };

  async function sendWave(endpoint: Endpoint, wave: readonly Message[]): Promise<void> {
    const { url, secrets } = endpoint;
    const sent = wave.map(({ id, body }) => ({ id, body }));
    const replies = await dependencies.send({
      url,
      secrets,
      allowPrivate: dependencies.allowPrivate,
      messages: sent,
    });
    const tries = wave.map((message, i) => applyReply(endpoint, message, replies[i] as DeliveryReply));
    await messages.settle(endpoint, tries);
    const failed = tries.map(({ message }) => message).filter(({ status }) => status === 'failed');
    if (failed.length > 0) await giveUp(endpoint, failed);
  }

  function applyReply(endpoint: Endpoint, message: Message, reply: DeliveryReply): MessageOutcome {
    const tried = { ...message, tries: message.tries + 1, lastStatus: reply.status, lastError: reply.reason };
    const isConfirmed = reply.status !== null && reply.status >= 200 && reply.status < 300;
    if (!isConfirmed) return applyFailure(endpoint, tried, reply);
    counts.delivered += 1;
    failureStates.delete(endpoint.id);
    return { message: { ...tried, status: 'delivered' }, retryAfterMs: null };
  }

  function applyFailure(
    { tenant, id: webhook }: Endpoint,
    message: MessageState,
    reply: DeliveryReply,
  ): MessageOutcome {
    counts.failed += 1;
    const failureState = computeFailureState(failureStates.get(webhook), performance.now());
    setRecentlyUsed(failureStates, webhook, failureState, maxFailureStates);
    logger.debug(
      { tenant, webhook, message: message.id, tries: message.tries, ...reply },
      'a webhook attempt failed',
    );
    const retryAfterMs = reply.status === httpGone ? null : computeRetryDelay(message.tries, Math.random());
    return { message: { ...message, status: retryAfterMs === null ? 'failed' : 'pending' }, retryAfterMs };
  }

  /** Disables an endpoint that responded 410, or confirmed no message during a whole retry schedule. */
  async function giveUp(endpoint: Endpoint, failed: readonly MessageState[]): Promise<void> {
    counts.given_up += failed.length;
    const isGone = failed.some(({ lastStatus }) => lastStatus === httpGone);
    const newest = Math.max(...failed.map(({ at }) => at));
    if (!isGone && (await messages.fetchLastDelivery(endpoint)) > newest) return;
    const { tenant, id } = endpoint;
    await endpoints.disable(tenant, id, isGone ? 'gone' : 'failing');
    // The pause ends this run: other messages would also fail for good.
    // Failures start from 0 when the endpoint is enabled again.
    failureStates.set(id, { failures: 0, pauses: 0, until: performance.now() + firstPauseMs });
    const reason = isGone ? 'it responded 410 Gone' : 'all attempts failed for days';
    logger.error({ tenant, webhook: id }, `webhook disabled: ${reason}`);
  }
}

function buildWaves(due: readonly Message[]): Message[][] {
  const waves: Message[][] = [];
  /** By learner, the first free wave. */
  const next = new Map<string, number>();
  for (const message of due) {
    const learner = parseLearnerHash(message.id) ?? message.id;
    let index = next.get(learner) ?? 0;
    while ((waves[index]?.length ?? 0) >= maxWaveMessages) index += 1;
    const wave = waves[index];
    if (wave) wave.push(message);
    else waves.push([message]);
    next.set(learner, index + 1);
  }
  return waves;
}
