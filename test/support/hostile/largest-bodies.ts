/** The largest bodies, of answers and of what is none, as requests. */
import { gzipSync } from 'node:zlib';
import type { Asking } from './ask.js';
import { answerBatch, batchBytes, hugeBodies } from './bodies.js';
import type { LargestCase } from './largest.js';
import { keys } from './stand.js';

const key = keys.wide;

export const batches: readonly LargestCase[] = [
  { name: 'batch of 1,000', asking: (i) => batchOf({ body: JSON.stringify({ events: answerBatch(i) }) }) },
  {
    name: 'batch of 1,000, ids of 128 characters, 1 MiB',
    asking: (i) => batchOf({ body: batchBytes(i) }),
  },
  {
    name: 'batch of 1,000, NDJSON',
    asking: (i) =>
      batchOf({
        body: answerBatch(i)
          .map((one) => `${JSON.stringify(one)}\n`)
          .join(''),
        headers: { 'Content-Type': 'application/x-ndjson' },
      }),
  },
  {
    name: 'batch of 1,000, gzip, 1 MiB',
    asking: (i) => batchOf({ body: gzipSync(batchBytes(i)), headers: { 'Content-Encoding': 'gzip' } }),
  },
  {
    name: 'batch of 1,000 of one learner',
    asking: (i) =>
      batchOf({
        body: JSON.stringify({ events: answerBatch(i).map((one) => ({ ...one, user_id: `one-${i % 20}` })) }),
      }),
  },
  { name: 'batch of 1,000, all refused', asking: () => batchOf({ body: refusedBatch }) },
  {
    name: 'batch of 1,000, every field refused',
    asking: () => batchOf({ body: refusedFields }),
  },
];
const refusedBatch = JSON.stringify({ events: Array.from({ length: 1000 }, () => ({})) });
const refusedFields = JSON.stringify({
  events: Array.from({ length: 1000 }, () => ({
    user_id: '',
    skill_id: 1,
    is_correct: 'yes',
    time_spent_seconds: -1,
    confidence_score: 9,
    question_difficulty: 'x',
    event_id: '',
    item_id: [],
    occurred_at: 'now',
  })),
});
const batchOf = (change: Partial<Asking>): Asking => ({
  method: 'POST',
  path: '/api/v1/track-answers',
  key,
  ...change,
});

/** For a route whose bodies go to the worker threads as they are, and for one that parses them where it answers. */
export const oddBodies: readonly LargestCase[] = Object.entries(hugeBodies()).flatMap(([what, body]) => [
  { name: `batch: ${what}`, asking: () => batchOf({ body }) },
  { name: `class: ${what}`, asking: () => batchOf({ body, path: '/api/v1/predictions' }) },
]);

export const bomb: LargestCase = {
  name: 'batch: gzip of 1 GB',
  asking: () => batchOf({ body: bombBytes, headers: { 'Content-Encoding': 'gzip' } }),
};
const bombBytes = Buffer.concat(Array.from({ length: 16 }, () => gzipSync(Buffer.alloc(2 ** 26, 48))));
