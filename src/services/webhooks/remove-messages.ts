import type { CorrectedRows } from '../../contracts/corrections/corrections.js';
import { createErasureFilter } from '../../contracts/webhooks/webhook-events.js';
import { distinct } from '../../lists.js';
import type { EndpointStore } from '../../store/webhooks/endpoints.js';
import type { MessageStore } from '../../store/webhooks/messages.js';

export interface RemovalDependencies {
  readonly endpoints: Pick<EndpointStore, 'list'>;
  readonly messages: Pick<MessageStore, 'listAll' | 'remove'>;
}

/** Removes messages about erased histories. Idempotent. @throws ApiError UNAVAILABLE */
export const createMessageRemover =
  ({ endpoints, messages }: RemovalDependencies) =>
  async (rows: readonly CorrectedRows[]): Promise<void> => {
    const isErased = createErasureFilter(rows);
    for (const tenant of distinct(rows.map((one) => one.tenant)))
      for (const endpoint of await endpoints.list(tenant))
        for await (const page of messages.listAll(endpoint)) {
          const erasedMessages = page.filter(({ id, at }) => isErased(id, at));
          await messages.remove(endpoint, erasedMessages);
        }
  };
