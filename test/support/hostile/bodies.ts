/** Bodies as large as they may be, of answers and of what is none. */
import { longId, skillName } from './seed.js';

const perBatch = 1000;
const mostBytes = 2 ** 20;

/** @param i of the batch: ids of answers differ between batches */
export const answerBatch = (i: number): Record<string, unknown>[] =>
  Array.from({ length: perBatch }, (_, n) => ({
    user_id: `user-${n % 100}`,
    // The tenant is full, and knows these.
    skill_id: skillName(n % 20),
    item_id: `item-${n}`,
    event_id: `b-${i}-${n}-${Math.random()}`,
    is_correct: n % 3 > 0,
    time_spent_seconds: 30,
    confidence_score: 3,
    question_difficulty: 0.5,
  }));

/** Learners and items of its own, all with the longest ids, filled up to the limit of a batch. */
export function batchBytes(i: number): Buffer {
  const named = answerBatch(i).map((one, n) => ({
    ...one,
    user_id: longUsers[n % 100],
    item_id: longId(),
    event_id: longId(),
  }));
  const text = JSON.stringify({ events: named, pad: '' });
  return Buffer.from(text.replace('"pad":""', `"pad":"${'x'.repeat(mostBytes - text.length)}"`));
}
const longUsers = Array.from({ length: 100 }, longId);

const filled = (piece: string, begin: string, end: string): string => {
  const count = Math.floor((mostBytes - begin.length - end.length) / piece.length);
  return begin + piece.repeat(count).replace(/,$/, '') + end;
};
const nested = (open: string, close: string): string => {
  const depth = Math.floor(mostBytes / (open.length + close.length)) - 10;
  return open.repeat(depth) + close.repeat(depth);
};

/** 1 MiB each, for routes whose bodies have `events` or `user_ids`. */
export const hugeBodies = (): Readonly<Record<string, string>> => ({
  'no JSON': filled('x', '', ''),
  'one string': filled('x', '{"user_ids":["', '"],"events":[""]}'),
  'one number': filled('1', '{"user_ids":[', '],"events":[1]}'),
  'many zeros': filled('0,', '{"user_ids":[', ']}'),
  'many events that are zeros': filled('0,', '{"events":[', ']}'),
  'many learners': filled('"a",', '{"user_ids":[', ']}'),
  'many keys': `{"user_ids":["a"],${Array.from({ length: 80_000 }, (_, i) => `"${i}x":0`).join()}}`,
  'many __proto__': filled('"__proto__":{},', '{"user_ids":["a"],', '}'),
  'nested lists': nested('[', ']'),
  'nested objects': nested('{"events":', '}'),
});
