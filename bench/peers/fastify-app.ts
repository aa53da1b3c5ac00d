import Fastify from 'fastify';
import { Redis } from 'ioredis';
import type { PeerSettings } from '../targets/peers.js';
import { applyAnswer, buildResponse, parseRecord, type TracedAnswer } from './tracing.js';

export interface AnswerEvent {
  readonly user_id: string;
  readonly skill_id: string;
  readonly is_correct: boolean;
  readonly time_spent_seconds?: number;
  readonly confidence_score?: number;
  readonly question_difficulty?: number;
  readonly event_id?: string;
  readonly item_id?: string;
  readonly occurred_at?: string;
}

const id = { type: 'string', minLength: 1, maxLength: 128 } as const;
const body = {
  type: 'object',
  required: ['user_id', 'skill_id', 'is_correct'],
  properties: {
    user_id: id,
    skill_id: id,
    is_correct: { type: 'boolean' },
    time_spent_seconds: { type: 'integer', minimum: 0, maximum: 86_400 },
    confidence_score: { type: 'integer', minimum: 1, maximum: 5 },
    question_difficulty: { type: 'number', minimum: -3, maximum: 3 },
    event_id: id,
    item_id: id,
    occurred_at: { type: 'string', format: 'date-time' },
  },
} as const;
const response = {
  200: {
    type: 'object',
    properties: {
      success: { type: 'boolean' },
      data: {
        type: 'object',
        properties: {
          mastery_before: { type: 'number' },
          mastery_after: { type: 'number' },
          velocity: { type: 'number' },
          plateau_detected: { type: 'boolean' },
          total_attempts: { type: 'integer' },
          correct_attempts: { type: 'integer' },
          recommendation: { type: ['string', 'null'] },
        },
      },
    },
  },
} as const;

export async function startFastify(
  { keys, port }: PeerSettings,
  storeAnswer: (event: AnswerEvent) => Promise<TracedAnswer>,
): Promise<void> {
  const validKeys = new Set(keys);
  const app = Fastify({ logger: false });
  app.addHook('onRequest', async (request, reply) => {
    if (!validKeys.has(request.headers['x-api-key'] as string)) {
      await reply.code(401).send({ success: false, error: { code: 'UNAUTHORIZED' } });
    }
  });
  app.post<{ Body: AnswerEvent }>('/api/v1/track-answer', { schema: { body, response } }, async (request) =>
    buildResponse(await storeAnswer(request.body)),
  );
  await app.listen({ host: '127.0.0.1', port });
  process.once('SIGTERM', () => process.exit(0));
  process.stdout.write('ready\n');
}

/** One read and one write per answer, so concurrent updates can be lost. */
export function createLastWriteStore(redisUrl: string): (event: AnswerEvent) => Promise<TracedAnswer> {
  const redis = new Redis(redisUrl, { enableAutoPipelining: true });
  return async (event) => {
    const learner = `learner:${event.user_id}`;
    const [stored, attempts] = await redis.hmget(learner, event.skill_id, 'attempts');
    const before = parseRecord(stored);
    const after = applyAnswer(before, event.is_correct);
    await redis.hset(learner, event.skill_id, JSON.stringify(after), 'attempts', Number(attempts ?? 0) + 1);
    return { masteryBefore: before.mastery, after };
  };
}
