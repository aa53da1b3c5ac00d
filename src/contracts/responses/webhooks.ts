/** What receivers of webhooks get: schemas of `data` by the type of the event. */
import Type, { type TObject } from 'typebox';
import { TargetScore } from '../goals.js';
import { Id } from '../ids.js';
import { type WebhookType, webhookTypes } from '../webhook-events.js';
import { Description, disabledReasons, EventTypes, WebhookUrl } from '../webhooks.js';
import { Count, Day, each, nullable, Share, Time, TotalScore } from './bodies.js';

const webhookId = { webhook_id: Type.String() };

const webhook = {
  ...webhookId,
  url: WebhookUrl,
  event_types: EventTypes,
  description: nullable(Description),
  enabled: Type.Boolean(),
  disabled_reason: nullable(Type.Enum([...disabledReasons])),
  created_at: Time,
};
export const Webhook = Type.Object(webhook);
export const DeletedWebhook = Type.Object(webhookId);
const Secret = Type.String({ pattern: '^whsec_', description: 'Shown here and nowhere else' });
export const WebhookWithSecret = Type.Object({ ...webhook, secret: Secret });

const next_cursor = nullable(Type.String());
export const WebhookPage = Type.Object({ webhooks: Type.Array(Webhook), next_cursor });

const message = { message_id: Type.String({ description: 'The header webhook-id' }) };
export const SentMessage = Type.Object(message);
const Delivery = Type.Object({
  ...message,
  type: Type.Enum([...webhookTypes]),
  status: Type.Enum(['pending', 'delivered', 'failed']),
  tries: Count,
  last_status: nullable(Type.Integer()),
  next_try_at: nullable(Time),
  created_at: Time,
});
export const DeliveryPage = Type.Object({ ...webhookId, deliveries: Type.Array(Delivery), next_cursor });

/** One learner on one skill, as of the answer that decided it. */
const SkillEvent = Type.Object({
  ...each(Id, 'user_id', 'skill_id'),
  event_id: nullable(Id),
  mastery_after: Share,
  ...each(Count, 'total_attempts', 'correct_attempts'),
  occurred_at: Time,
});

/** The forecast that decided it: at the target date, where none is set at 365 days. */
const GoalEvent = Type.Object({
  user_id: Id,
  target_score: TargetScore,
  target_date: nullable(Day),
  ...each(TotalScore, 'current_total', 'predicted_total'),
  goal_probability: Share,
});

export const webhookData: Readonly<Record<WebhookType, TObject>> = {
  'mastery.reached': SkillEvent,
  'plateau.detected': SkillEvent,
  'plateau.ended': SkillEvent,
  'goal.reached': GoalEvent,
  'goal.at_risk': GoalEvent,
  'model.published': Type.Object({ ...each(Count, 'version', 'based_on'), published_at: Time }),
  'erasure.completed': Type.Object({ erasure_id: Type.String() }),
  'webhook.test': Type.Object({ webhook_id: Type.String() }),
};
