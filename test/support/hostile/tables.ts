/** What the tests of hostile callers have measured, as the tables of docs/operations.md. */
import type { FloodFigures } from './floods.js';
import type { LoopFigures } from './loop.js';
import type { NamesFigures } from './names.js';
import type { UnreadFigures } from './readers.js';
import { printTable } from './report.js';

export function tellMany(all: readonly NamesFigures[], without: number): void {
  printTable(
    `A learner and a tenant with the most skills; another tenant's p99 without: ${without.toFixed(1)} ms`,
    ['asked', 'answers', 'bytes', 'p50 ms', 'longest delay ms', "another tenant's p50", 'p99', 'refused'],
    all.map(({ name, answers, own, loopDelay, neighbour: { p50, p99, refused } }) => [
      name,
      answers.length,
      Math.max(...answers.map(({ bytes }) => bytes)),
      own,
      loopDelay,
      p50,
      p99,
      refused,
    ]),
  );
}

export function tellLargest(all: readonly LoopFigures[], without: number): void {
  printTable(
    `The largest of each endpoint; another tenant's p99 without: ${without.toFixed(1)} ms`,
    [
      'asked',
      'answers',
      'bytes',
      'p50 ms',
      'p50 of 20 at once',
      'delay ms',
      'delay, 20 at once',
      "another's p99",
      "another's, 20 at once",
      'MB',
    ],
    all.map((one) => [
      one.name,
      one.statuses,
      one.bytes,
      one.alone,
      one.together,
      one.delayAlone,
      one.delayTogether,
      one.waitAlone,
      // Answered before another tenant's next post.
      one.waitTogether === 0 ? '-' : one.waitTogether,
      one.memory,
    ]),
  );
}

export function tellFloods(all: readonly FloodFigures[], without: number): void {
  printTable(
    `20 clients, each with one write; another tenant's p99 without: ${without.toFixed(1)} ms`,
    ['sent', 'bytes each', 'longest delay ms', "another tenant's p50", 'p99', 'refused'],
    all.map(({ name, bytes, loopDelay, neighbour: { p50, p99, refused } }) => [
      name,
      bytes,
      loopDelay,
      p50,
      p99,
      refused,
    ]),
  );
}

export function tellUnread(all: readonly UnreadFigures[]): void {
  printTable(
    'Clients that never read',
    [
      'asked',
      'clients',
      'MB before',
      'at most',
      'after',
      'connections held',
      "a client's p50 ms",
      'p99',
      'refused',
      'goes on',
    ],
    all.map(({ name, sockets, start, peak, end, held, neighbour: { p50, p99, refused }, goesOn }) => [
      name,
      sockets,
      start,
      peak,
      end,
      held,
      p50,
      p99,
      refused,
      goesOn ? 'yes' : 'no',
    ]),
  );
}
