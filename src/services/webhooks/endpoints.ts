/** What handing out and delivering need to know of endpoints. */
import type { WebhookType } from '../../contracts/webhook-events.js';

export interface WebhookEndpoint {
  readonly tenant: string;
  readonly id: string;
  readonly url: string;
  readonly eventTypes: readonly WebhookType[];
  readonly enabled: boolean;
  /** Those that sign now, the newest first. */
  readonly secrets: readonly string[];
}

export interface EndpointDirectory {
  list(tenant: string): Promise<readonly WebhookEndpoint[]>;
  find(tenant: string, id: string): Promise<WebhookEndpoint | null>;
  disable(tenant: string, id: string, reason: string): Promise<unknown>;
}
