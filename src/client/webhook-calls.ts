import { LearnerCalls } from './learner-calls.js';
import { type AllQuery, entriesOf, path } from './operations.js';
import type { CallOptions } from './transport.js';
import type * as Api from './types.js';

/** Operations on endpoints of webhooks. All reject with a SkilltraceError. */
export class WebhookCalls extends LearnerCalls {
  /** Has events sent to a URL. The answer alone has the secret that signs them; without it there may be an endpoint all the same. */
  async createWebhook(
    webhook: Api.WebhookSetting,
    options: CallOptions = {},
  ): Promise<Api.WebhookWithSecret> {
    return this.make('/api/v1/webhooks', webhook, options);
  }

  /** A page of the tenant's endpoints. */
  async webhooks(query: Api.PageQuery & CallOptions = {}): Promise<Api.WebhookPage> {
    return this.get('/api/v1/webhooks', query);
  }

  /** All of the tenant's endpoints. */
  allWebhooks(query: AllQuery = {}): AsyncGenerator<Api.Webhook, void, undefined> {
    return entriesOf(
      (cursor) => this.webhooks({ ...query, cursor }),
      ({ webhooks }) => webhooks,
    );
  }

  async webhook(webhookId: string, options: CallOptions = {}): Promise<Api.Webhook> {
    return this.get(path`/api/v1/webhooks/${webhookId}`, options);
  }

  /** Changes what is named, and nothing else. */
  async changeWebhook(
    webhookId: string,
    change: Api.WebhookChange,
    options: CallOptions = {},
  ): Promise<Api.Webhook> {
    const body = JSON.stringify(change);
    return this.data({ method: 'PATCH', path: path`/api/v1/webhooks/${webhookId}`, body }, options);
  }

  async deleteWebhook(webhookId: string, options: CallOptions = {}): Promise<Api.DeletedWebhook> {
    return this.remove(path`/api/v1/webhooks/${webhookId}`, options);
  }

  /** A new secret. It is tried again, for one whose answer was lost would be known to nobody. */
  async rotateSecret(
    webhookId: string,
    rotation: Api.SecretRotation = {},
    options: CallOptions = {},
  ): Promise<Api.WebhookWithSecret> {
    return this.post(path`/api/v1/webhooks/${webhookId}/rotate-secret`, rotation, options);
  }

  /** Sends it the event `webhook.test`. */
  async testWebhook(webhookId: string, options: CallOptions = {}): Promise<Api.SentMessage> {
    return this.make(path`/api/v1/webhooks/${webhookId}/test`, undefined, options);
  }

  /** A page of the messages of seven days, newest first. */
  async deliveries(webhookId: string, query: Api.PageQuery & CallOptions = {}): Promise<Api.DeliveryPage> {
    return this.get(path`/api/v1/webhooks/${webhookId}/deliveries`, query);
  }

  /** All messages of seven days, newest first. */
  allDeliveries(webhookId: string, query: AllQuery = {}): AsyncGenerator<Api.Delivery, void, undefined> {
    return entriesOf(
      (cursor) => this.deliveries(webhookId, { ...query, cursor }),
      ({ deliveries }) => deliveries,
    );
  }

  /** Sends a message again, under its id. */
  async redeliver(webhookId: string, messageId: string, options: CallOptions = {}): Promise<Api.SentMessage> {
    const target = path`/api/v1/webhooks/${webhookId}/deliveries/${messageId}/redeliver`;
    return this.data({ method: 'POST', path: target }, options);
  }
}
