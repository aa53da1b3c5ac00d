/** Webhook events and goal checks that an answer causes. */
import { shareUntilReady } from '../../src/concurrency.js';
import type { TrackEvent } from '../../src/contracts/answers/track-task.js';
import {
  createWebhookEvent,
  isSubscribed,
  type WebhookEvent,
} from '../../src/contracts/webhooks/webhook-events.js';
import { detectSkillChanges } from '../../src/domain/answer/apply-answer.js';
import { round4 } from '../../src/domain/base/common.js';
import type { SkillState } from '../../src/domain/tracing/learner-states.js';
import { ApiError } from '../../src/errors.js';
import { checkDelayMs, subscribesToGoals } from '../../src/store/learners/goal-checks.js';
import { setRecentlyUsed } from '../../src/store/redis/commands/recently-used.js';
import { fetchSubscriptions } from '../../src/store/redis/commands/webhook-events.js';
import type { RedisClient } from '../../src/store/redis/connection/client.js';
import type { LearnerEvents } from './read-events.js';

export const buildSkillEvents = (
  event: TrackEvent,
  skillId: string,
  before: SkillState,
  after: SkillState,
  subscribedTypes: string,
): WebhookEvent[] =>
  detectSkillChanges(before, after).flatMap((type) =>
    isSubscribed(subscribedTypes, type) ? [buildSkillEvent(type, event, skillId, after)] : [],
  );

/** Unix milliseconds; null without a goal or a subscription to its alerts. */
export const computeCheckTime = (
  { events }: LearnerEvents,
  hasGoal: boolean,
  subscribedTypes: string,
): number | null =>
  hasGoal && subscribesToGoals(subscribedTypes)
    ? (events.at(-1)?.event.receivedAt ?? 0) + checkDelayMs
    : null;

function buildSkillEvent(
  type: WebhookEvent['type'],
  event: TrackEvent,
  skillId: string,
  skill: SkillState,
): WebhookEvent {
  const { tenant, userId, eventId, occurredAt, receivedAt } = event;
  return createWebhookEvent(type, tenant, userId, receivedAt, {
    user_id: userId,
    skill_id: skillId,
    event_id: eventId,
    mastery_after: round4(skill.mastery),
    total_attempts: skill.attempts,
    correct_attempts: skill.correct,
    occurred_at: new Date(occurredAt).toISOString(),
  });
}

/**
 * For a Cluster: returns the last known types while their node is unavailable. @throws ApiError UNAVAILABLE
 */
export function createSubscriptionReader(redis: () => Promise<RedisClient>, maxTenants = 1000) {
  const cached = new Map<string, string>();
  const fetchCurrent = shareUntilReady(
    redis,
    async (client, tenant: string) => (await fetchSubscriptions(client, [tenant]))[0] ?? '',
  );
  return async (tenant: string): Promise<string> => {
    try {
      const subscribedTypes = await fetchCurrent(tenant);
      setRecentlyUsed(cached, tenant, subscribedTypes, maxTenants);
      return subscribedTypes;
    } catch (error) {
      const lastTypes = cached.get(tenant);
      if (error instanceof ApiError && lastTypes !== undefined) return lastTypes;
      throw error;
    }
  };
}
