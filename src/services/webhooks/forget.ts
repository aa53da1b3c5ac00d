import type { CorrectedRows } from '../../contracts/corrections.js';
import { createErasureFilter } from '../../contracts/webhook-events.js';
import { distinct } from '../../lists.js';
import type { EndpointStore } from '../../store/webhooks/endpoints.js';
import type { MessageStore } from '../../store/webhooks/messages.js';

export interface ForgetParts {
  readonly endpoints: Pick<EndpointStore, 'list'>;
  readonly messages: Pick<MessageStore, 'listAll' | 'remove'>;
}

/** Removes messages about erased histories. Idempotent. @throws ApiError UNAVAILABLE */
export const createForgetting =
  ({ endpoints, messages }: ForgetParts) =>
  async (rows: readonly CorrectedRows[]): Promise<void> => {
    const isOver = createErasureFilter(rows);
    for (const tenant of distinct(rows.map((one) => one.tenant)))
      for (const endpoint of await endpoints.list(tenant))
        for await (const page of messages.listAll(endpoint)) {
          const over = page.filter(({ id, at }) => isOver(id, at));
          await messages.remove(endpoint, over);
        }
  };
