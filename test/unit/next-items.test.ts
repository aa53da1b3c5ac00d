/** Order and reasons of candidate items. */
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
import { dayMs, logit, mapNonEmpty, sigmoid } from '../../src/domain/base/common.js';
import { itemTermCount } from '../../src/domain/prediction/prediction-model.js';
import { emptyRelatedTerms } from '../../src/domain/prediction/related-terms.js';
import { assessLearner } from '../../src/domain/score/assessment.js';
import { hashQuestionKeys } from '../../src/domain/tracing/course.js';
import { newLearner, newSkill } from '../../src/domain/tracing/learner-states.js';
import { newItemTrace } from '../../src/domain/tracing/traces.js';
import { indices } from '../../src/lists.js';
import { between } from '../support/builders/arbitraries.js';
import { fc, forAll } from '../support/builders/properties.js';
import { mastered, modelWith, now, viewsOf } from '../support/builders/study.js';

const target = nextItemsConstants.target.start;

const plain: Candidate = {
  ...{ index: 0, skillId: 'a', pCorrect: target, gain: 1, rightLastHour: false },
};

const listOf = (...parts: readonly Partial<Candidate>[]): Candidate[] =>
  parts.map((part, index) => ({ ...plain, index, ...part }));

const orderOf = (candidates: readonly Candidate[], limit = 1000, aim: number = target): number[] =>
  orderCandidates(candidates, aim, limit).map(({ index }) => index);

test('orderCandidates sorts by gain, weighted by the distance of the chance from the target', () => {
  assert.deepEqual(orderOf(listOf({ gain: 1 }, { gain: 3 }, { gain: 2 })), [1, 2, 0]);
  const chances = listOf({ pCorrect: 0.95 }, { pCorrect: 0.3 }, { pCorrect: 0.76 });
  assert.deepEqual(orderOf(chances), [2, 0, 1]);
  assert.deepEqual(orderOf(chances, 1000, 0.5), [1, 2, 0]);
  // A distance of one logit leaves exp(-1/2) = .6065 of the gain.
  const far = { pCorrect: sigmoid(logit(target) - 1), gain: 1 };
  assert.deepEqual(orderOf(listOf(far, { gain: 0.606 })), [0, 1]);
  assert.deepEqual(orderOf(listOf(far, { gain: 0.607 })), [1, 0]);
});

test('orderCandidates orders gains of 0 and chances of 0 and 1', () => {
  const none = listOf({ gain: 0, pCorrect: 0.99 }, { gain: 0, pCorrect: 0.8 }, { gain: 1e-300, pCorrect: 0 });
  assert.deepEqual(orderOf(none), [2, 1, 0]);
  assert.deepEqual(orderOf(listOf({ pCorrect: 0 }, { pCorrect: 1 }, {})), [2, 1, 0]);
});

const anyCandidates = fc
  .array(
    fc.record({
      skillId: fc.constantFrom('a', 'a', 'a', 'b', 'c'),
      pCorrect: fc.oneof(between(0, 1), fc.constantFrom(0, 1, target)),
      gain: fc.oneof(between(0, 3), fc.constantFrom(0, 1)),
      rightLastHour: fc.boolean(),
    }),
    { maxLength: 30, size: 'max' },
  )
  .map((parts) => listOf(...parts));

/**
 * The order by the documented rule: at most three items of a skill in a row, and last the items that were answered
 * right within the hour. Before each choice it reads all remaining candidates.
 */
function orderByRule(candidates: readonly Candidate[]): number[] {
  const worth = ({ gain, pCorrect }: Candidate): number =>
    gain * Math.exp(-((logit(pCorrect) - logit(target)) ** 2) / 2);
  const rest = candidates.toSorted((a, b) => worth(b) - worth(a) || a.index - b.index);
  const chosen: Candidate[] = [];
  while (rest.length > 0) {
    const isRecent = rest.every(({ rightLastHour }) => rightLastHour);
    const last = chosen.slice(-3).map(({ skillId }) => skillId);
    const isFull = ({ skillId }: Candidate) => last.length === 3 && last.every((id) => id === skillId);
    const eligible = rest.filter(({ rightLastHour }) => rightLastHour === isRecent);
    const next = eligible.find((one) => !isFull(one)) ?? (eligible[0] as Candidate);
    rest.splice(rest.indexOf(next), 1);
    chosen.push(next);
  }
  return chosen.map(({ index }) => index);
}

test('orderCandidates follows its rule for any candidates', () => {
  // Products that are 0 tie, but their logarithms differ.
  const positive = anyCandidates.map((all) =>
    all.filter(({ gain, pCorrect }) => gain > 0 && pCorrect > 1e-6 && pCorrect < 1 - 1e-6),
  );
  fc.assert(
    fc.property(positive, (candidates) => assert.deepEqual(orderOf(candidates), orderByRule(candidates))),
  );
});

test('orderCandidates returns every candidate once, in the same order for any input order and limit', () => {
  const shuffled = anyCandidates.chain((all) =>
    fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length })),
  );
  forAll(shuffled, fc.integer({ min: 1, max: 40 }), ([all, other], limit) => {
    const order = orderOf(all);
    assert.deepEqual(new Set(order), new Set(indices(all.length)));
    assert.equal(order.length, all.length);
    assert.deepEqual(orderOf(other, limit), order.slice(0, limit));
  });
  const equal = listOf({}, { skillId: 'b' }, {}, { skillId: 'b' });
  assert.deepEqual(orderOf(equal.toReversed()), [0, 1, 2, 3]);
});

test('orderCandidates never moves a candidate back when its gain rises', () => {
  forAll(anyCandidates, fc.nat(), between(0, 2), (all, at, more) => {
    fc.pre(all.length > 0);
    const { index } = all[at % all.length] as Candidate;
    const raised = all.map((one) => (one.index === index ? { ...one, gain: one.gain + more } : one));
    assert.ok(orderOf(raised).indexOf(index) <= orderOf(all).indexOf(index));
  });
});

const model = modelWith({ a: { name: 'Fractions' } });
const views = viewsOf({
  ...{ a: {}, done: mastered, 'done too': mastered },
  faded: { mastery: 0.9, lastAttemptAt: now - 60 * dayMs },
});
const learned = new Map(views.map(({ skillId, state }) => [skillId, state]));
const learner = { ...newLearner, attempts: 30 };
const standing = assessLearner({ learner, views, model, registeredSkills: 3, now });
type Question = Parameters<typeof assessQuestions>[1][number];
type Assessed = ReturnType<typeof assessQuestions>[number];
const question: Question = {
  ...{ skillIds: ['a'], itemId: null, questionDifficulty: null, item: null, itemRecord: null },
};
const assessAll = (parts: readonly Partial<Question>[]) =>
  assessQuestions(
    standing,
    parts.map((part) => ({ ...question, ...part })),
  );
const answeredBefore = (seconds: number, wrongRun = 0) => ({
  generation: 0,
  trace: { ...newItemTrace, right: 1, wrong: 1, wrongRun, at: now / 1000 - seconds },
});

test('assessQuestions returns the probability with which an answer would be counted', () => {
  const item = {
    ...{ answers: 50, right: 10, expected: 30, before: emptyRelatedTerms, abilityOffset: -1 },
    terms: new Array<number>(itemTermCount).fill(0),
  };
  const questions = [
    question,
    { ...question, questionDifficulty: 2 },
    { ...question, itemId: 'i', item, itemRecord: answeredBefore(90) },
    { ...question, itemId: 'i', item, itemRecord: undefined },
    { ...question, skillIds: ['unanswered'] as const },
    { ...question, itemId: 'i', skillIds: ['unanswered', 'a', 'faded'] as const },
  ];
  const assessed = assessQuestions(standing, questions);
  const unanswered = newSkill(defaultParameters);
  for (const [i, { skillIds, itemId, questionDifficulty, item, itemRecord }] of questions.entries()) {
    const skills = mapNonEmpty(skillIds, (id) => learned.get(id) ?? unanswered);
    const states = { keys: hashQuestionKeys(skillIds, itemId), learner, skills, item: itemRecord };
    const answer = { occurredAt: now, questionDifficulty };
    const { pCorrect } = computeConditions(model, skillIds, item, states, answer);
    const found = assessed[i];
    assert.deepEqual([found?.pCorrect, found?.index, found?.skillId], [pCorrect, i, skillIds[0]]);
    assert.deepEqual(
      found?.skills.map(({ view }) => view.state),
      skills,
    );
  }
  assert.equal(assessed[0]?.gain, assessed[3]?.gain);
});

test('assessQuestions returns the mean gain of the skills of a question, in any order', () => {
  const skillIds = [['a'], ['new'], ['a', 'new'], ['new', 'a']] as const;
  const assessed = assessAll(skillIds.map((ids) => ({ skillIds: ids })));
  const [a, unseen, both, reversed] = assessed as [Assessed, Assessed, Assessed, Assessed];
  assert.equal(both.gain, (a.gain + unseen.gain) / 2);
  assert.deepEqual([reversed.gain, reversed.pCorrect], [both.gain, both.pCorrect]);
  const [low, high] = [a.pCorrect, unseen.pCorrect].sort();
  assert.ok((low as number) < both.pCorrect && both.pCorrect < (high as number), 'uses both skills');
});

test('assessQuestions marks an item for an hour after a right answer, not after a wrong one', () => {
  const records = [
    ...[answeredBefore(0), answeredBefore(3599), answeredBefore(3600)],
    ...[answeredBefore(10, 1), undefined, null, answeredBefore(-60)],
  ];
  const assessed = assessAll(records.map((itemRecord) => ({ itemRecord })));
  const marks = assessed.map(({ rightLastHour }) => rightLastHour);
  assert.deepEqual(marks, [true, true, false, false, false, false, true]);
});

test('explainCandidate returns a code and a sentence of at most 200 characters', () => {
  const skillIds = ['a', 'done', 'faded', 'new'];
  const assessed = assessAll(skillIds.map((skillId) => ({ skillIds: [skillId] })));
  const [onA, onDone, onFaded, onNew] = assessed as [Assessed, Assessed, Assessed, Assessed];
  const cases: readonly [candidate: Assessed, code: string, text: RegExp][] = [
    [{ ...onA, pCorrect: 0.74 }, 'RIGHT_LEVEL', /on Fractions: about 74% chance of a correct answer\.$/],
    [{ ...onA, pCorrect: 0.5 }, 'HARDER_THAN_TARGET', /about 50% .*, below the target of 75%\.$/],
    [{ ...onA, pCorrect: 0.9999 }, 'EASIER_THAN_TARGET', /about 99% .*, above the target of 75%\.$/],
    [{ ...onNew, pCorrect: 0.41 }, 'NEW_SKILL', /^New skill new, no answers yet: about 41% /],
    [{ ...onDone, pCorrect: 0.7 }, 'MASTERED', /^done is mastered: practice has little expected gain\.$/],
    [{ ...onFaded, pCorrect: 0.6 }, 'REVIEW_DUE', /^Review faded: .* for 60 days; about 60% /],
    [{ ...onDone, rightLastHour: true }, 'ANSWERED_RECENTLY', /within the last hour/],
  ];
  for (const [candidate, code, text] of cases) {
    const reason = explainCandidate(candidate, target, standing);
    assert.equal(reason.code, code);
    assert.match(reason.text, text);
  }
  const skillId = 'x'.repeat(128);
  const onX = { ...onA, skills: [{ ...onA.skills[0], view: { ...onA.skills[0].view, skillId } }] as const };
  const longNames = { ...standing, model: modelWith({ [skillId]: { name: 'y'.repeat(200) } }) };
  for (const pCorrect of [0.1, 0.75, 0.99])
    assert.equal(explainCandidate({ ...onX, pCorrect }, target, longNames).text.length, 200);
});

test('explainCandidate names the skill of a question that most needs practice', () => {
  const cases: readonly (readonly [skillIds: Question['skillIds'], code: string, text: RegExp])[] = [
    [['done', 'a', 'new', 'faded'], 'REVIEW_DUE', /^Review faded/],
    [['done', 'a', 'new'], 'NEW_SKILL', /^New skill new/],
    [['done', 'a'], 'RIGHT_LEVEL', / on Fractions: /],
    [['done', 'done too'], 'MASTERED', /^done is mastered/],
  ];
  const assessed = assessAll(cases.map(([skillIds]) => ({ skillIds })));
  for (const [i, [, code, text]] of cases.entries()) {
    const candidate = { ...(assessed[i] as Assessed), pCorrect: target };
    const reason = explainCandidate(candidate, target, standing);
    assert.equal(reason.code, code);
    assert.match(reason.text, text);
  }
});
