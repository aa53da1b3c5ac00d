/** Learners who keep answering, each repeating an answer until it is confirmed, whatever happens to the servers. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Caller } from '../http/http.js';

export interface Crowd {
  /** Names of the confirmed answers, `user/event`, in order. */
  readonly confirmed: string[];
  /** Refused requests. */
  readonly refused: () => number;
  /** Sends no new answers; resolves when those under way are confirmed. */
  stop(): Promise<void>;
}

const pauseMs = 50;
/** Between a learner's answers: hundreds a second arrive all the same, and leave the servers something of the processor. */
const restMs = 20;

/**
 * @param learners ids of those who answer, each one answer after the other
 * @throws from `stop`, what a server should never say
 */
export function startCrowd(caller: Caller, learners: readonly string[]): Crowd {
  const confirmed: string[] = [];
  let refused = 0;
  let stopped = false;
  const answer = async (userId: string, n: number): Promise<void> => {
    const event = { user_id: userId, skill_id: 'algebra', is_correct: n % 3 > 0, event_id: `${n}` };
    for (;;) {
      const { status, headers, text } = await caller.track(event);
      if (status === 200) break;
      if (status !== 503 || headers['retry-after'] === undefined) throw new Error(`${status}: ${text}`);
      refused += 1;
      await sleep(pauseMs);
    }
    confirmed.push(`${userId}/${n}`);
  };
  const running = Promise.all(
    learners.map(async (userId) => {
      for (let n = 0; !stopped; n++) {
        await answer(userId, n);
        await sleep(restMs);
      }
    }),
  );
  // Heard by whoever calls `stop`.
  running.catch(() => undefined);
  return {
    confirmed,
    refused: () => refused,
    stop: async () => {
      stopped = true;
      await running;
    },
  };
}
