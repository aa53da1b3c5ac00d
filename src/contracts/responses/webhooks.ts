/** What receivers of webhooks get: schemas of `data` by the type of the event. */
import Type, { type TObject } from 'typebox';
import { TargetScore } from '../goals.js';
import { Id } from '../ids.js';
import type { WebhookType } from '../webhook-events.js';
import { Count, Day, each, nullable, Share, Time, TotalScore } from './bodies.js';

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
