/** What is to be noticed of a learner's answers: events of their skills, and a check of the goal. */

import { sharedStart } from '../../src/concurrency.js';
import type { TrackEvent } from '../../src/contracts/tasks.js';
import { isWanted, type WebhookEvent, webhookEvent } from '../../src/contracts/webhook-events.js';
import { changesOf } from '../../src/domain/answer/changes.js';
import { round4 } from '../../src/domain/base/common.js';
import type { SkillState } from '../../src/domain/tracing/states.js';
import { ApiError } from '../../src/errors.js';
import { checkAfterMs, wantsGoals } from '../../src/store/learners/goal-checks.js';
import type { LearnerCommit } from '../../src/store/learners/learner-commands.js';
import type { RedisClient } from '../../src/store/redis/client.js';
import { wantedEvents } from '../../src/store/redis/event-stream.js';
import { keepRecent } from '../../src/store/redis/recent.js';

export type Notices = Pick<LearnerCommit, 'events' | 'goalCheckAt'>;

export const noNotices: Notices = { events: [], goalCheckAt: null };

/** What was to be noticed so far, and one more answer. @param wanted types that the tenant's endpoints ask for */
export function noticesOf(
  { events }: Notices,
  event: TrackEvent,
  before: SkillState,
  after: SkillState,
  wanted: string,
): Notices {
  const changes = changesOf(before, after).filter((type) => isWanted(wanted, type));
  const own = changes.map((type) => skillEvent(type, event, after));
  return {
    events: own.length === 0 ? events : [...events, ...own],
    goalCheckAt: wantsGoals(wanted) ? event.receivedAt + checkAfterMs : null,
  };
}

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
 * What a tenant's endpoints ask for, where it is not read with the learners: on a Cluster. While the node that has it is
 * unavailable nobody can change it, and what was read last holds.
 * @throws ApiError UNAVAILABLE from what it returns
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
