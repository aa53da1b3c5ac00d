/** What the thread that sends webhooks is given, and returns. */

export interface DeliveryTask {
  readonly url: string;
  /** The header webhook-id. */
  readonly id: string;
  /** JSON. */
  readonly body: string;
  /** Each signs, the newest first. */
  readonly secrets: readonly string[];
  /** Whether http and addresses that are not public are allowed. */
  readonly allowPrivate: boolean;
}

/** `status`: of the response; null where there was none, for the given reason. */
export interface DeliveryReply {
  readonly status: number | null;
  readonly reason: string | null;
}
