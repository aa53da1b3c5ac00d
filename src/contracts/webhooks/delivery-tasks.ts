export interface DeliveryTask {
  readonly url: string;
  /** Newest first; each signs every message. */
  readonly secrets: readonly string[];
  /** Allow http and private addresses. */
  readonly allowPrivate: boolean;
  readonly messages: readonly OutgoingMessage[];
}

export interface OutgoingMessage {
  readonly id: string;
  readonly body: string;
}

/** `status`: null without a response. */
export interface DeliveryReply {
  readonly status: number | null;
  readonly reason: string | null;
}
