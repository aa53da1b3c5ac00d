import Type, { type TObject } from 'typebox';
import { TargetScore } from '../learners/goals.js';
import { StoredId } from '../schema/ids.js';
import { nullable } from '../schema/validate.js';
import { type WebhookType, webhookTypes } from '../webhooks/webhook-events.js';
import { Description, disabledReasons, EventTypes, WebhookUrl } from '../webhooks/webhooks.js';
import { TotalScore } from './predictions.js';
import { Count, Day, namedFields, pageSchema, Share, Time } from './shared-schemas.js';

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
const Secret = Type.String({
  pattern: '^whsec_',
  description: 'The signing secret. No other response contains it.',
});
export const WebhookWithSecret = Type.Object({ ...webhook, secret: Secret });

export const WebhookPage = pageSchema('webhooks', Webhook);

const message = { message_id: Type.String({ description: 'Value of the header webhook-id.' }) };
export const SentMessage = Type.Object(message);
export const Delivery = Type.Object({
  ...message,
  type: Type.Enum([...webhookTypes]),
  status: Type.Enum(['pending', 'delivered', 'failed']),
  tries: Count,
  last_status: nullable(Type.Integer()),
  last_error: nullable(Type.String({ description: 'Why the last attempt got no response.' })),
  next_try_at: nullable(Time),
  created_at: Time,
});
export const DeliveryPage = pageSchema('deliveries', Delivery, webhookId);

interface EventDescription {
  readonly summary: string;
  readonly data: TObject;
  readonly example: object;
}

const exampleTime = '2026-11-25T23:18:02.147Z';

/** State after the answer that caused the event. */
const SkillEvent = Type.Object({
  ...namedFields(StoredId, 'user_id', 'skill_id'),
  event_id: nullable(StoredId),
  mastery_after: Share,
  ...namedFields(Count, 'total_attempts', 'correct_attempts'),
  occurred_at: Time,
});

const describeSkillEvent = (mastery_after: number, summary: string): EventDescription => ({
  summary,
  data: SkillEvent,
  example: {
    ...{ user_id: 'ada', skill_id: 'linear-equations', event_id: 'a-9', mastery_after },
    ...{ total_attempts: 9, correct_attempts: 7, occurred_at: exampleTime },
  },
});

/** Forecast for the target date, or for 365 days. */
const GoalEvent = Type.Object({
  ...{ user_id: StoredId, target_score: TargetScore, target_date: nullable(Day) },
  ...namedFields(TotalScore, 'current_total', 'predicted_total'),
  goal_probability: Share,
});

const describeGoalEvent = (
  current_total: number,
  predicted_total: number,
  summary: string,
): EventDescription => ({
  summary,
  data: GoalEvent,
  example: {
    ...{ user_id: 'ada', target_score: 1300, target_date: null, current_total, predicted_total },
    goal_probability: predicted_total < 1300 ? 0.2811 : 0.7312,
  },
});

export const webhookDescriptions: Readonly<Record<WebhookType, EventDescription>> = {
  'mastery.reached': describeSkillEvent(
    0.9612,
    'An answer raised mastery to .95 or more. Sent again only after mastery was below .80.',
  ),
  'plateau.detected': describeSkillEvent(0.71, 'An answer started a plateau on the skill.'),
  'plateau.ended': describeSkillEvent(0.82, 'An answer ended the plateau on the skill.'),
  'goal.reached': describeGoalEvent(
    1310,
    1350,
    'The current total reached the target. Sent again only after the total was 20 points below the target.',
  ),
  'goal.at_risk': describeGoalEvent(
    1180,
    1240,
    'The forecast does not reach the target in time. Sent again only after the predicted total was 20 points above the target.',
  ),
  'model.published': {
    summary: 'Another model version of the tenant is active.',
    data: Type.Object({ ...namedFields(Count, 'version', 'based_on'), published_at: Time }),
    example: { version: 4, based_on: 3, published_at: exampleTime },
  },
  'erasure.completed': {
    summary: 'All data of a learner is erased.',
    data: Type.Object({ erasure_id: Type.String() }),
    example: { erasure_id: '3-651b057e-3fb6-4b21-b8e0-e2eba0a45ec0' },
  },
  'webhook.test': {
    summary: 'Test event, sent on request to any endpoint.',
    data: Type.Object(webhookId),
    example: { webhook_id: 'wh_fA0rAo9q' },
  },
};

export const createMessageSchema = (type: WebhookType): TObject =>
  Type.Object({ type: Type.Literal(type), timestamp: Time, data: webhookDescriptions[type].data });

export const createMessageExample = (type: WebhookType): object => ({
  ...{ type, timestamp: exampleTime, data: webhookDescriptions[type].example },
});
