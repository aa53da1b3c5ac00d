import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nextItemsConstants } from '../../src/domain/advice/advice-constants.js';
import {
  assessQuestions,
  type Candidate,
  explainCandidate,
  orderCandidates,
} from '../../src/domain/advice/next-items.js';
import { computeConditions } from '../../src/domain/answer/answer-conditions.js';
import { defaultParameters } from '../../src/domain/base/bkt-parameters.js';
import { dayMs, logit, sigmoid } from '../../src/domain/base/common.js';
import { itemTermCount } from '../../src/domain/prediction/prediction-model.js';
import { emptyRelatedTerms } from '../../src/domain/prediction/related-terms.js';
import { assessLearner } from '../../src/domain/score/assessment.js';
import { hashQuestionKeys } from '../../src/domain/tracing/course.js';
import { newLearner, newSkill } from '../../src/domain/tracing/learner-states.js';
import { newItemTrace } from '../../src/domain/tracing/traces.js';
import { between } from '../support/builders/arbitraries.js';
import { fc } from '../support/builders/properties.js';
import { mastered, modelWith, now, practised, viewsOf } from '../support/builders/study.js';

const target = nextItemsConstants.target.start;

const plain: Candidate = {
  index: 0,
  skillId: 'a',
  pCorrect: target,
  mastery: 0.5,
  gain: 1,
  rightLastHour: false,
};

const listOf = (...parts: readonly Partial<Candidate>[]): Candidate[] =>
  parts.map((part, index) => ({ ...plain, index, ...part }));

const orderOf = (candidates: readonly Candidate[], limit = 1000, aim: number = target): number[] =>
  orderCandidates(candidates, aim, limit).map(({ index }) => index);

const skillsIn = (candidates: readonly Candidate[]): string =>
  orderCandidates(candidates, target, 1000)
    .map(({ skillId }) => skillId)
    .join('');

test('the gain decides, weighed by how near the chance is to the target', () => {
  assert.deepEqual(orderOf(listOf({ gain: 1 }, { gain: 3 }, { gain: 2 })), [1, 2, 0]);
  const [easy, near, hard] = [{ pCorrect: 0.95 }, { pCorrect: 0.76 }, { pCorrect: 0.3 }];
  assert.deepEqual(orderOf(listOf(easy, hard, near)), [2, 0, 1]);
  assert.deepEqual(orderOf(listOf(easy, hard, near), 1000, 0.5), [1, 2, 0]);
  // exp(-1/2) at a distance of one logit: .6065 of the gain.
  const far = { pCorrect: sigmoid(logit(target) - 1) };
  assert.deepEqual(orderOf(listOf({ ...far, gain: 1 }, { gain: 0.606 })), [0, 1]);
  assert.deepEqual(orderOf(listOf({ ...far, gain: 1 }, { gain: 0.607 })), [1, 0]);
});

test('ties go by index, in whatever order the candidates come', () => {
  const candidates = listOf({}, { skillId: 'b' }, {}, { skillId: 'b' });
  assert.deepEqual(orderOf(candidates), [0, 1, 2, 3]);
  assert.deepEqual(orderOf(candidates.toReversed()), [0, 1, 2, 3]);
});

test('at most three of one skill in a row, where others wait', () => {
  const six = Array.from({ length: 6 }, () => ({ skillId: 'a', gain: 9 }));
  assert.equal(skillsIn(listOf(...six, { skillId: 'b' }, { skillId: 'c' })), 'aaabaaac');
  assert.equal(skillsIn(listOf(...six, { skillId: 'b' })), 'aaabaaa');
  assert.equal(skillsIn(listOf(...six)), 'aaaaaa');
  assert.equal(skillsIn(listOf(...six, { skillId: 'b' }, { skillId: 'b' })), 'aaabaaab');
});

test('what was answered right within the hour comes after all others, however much of one skill these are', () => {
  const recent = { rightLastHour: true, gain: 99 };
  assert.deepEqual(orderOf(listOf(recent, {}, { skillId: 'b' })), [1, 2, 0]);
  const four = [{}, {}, {}, {}];
  assert.deepEqual(orderOf(listOf({ ...recent, skillId: 'b' }, recent, ...four)), [2, 3, 4, 5, 0, 1]);
});

test('no gain at all, and chances of none and of all, are ordered as well', () => {
  const none = { gain: 0 };
  assert.deepEqual(
    orderOf(listOf({ ...none, pCorrect: 0.99 }, { ...none, pCorrect: 0.8 }, { gain: 1e-300, pCorrect: 0 })),
    [2, 1, 0],
  );
  assert.deepEqual(orderOf(listOf({ pCorrect: 0 }, { pCorrect: 1 }, {})), [2, 1, 0]);
});

const anyCandidates = fc
  .array(
    fc.record({
      skillId: fc.constantFrom('a', 'a', 'a', 'b', 'c'),
      pCorrect: fc.oneof(between(0, 1), fc.constantFrom(0, 1, target)),
      mastery: between(0, 1),
      gain: fc.oneof(between(0, 3), fc.constantFrom(0, 1)),
      rightLastHour: fc.boolean(),
    }),
    { maxLength: 30, size: 'max' },
  )
  .map((parts) => listOf(...parts));

/** The rule as it is told, found by looking at all that is left before each choice. */
function byTheRule(candidates: readonly Candidate[]): number[] {
  const rest = bestFirst(candidates);
  const chosen: Candidate[] = [];
  while (rest.length > 0) {
    const isRecent = rest.every(({ rightLastHour }) => rightLastHour);
    const last = chosen.slice(-3).map(({ skillId }) => skillId);
    const isFull = ({ skillId }: Candidate) => last.length === 3 && last.every((id) => id === skillId);
    const now = rest.filter(({ rightLastHour }) => rightLastHour === isRecent);
    const next = now.find((one) => !isFull(one)) ?? (now[0] as Candidate);
    rest.splice(rest.indexOf(next), 1);
    chosen.push(next);
  }
  return chosen.map(({ index }) => index);
}

/** Best first, by the product alone. */
function bestFirst(candidates: readonly Candidate[]): Candidate[] {
  const worth = ({ gain, pCorrect }: Candidate): number =>
    gain * Math.exp(-((logit(pCorrect) - logit(target)) ** 2) / 2);
  return candidates.toSorted((a, b) => worth(b) - worth(a) || a.index - b.index);
}

test('any candidates: the rule, each of them once', () => {
  // Products that are 0 tie, where logarithms still tell them apart.
  const positive = anyCandidates.map((all) =>
    all.filter(({ gain, pCorrect }) => gain > 0 && pCorrect > 1e-6 && pCorrect < 1 - 1e-6),
  );
  fc.assert(
    fc.property(positive, (candidates) => assert.deepEqual(orderOf(candidates), byTheRule(candidates))),
  );
  fc.assert(
    fc.property(anyCandidates, (candidates) =>
      assert.deepEqual(
        orderOf(candidates).sort((a, b) => a - b),
        candidates.map(({ index }) => index),
      ),
    ),
  );
});

test('any candidates: a limit cuts, and the order in which they come is none', () => {
  const shuffled = anyCandidates.chain((all) =>
    fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length })),
  );
  fc.assert(
    fc.property(shuffled, fc.integer({ min: 1, max: 40 }), ([all, other], limit) => {
      assert.deepEqual(orderOf(other, limit), orderOf(all).slice(0, limit));
    }),
  );
});

test('any candidates: a higher gain never moves one back', () => {
  fc.assert(
    fc.property(anyCandidates, fc.nat(), between(0, 2), (all, at, more) => {
      fc.pre(all.length > 0);
      const { index } = all[at % all.length] as Candidate;
      const raised = all.map((one) => (one.index === index ? { ...one, gain: one.gain + more } : one));
      assert.ok(orderOf(raised).indexOf(index) <= orderOf(all).indexOf(index));
    }),
  );
});

const model = modelWith({ a: { name: 'Fractions' } });
const views = viewsOf({ a: {}, done: mastered, faded: { mastery: 0.9, lastAttemptAt: now - 60 * dayMs } });
const learner = { ...newLearner, attempts: 30 };
const standing = assessLearner({ learner, views, model, registeredSkills: 3, now });
const question = {
  skillId: 'a',
  itemId: null as string | null,
  questionDifficulty: null as number | null,
  item: null,
  itemRecord: null,
};
const met = (seconds: number, wrongRun = 0) => ({
  generation: 0,
  trace: { ...newItemTrace, right: 1, wrong: 1, wrongRun, at: now / 1000 - seconds },
});

const noItemTerms = new Array<number>(itemTermCount).fill(0);

test('a question has the probability that an answer would be counted with, and its skill as it stands', () => {
  const item = {
    answers: 50,
    right: 10,
    expected: 30,
    terms: noItemTerms,
    before: emptyRelatedTerms,
    abilityOffset: -1,
  };
  const asked = [
    question,
    { ...question, questionDifficulty: 2 },
    { ...question, itemId: 'i', item, itemRecord: met(90) },
    { ...question, itemId: 'i', item, itemRecord: undefined },
    { ...question, skillId: 'nobody knows it' },
  ];
  const judged = assessQuestions(standing, asked);
  for (const [i, { skillId, itemId, questionDifficulty, item, itemRecord: met }] of asked.entries()) {
    const skill = skillId === 'a' ? practised : newSkill(defaultParameters);
    const states = { keys: hashQuestionKeys(skillId, itemId), learner, skill, item: met };
    const conditions = computeConditions(model, skillId, item, states, {
      occurredAt: now,
      questionDifficulty,
    });
    assert.equal(judged[i]?.pCorrect, conditions.pCorrect);
    assert.equal(judged[i]?.mastery, skill.mastery);
    assert.equal(judged[i]?.index, i);
  }
  assert.equal(judged[0]?.gain, judged[3]?.gain);
});

test('an item is held back for an hour after a right answer, not after a wrong one', () => {
  const asked = [met(0), met(3599), met(3600), met(10, 1), undefined, null, met(-60)];
  const judged = assessQuestions(
    standing,
    asked.map((one) => ({ ...question, itemRecord: one })),
  );
  assert.deepEqual(
    judged.map(({ rightLastHour }) => rightLastHour),
    [true, true, false, false, false, false, true],
  );
});

const [onA, onDone, onFaded, onNew] = assessQuestions(
  standing,
  ['a', 'done', 'faded', 'new'].map((skillId) => ({ ...question, skillId })),
);

const reasons: readonly [part: object, code: string, text: string][] = [
  [
    { ...onA, pCorrect: 0.74 },
    'RIGHT_LEVEL',
    'Right level on Fractions: about 74% chance of a right answer.',
  ],
  [
    { ...onA, pCorrect: 0.5 },
    'HARDER_THAN_TARGET',
    'Rather hard on Fractions: about 50% chance of a right answer, below the 75% aimed at.',
  ],
  [
    { ...onA, pCorrect: 0.9999 },
    'EASIER_THAN_TARGET',
    'Rather easy on Fractions: about 99% chance of a right answer, above the 75% aimed at.',
  ],
  [
    { ...onNew, pCorrect: 0.41 },
    'NEW_SKILL',
    'New skill new, no answer yet: about 41% chance of a right answer.',
  ],
  [{ ...onDone, pCorrect: 0.7 }, 'MASTERED', 'done is mastered: little is left to gain.'],
  [
    { ...onFaded, pCorrect: 0.6 },
    'REVIEW_DUE',
    'Review faded: strong once, not practised for 60 days; about 60% chance of a right answer.',
  ],
  [
    { ...onDone, rightLastHour: true },
    'ANSWERED_RECENTLY',
    'Answered right within the last hour: other questions come first.',
  ],
];

for (const [part, code, text] of reasons) {
  test(`a reason: ${code}`, () => {
    assert.deepEqual(explainCandidate(part as NonNullable<typeof onA>, target, standing), { code, text });
  });
}

test('a reason has at most 200 characters', () => {
  const skillId = 'x'.repeat(128);
  const names = modelWith({ [skillId]: { name: 'y'.repeat(200) } });
  for (const pCorrect of [0.1, 0.75, 0.99]) {
    const { text } = explainCandidate({ ...onA, skillId, pCorrect } as NonNullable<typeof onA>, target, {
      ...standing,
      model: names,
    });
    assert.equal(text.length, 200);
  }
});
