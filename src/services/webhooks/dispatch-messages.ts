/** Turns events into messages, then removes the events. Message ids make repeats idempotent. */
import { waitForAll } from '../../concurrency.js';
import { ApiError } from '../../errors.js';
import { groupBy } from '../../lists.js';
import type { Logger } from '../../logger.js';
import type { Endpoint, EndpointStore } from '../../store/webhooks/endpoints.js';
import type { EventStreams, PendingEvent } from '../../store/webhooks/event-streams.js';
import type { MessageStore } from '../../store/webhooks/messages.js';

export interface DispatchDependencies {
  readonly streams: EventStreams;
  readonly endpoints: Pick<EndpointStore, 'list' | 'disable'>;
  readonly messages: Pick<MessageStore, 'add' | 'remove'>;
  readonly logger: Logger;
}

/** @returns true if there may be more events @throws the first error, after other tenants' events */
export type DispatchEvents = () => Promise<boolean>;

/** 1,000 events take about 50 ms of CPU time. */
const [minPageEvents, maxPageEvents] = [1000, 8000];

export function createDispatcher({
  streams,
  endpoints,
  messages,
  logger,
}: DispatchDependencies): DispatchEvents {
  let pageEvents = minPageEvents;
  return async () => {
    const { events, hasMore } = await streams.readOldest(pageEvents);
    const eventsByTenant = [...groupBy(events, (event) => event.tenant)];
    // Unreadable endpoints delay only the events of their tenant.
    const ended = waitForAll(eventsByTenant.map(([tenant, own]) => dispatchTenant(tenant, own)));
    await ended.catch((error: unknown) => {
      // A larger page reaches events of other tenants behind the failing ones.
      if (!(error instanceof ApiError)) pageEvents = maxPageEvents;
      throw error;
    });
    pageEvents = hasMore ? Math.min(2 * pageEvents, maxPageEvents) : minPageEvents;
    return hasMore;
  };

  async function dispatchTenant(tenant: string, events: readonly PendingEvent[]): Promise<void> {
    const enabledEndpoints = (await endpoints.list(tenant)).filter(({ enabled }) => enabled);
    for (const endpoint of enabledEndpoints) await addMessages(endpoint, events);
    // After the messages: a later erasure finds them, and an earlier one is visible here.
    const erasedEvents = enabledEndpoints.length === 0 ? [] : await streams.findErased(events);
    for (const endpoint of enabledEndpoints) await messages.remove(endpoint, erasedEvents);
    await streams.remove(events);
  }

  async function addMessages(endpoint: Endpoint, events: readonly PendingEvent[]): Promise<void> {
    const subscribedTypes = new Set<string>(endpoint.eventTypes);
    const subscribedEvents = events.filter(
      ({ type }) => subscribedTypes.has('*') || subscribedTypes.has(type),
    );
    const refused = await messages.add(endpoint, subscribedEvents);
    if (refused === 0) return;
    const { tenant, id } = endpoint;
    await endpoints.disable(tenant, id, 'undelivered');
    logger.error({ tenant, webhook: id, refused }, 'webhook disabled: too many undelivered messages');
  }
}
