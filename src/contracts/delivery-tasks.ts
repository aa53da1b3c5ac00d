/** What the thread that sends webhooks is given, and returns. */

/** Messages to one endpoint, to be sent side by side. */
export interface DeliveryTask {
  readonly url: string;
  /** Each signs, the newest first. */
  readonly secrets: readonly string[];
  /** Whether http and addresses that are not public are allowed. */
  readonly allowPrivate: boolean;
  readonly messages: readonly SentMessage[];
}

export interface SentMessage {
  /** The header webhook-id. */
  readonly id: string;
  /** JSON. */
  readonly body: string;
}

/** Of one message. `status`: of the response; null where there was none, for the given reason. */
export interface DeliveryReply {
  readonly status: number | null;
  readonly reason: string | null;
}
