import type { CorrectedRows } from '../../contracts/corrections.js';
import { learnerHash } from '../../contracts/learner-name.js';
import { learnerHashOf } from '../../contracts/webhook-events.js';
import { groupedBy } from '../../lists.js';
import type { EndpointStore } from '../../store/webhooks/endpoints.js';
import type { MessageStore } from '../../store/webhooks/messages.js';

export interface ForgetParts {
  readonly endpoints: Pick<EndpointStore, 'list'>;
  readonly messages: Pick<MessageStore, 'all' | 'forget'>;
}

/** Forgets the messages of histories that erasures have ended. May be repeated. @throws ApiError UNAVAILABLE */
export const createForgetting =
  ({ endpoints, messages }: ForgetParts) =>
  async (rows: readonly CorrectedRows[]): Promise<void> => {
    for (const [tenant, own] of groupedBy(rows, (one) => one.tenant)) {
      const ends = new Map(own.map(({ userId, below }) => [learnerHash(tenant, userId), below.ms]));
      for (const endpoint of await endpoints.list(tenant))
        for await (const page of messages.all(endpoint)) {
          const over = page.filter(({ id, at }) => at <= (ends.get(learnerHashOf(id) ?? '') ?? 0));
          await messages.forget(endpoint, over);
        }
    }
  };
