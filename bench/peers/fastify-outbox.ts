/**
 * Fastify with the service's promises (peers.ts). It remembers event ids for a day, and uses a script, because WATCH
 * and MULTI take twice the CPU.
 */
import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import type { PeerSettings } from '../targets/peers.js';
import { type AnswerEvent, startFastify } from './fastify-app.js';
import { applyAnswer, parseRecord, type TracedAnswer } from './tracing.js';

const idSeconds = 86_400;
/** Writes only if state and id are unchanged since the read. */
const compareAndSet = `
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
if not redis.call('SET', KEYS[2], ARGV[3], 'NX', 'EX', ${idSeconds}) then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
redis.call('XADD', 'outbox', '*', 'attempt', ARGV[4])
return 1`;

const settings: PeerSettings = JSON.parse(process.argv[2] as string);
const scripts = { compareAndSet: { lua: compareAndSet, numberOfKeys: 2 } };
const redis = new Redis(settings.redisUrl, { enableAutoPipelining: true, scripts }) as Redis & {
  compareAndSet(...values: string[]): Promise<number>;
};

async function storeAnswer(event: AnswerEvent): Promise<TracedAnswer> {
  const state = `state:${event.user_id}:${event.skill_id}`;
  const id = `id:${event.user_id}:${event.event_id ?? randomUUID()}`;
  for (;;) {
    const [stored = null, known] = await redis.mget(state, id);
    if (known) return JSON.parse(known);
    const before = parseRecord(stored);
    const kept: TracedAnswer = {
      masteryBefore: before.mastery,
      after: applyAnswer(before, event.is_correct),
    };
    const row = JSON.stringify({ ...event, ...kept, at: Date.now() });
    const texts = [stored ?? '', JSON.stringify(kept.after), JSON.stringify(kept), row];
    if ((await redis.compareAndSet(state, id, ...texts)) === 1) return kept;
  }
}

await startFastify(settings, storeAnswer);
