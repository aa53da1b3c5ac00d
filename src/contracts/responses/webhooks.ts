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
export const Delivery = Type.Object({
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

const at = '2026-11-25T23:18:02.147Z';
const skillExample = {
  ...{ user_id: 'ada', skill_id: 'linear-equations', event_id: 'a-9', mastery_after: 0.9612 },
  ...{ total_attempts: 9, correct_attempts: 7, occurred_at: at },
};
const goalExample = {
  ...{ user_id: 'ada', target_score: 1300, target_date: null, current_total: 1310 },
  ...{ predicted_total: 1350, goal_probability: 0.7312 },
};

/** When each is sent, and its data. */
export const webhookNotes: Readonly<Record<WebhookType, readonly [summary: string, example: object]>> = {
  'mastery.reached': ['An answer brought mastery to .95; again only after it was below .80', skillExample],
  'plateau.detected': [
    'From this answer on the skill is on a plateau',
    { ...skillExample, mastery_after: 0.71 },
  ],
  'plateau.ended': ['From this answer on it is not any more', { ...skillExample, mastery_after: 0.82 }],
  'goal.reached': ['The current total is at the target; again only after 20 points less', goalExample],
  'goal.at_risk': ['The forecast misses the target; again only after 20 points more than it', goalExample],
  'model.published': [
    'Another model of the tenant is in force',
    { version: 4, based_on: 3, published_at: at },
  ],
  'erasure.completed': [
    'Nothing is left of a learner',
    { erasure_id: '3-651b057e-3fb6-4b21-b8e0-e2eba0a45ec0' },
  ],
  'webhook.test': ['Sent when asked for, whatever the endpoint asks for', { webhook_id: 'wh_fA0rAo9q' }],
};

export const webhookMessage = (type: WebhookType): TObject =>
  Type.Object({ type: Type.Literal(type), timestamp: Time, data: webhookData[type] });

export const webhookExample = (type: WebhookType): object => ({
  ...{ type, timestamp: at, data: webhookNotes[type][1] },
});
