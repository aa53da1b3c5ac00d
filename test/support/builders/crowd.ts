import { setTimeout as sleep } from 'node:timers/promises';
import type { Caller } from '../http/http.js';

const retryPauseMs = 50;
/** Leaves the servers some CPU time. */
const pauseMs = 20;

/** Learners that answer one after the other, and repeat each answer until it is accepted. */
export function startCrowd(caller: Caller, learners: readonly string[]) {
  /** Accepted answers in order, as `user/event`. */
  const confirmed: string[] = [];
  let isStopped = false;
  const answer = async (userId: string, n: number): Promise<void> => {
    const event = { user_id: userId, skill_id: 'algebra', is_correct: n % 3 > 0, event_id: `${n}` };
    for (;;) {
      const { status, headers, text } = await caller.track(event);
      if (status === 200) break;
      if (status !== 503 || headers['retry-after'] === undefined) throw new Error(`${status}: ${text}`);
      await sleep(retryPauseMs);
    }
    confirmed.push(`${userId}/${n}`);
  };
  const answerAll = async (userId: string): Promise<void> => {
    for (let n = 0; !isStopped; n++) {
      await answer(userId, n);
      await sleep(pauseMs);
    }
  };
  const running = Promise.all(learners.map(answerAll));
  // `stop` reports errors.
  running.catch(() => undefined);
  return {
    confirmed,
    /** Sends no new answers and waits for those in flight. @throws after an unexpected response */
    stop: async (): Promise<void> => {
      isStopped = true;
      await running;
    },
  };
}
