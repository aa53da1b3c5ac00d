/** Sentences of the terms of a prediction: one for each, with its figures, true to its sign. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  features,
  findColumn,
  patternColumn,
  rowWidth,
  runColumn,
  streakColumn,
} from '../../src/domain/prediction/features.js';
import type { Term } from '../../src/domain/prediction/prediction-model.js';
import { formatTerm } from '../../src/domain/prediction/term-texts.js';
import { decodeItemPattern, encodeItemPattern, newItemTrace } from '../../src/domain/tracing/traces.js';

const columns = new Map<string, number>([
  ...features.map(({ name }) => [name, findColumn(name)] as const),
  ...Object.entries({ itemRun: runColumn, streak: streakColumn, itemPattern: patternColumn }),
]);

function textOf(name: Term['name'], logits: number, figure = 0): string {
  const row = new Float64Array(rowWidth);
  const column = columns.get(name);
  if (column !== undefined) row[column] = figure;
  return formatTerm({ name, logits }, row);
}

const minutes = (count: number): number => Math.log1p(count);

const golden: readonly (readonly [Term['name'], number, number, string])[] = [
  [
    'base',
    -0.2,
    0,
    'The starting point, the same for every learner, is below an even chance: this lowers the chance.',
  ],
  [
    'bkt',
    0.34,
    Math.log(3),
    'By mastery of this skill alone, about 75 in 100 answers would be right: this raises the chance.',
  ],
  ['streak', 0.3, 4, 'The last 4 answers on this skill were right: this raises the chance.'],
  ['streak', 0.4, 5, 'The last 5 or more answers on this skill were right: this raises the chance.'],
  ['streak', -0.1, -1, 'The last answer on this skill was wrong: this lowers the chance.'],
  ['itemRun', -0.2, 2, 'The last 2 answers to this very question were wrong: this lowers the chance.'],
  [
    'itemPattern',
    0.2,
    encodeItemPattern({ ...newItemTrace, right: 3, wrong: 2, wrongBits: 0b0100 }, true),
    'Of the last 4 answers to this very question, 3 were right: this raises the chance.',
  ],
  [
    'itemPattern',
    0.2,
    encodeItemPattern({ ...newItemTrace, wrong: 1, wrongBits: 1 }, false),
    'The one answer to this very question was wrong: this raises the chance.',
  ],
  [
    'rightAnswers',
    0.1,
    Math.fround(Math.log1p(1)),
    'Over all skills, 1 answer was right: this raises the chance.',
  ],
  [
    'wrongAnswers',
    -0.1,
    Math.fround(Math.log1p(12_345)),
    'Over all skills, 12345 answers were wrong: this lowers the chance.',
  ],
  [
    'timeSinceRight',
    -0.1,
    minutes(0.5),
    'The last right answer on any skill was less than a minute ago: this lowers the chance.',
  ],
  [
    'timeSinceRightOnSkill',
    -0.1,
    minutes(1),
    'The last right answer on this skill was 1 minute ago: this lowers the chance.',
  ],
  [
    'itemTime',
    0.1,
    minutes(300),
    'This very question was last answered 5 hours ago: this raises the chance.',
  ],
  [
    'itemTimeIfRight',
    0.00004,
    minutes(3 * 1440),
    'This very question was last answered right, 3 days ago: this raises the chance.',
  ],
  [
    'lastRightByTime',
    0.1,
    1 / (1 + minutes(10)),
    'The last answer on this skill was right, 10 minutes ago: this raises the chance.',
  ],
  [
    'lastRightByAnswers',
    0.1,
    1 / 3,
    'The last answer on this skill was right, with 2 answers on other skills since: this raises the chance.',
  ],
  [
    'practisedBefore',
    0,
    0,
    'After what was practised just before, and how it went, answers on this skill are less often right than usual: this hardly changes the chance.',
  ],
];

test('figures are told in words', () => {
  for (const [name, logits, figure, text] of golden) assert.equal(textOf(name, logits, figure), text);
});

test('the pattern of an item is the answers that it was made of', () => {
  const lists = fc.array(fc.boolean(), { minLength: 1, maxLength: 9 });
  fc.assert(
    fc.property(lists, fc.boolean(), (answers, isLatest) => {
      const right = answers.filter(Boolean).length;
      const wrongBits = answers.reduce((bits, isRight) => ((bits << 1) | (isRight ? 0 : 1)) & 15, 0);
      const pattern = encodeItemPattern(
        { ...newItemTrace, right, wrong: answers.length - right, wrongBits },
        isLatest,
      );
      const last = answers.slice(-4);
      assert.deepEqual(decodeItemPattern(pattern), {
        answers: last.length,
        wrong: last.filter((one) => !one).length,
      });
    }),
  );
});
