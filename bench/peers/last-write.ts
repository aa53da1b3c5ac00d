/** State of learner and skill in a hash, the last write wins: a read and a write of Redis, and nothing that outlives the request. */
import { Redis } from 'ioredis';
import type { AnswerEvent, TracedAnswer } from './fastify-app.js';
import { answered, recordOf } from './tracing.js';

export function lastWriteWins(redisUrl: string): (event: AnswerEvent) => Promise<TracedAnswer> {
  const redis = new Redis(redisUrl, { enableAutoPipelining: true });
  return async (event) => {
    const learner = `learner:${event.user_id}`;
    const [stored, attempts] = await redis.hmget(learner, event.skill_id, 'attempts');
    const before = recordOf(stored);
    const after = answered(before, event.is_correct);
    await redis.hset(learner, event.skill_id, JSON.stringify(after), 'attempts', Number(attempts ?? 0) + 1);
    return { event, masteryBefore: before.mastery, after };
  };
}
