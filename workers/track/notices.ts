/** Notifications of a learner's answers: events of skills, and a check of the goal. */
import { sharedStart } from '../../src/concurrency.js';
import type { TrackEvent } from '../../src/contracts/tasks.js';
import { isWanted, type WebhookEvent, webhookEvent } from '../../src/contracts/webhook-events.js';
import { changesOf } from '../../src/domain/answer/apply-answer.js';
import { round4 } from '../../src/domain/base/common.js';
import type { SkillState } from '../../src/domain/tracing/states.js';
import { ApiError } from '../../src/errors.js';
import { checkAfterMs, wantsGoals } from '../../src/store/learners/goal-checks.js';
import type { RedisClient } from '../../src/store/redis/client.js';
import { wantedEvents } from '../../src/store/redis/event-stream.js';
import { keepRecent } from '../../src/store/redis/recent.js';
import type { LearnerWork } from './read-events.js';

/** Events of an answer's effect on its skill. @param wanted event types of the tenant's endpoints */
export const eventsOf = (
  event: TrackEvent,
  before: SkillState,
  after: SkillState,
  wanted: string,
): WebhookEvent[] =>
  changesOf(before, after).flatMap((type) =>
    isWanted(wanted, type) ? [skillEvent(type, event, after)] : [],
  );

/** Time of the goal check after these answers, in Unix milliseconds; null if no endpoint wants alerts. */
export const goalCheckOf = ({ events }: LearnerWork, hasGoal: boolean, wanted: string): number | null =>
  hasGoal && wantsGoals(wanted) ? (events.at(-1)?.event.receivedAt ?? 0) + checkAfterMs : null;

function skillEvent(type: WebhookEvent['type'], event: TrackEvent, skill: SkillState): WebhookEvent {
  const { tenant, userId, skillId, eventId, occurredAt, receivedAt } = event;
  return webhookEvent(type, tenant, userId, receivedAt, {
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
 * Event types of a tenant's endpoints, on a Cluster; the last known ones while its node is unavailable. @throws ApiError
 * UNAVAILABLE
 */
export function askWanted(redis: () => Promise<RedisClient>, maxTenants = 1000) {
  const known = new Map<string, string>();
  const ask = sharedStart(
    redis,
    async (client, tenant: string) => (await wantedEvents(client, [tenant]))[0] ?? '',
  );
  return async (tenant: string): Promise<string> => {
    try {
      const wanted = await ask(tenant);
      keepRecent(known, tenant, wanted, maxTenants);
      return wanted;
    } catch (error) {
      const last = known.get(tenant);
      if (error instanceof ApiError && last !== undefined) return last;
      throw error;
    }
  };
}
