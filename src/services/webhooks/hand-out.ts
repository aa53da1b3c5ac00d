/** Turns events into messages, then removes the events. Message ids make repeats idempotent. */
import { waitForAll } from '../../concurrency.js';
import { ApiError } from '../../errors.js';
import { groupBy } from '../../lists.js';
import type { Logger } from '../../logger.js';
import type { Endpoint, EndpointStore } from '../../store/webhooks/endpoints.js';
import type { EventStreams, PendingEvent } from '../../store/webhooks/event-streams.js';
import type { MessageStore } from '../../store/webhooks/messages.js';

export interface HandOutParts {
  readonly streams: EventStreams;
  readonly endpoints: Pick<EndpointStore, 'list' | 'disable'>;
  readonly messages: Pick<MessageStore, 'add' | 'remove'>;
  readonly logger: Logger;
}

/** @returns true if there may be more events @throws the first error, after other tenants' events */
export type HandOut = () => Promise<boolean>;

/** 1,000 events take about 50 ms of CPU time. */
const [firstPage, largestPage] = [1000, 8000];

export function createHandOut({ streams, endpoints, messages, logger }: HandOutParts): HandOut {
  let atMost = firstPage;
  return async () => {
    const { events, hasMore } = await streams.readOldest(atMost);
    const ofTenants = [...groupBy(events, (event) => event.tenant)];
    // Unreadable endpoints delay only the events of their tenant.
    const ended = waitForAll(ofTenants.map(([tenant, own]) => handOut(tenant, own)));
    await ended.catch((error: unknown) => {
      // A larger page reaches events of other tenants behind the failing ones.
      if (!(error instanceof ApiError)) atMost = largestPage;
      throw error;
    });
    atMost = hasMore ? Math.min(2 * atMost, largestPage) : firstPage;
    return hasMore;
  };

  async function handOut(tenant: string, events: readonly PendingEvent[]): Promise<void> {
    const open = (await endpoints.list(tenant)).filter(({ enabled }) => enabled);
    for (const endpoint of open) await addTo(endpoint, events);
    // After the messages: a later erasure finds them, and an earlier one is visible here.
    const late = open.length === 0 ? [] : await streams.findErased(events);
    for (const endpoint of open) await messages.remove(endpoint, late);
    await streams.remove(events);
  }

  async function addTo(endpoint: Endpoint, events: readonly PendingEvent[]): Promise<void> {
    const asked = new Set<string>(endpoint.eventTypes);
    const wanted = events.filter(({ type }) => asked.has('*') || asked.has(type));
    const refused = await messages.add(endpoint, wanted);
    if (refused === 0) return;
    const { tenant, id } = endpoint;
    await endpoints.disable(tenant, id, 'undelivered');
    logger.error({ tenant, webhook: id, refused }, 'a webhook is disabled: too many messages wait for it');
  }
}
