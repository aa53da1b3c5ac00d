/** Webhook events and goal checks that an answer causes. */
import { shareUntilReady } from '../../src/concurrency.js';
import { createWebhookEvent, isSubscribed, type WebhookEvent } from '../../src/contracts/webhook-events.js';
import type { TrackEvent } from '../../src/contracts/worker-tasks.js';
import { detectSkillChanges } from '../../src/domain/answer/apply-answer.js';
import { round4 } from '../../src/domain/base/common.js';
import type { SkillState } from '../../src/domain/tracing/learner-states.js';
import { ApiError } from '../../src/errors.js';
import { checkAfterMs, wantsGoals } from '../../src/store/learners/goal-checks.js';
import type { RedisClient } from '../../src/store/redis/client.js';
import { setRecentlyUsed } from '../../src/store/redis/recently-used.js';
import { fetchSubscriptions } from '../../src/store/redis/webhook-events.js';
import type { LearnerWork } from './read-events.js';

export const eventsOf = (
  event: TrackEvent,
  before: SkillState,
  after: SkillState,
  wanted: string,
): WebhookEvent[] =>
  detectSkillChanges(before, after).flatMap((type) =>
    isSubscribed(wanted, type) ? [skillEvent(type, event, after)] : [],
  );

/** Unix milliseconds; null without a goal or a subscription to its alerts. */
export const goalCheckOf = ({ events }: LearnerWork, hasGoal: boolean, wanted: string): number | null =>
  hasGoal && wantsGoals(wanted) ? (events.at(-1)?.event.receivedAt ?? 0) + checkAfterMs : null;

function skillEvent(type: WebhookEvent['type'], event: TrackEvent, skill: SkillState): WebhookEvent {
  const { tenant, userId, skillId, eventId, occurredAt, receivedAt } = event;
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
export function askWanted(redis: () => Promise<RedisClient>, maxTenants = 1000) {
  const known = new Map<string, string>();
  const ask = shareUntilReady(
    redis,
    async (client, tenant: string) => (await fetchSubscriptions(client, [tenant]))[0] ?? '',
  );
  return async (tenant: string): Promise<string> => {
    try {
      const wanted = await ask(tenant);
      setRecentlyUsed(known, tenant, wanted, maxTenants);
      return wanted;
    } catch (error) {
      const last = known.get(tenant);
      if (error instanceof ApiError && last !== undefined) return last;
      throw error;
    }
  };
}
