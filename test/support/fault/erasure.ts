/** A learner who is erased while a fault is there, and begins anew at once. */
import { callerOf, type JsonAnswer } from '../http/http.js';
import { waitFor } from '../wait.js';
import { type AnswerEvent, confirm, type Entry, newEntry } from './ledger.js';
import type { Stand } from './stand.js';

export interface ErasedLearner {
  /** Asks for the erasure; then posts the answers of the new history, which are all that is to be left. */
  erase(): Promise<Entry[]>;
  /** Resolves when the erasure is told to be done. */
  done(): Promise<void>;
}

const answersBefore = 40;
const answersAfter = 25;
/** As long as a fault and what follows it may take; it only bounds a failing test. */
const limitMs = 180_000;

/** Posts the learner's answers of before. */
export async function plantLearner(stand: Stand, learner: string): Promise<ErasedLearner> {
  const [tenant = ''] = stand.tenants;
  const caller = callerOf(stand, tenant);
  let statusUrl = '';
  const post = (events: readonly AnswerEvent[]): Promise<JsonAnswer> =>
    untilAnswered(
      'answers to be taken',
      () => caller.trackAll(events),
      ({ status }) => status === 200,
    );
  await post(eventsOf(learner, 'before', answersBefore));
  return {
    erase: async () => {
      const path = `/api/v1/learners/${learner}`;
      const begun = await untilAnswered(
        'an erasure to begin',
        () => caller.call({ method: 'DELETE', path }),
        ({ status }) => status === 202,
      );
      statusUrl = begun.json.data.status_url;
      const entries = eventsOf(learner, 'after', answersAfter).map((event) => newEntry(tenant, event));
      const { json } = await post(entries.map(({ event }) => event));
      entries.forEach((entry, i) => {
        const { data, replayed } = json.data.results[i];
        confirm(entry, data, replayed === true);
      });
      return entries;
    },
    done: async () => {
      await untilAnswered(
        'the erasure to be done',
        () => caller.get(statusUrl),
        ({ status, json }) => status === 200 && json.data.status === 'done',
      );
    },
  };
}

const eventsOf = (learner: string, name: string, count: number): AnswerEvent[] =>
  Array.from({ length: count }, (_, i) => ({
    user_id: learner,
    skill_id: i % 2 === 0 ? 'algebra' : 'reading',
    is_correct: i % 3 > 0,
    item_id: `item-${i}`,
    event_id: `${name}-${i}`,
  }));

/** Asks again where no answer comes, too. */
async function untilAnswered(
  what: string,
  ask: () => Promise<JsonAnswer>,
  wanted: (answer: JsonAnswer) => boolean,
): Promise<JsonAnswer> {
  let answer: JsonAnswer | null = null;
  const isThere = async (): Promise<boolean> => {
    // A connection that is cut is what these tests are about.
    answer = await ask().catch(() => null);
    return answer !== null && wanted(answer);
  };
  await waitFor(what, isThere, limitMs);
  return answer as unknown as JsonAnswer;
}
