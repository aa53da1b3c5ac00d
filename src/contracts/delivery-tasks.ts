export interface DeliveryTask {
  readonly url: string;
  /** Each signs, the newest first. */
  readonly secrets: readonly string[];
  /** Whether http and addresses that are not public are allowed. */
  readonly allowPrivate: boolean;
  readonly messages: readonly SentMessage[];
}

export interface SentMessage {
  readonly id: string;
  readonly body: string;
}

/** `status`: null without a response, for the given reason. */
export interface DeliveryReply {
  readonly status: number | null;
  readonly reason: string | null;
}
