export interface DeliveryTask {
  readonly url: string;
  /** Each signs every message; newest first. */
  readonly secrets: readonly string[];
  /** Also allow http and addresses that are not public. */
  readonly allowPrivate: boolean;
  readonly messages: readonly SentMessage[];
}

export interface SentMessage {
  readonly id: string;
  readonly body: string;
}

/** `status` is null without a response, for `reason`. */
export interface DeliveryReply {
  readonly status: number | null;
  readonly reason: string | null;
}
