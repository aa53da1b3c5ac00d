/** Parts of the served probability that are published where learners whom a fit did not see are predicted better. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeModel, encodeModel } from '../../src/contracts/models/stored-model.js';
import type { AnswerLog } from '../../src/domain/base/answer-log.js';
import { logit, sigmoid } from '../../src/domain/base/common.js';
import { predictionConstants } from '../../src/domain/base/prediction-constants.js';
import { hashKey } from '../../src/domain/base/text-hash.js';
import { resolveSkillModel, unfittedModel } from '../../src/domain/catalogue/tenant-model.js';
import { localRunner } from '../../src/domain/fit/fit-stages.js';
import { fitTenant } from '../../src/domain/fit/fit-tenant.js';
import { fitCalibration } from '../../src/domain/fit/prediction/cross-fit.js';
import type { PartName } from '../../src/domain/fit/prediction/model-parts.js';
import {
  buildFrequentPairs,
  buildPairTable,
  findPairMember,
  mapRelatedKeys,
  readRelatedTerms,
} from '../../src/domain/fit/prediction/pair-tables.js';
import { features, rowWidth, streakColumn } from '../../src/domain/prediction/features.js';
import { predict, skillTermCount, streakCount } from '../../src/domain/prediction/prediction-model.js';
import { emptyRelatedTerms } from '../../src/domain/prediction/related-terms.js';
import { answerLog, type LoggedAnswer } from '../support/builders/answer-logs.js';
import { seeded } from '../support/builders/random.js';

const skills = 6;

/** @param next the learner's next answer, from those before */
function drawnLog(
  learners: number,
  answersEach: number,
  items: number,
  next: (random: () => number, before: readonly LoggedAnswer[], learner: number) => LoggedAnswer,
): AnswerLog {
  const random = seeded(17);
  const given = Array.from({ length: learners }, (_, learner) => {
    const answers: LoggedAnswer[] = [];
    while (answers.length < answersEach)
      answers.push({ at: 1.7e12 + 6e4 * answers.length, ...next(random, answers, learner) });
    return answers;
  });
  return answerLog(skills, given, items);
}

const skillIds = Array.from({ length: skills }, (_, skill) => `skill ${skill}`);

async function fitOf(log: AnswerLog) {
  const training = new Uint8Array(log.starts.length - 1).map((_, learner) => (learner % 5 === 0 ? 0 : 1));
  const input = {
    log,
    skillIds,
    training,
    current: unfittedModel,
    version: 1,
    fittedAt: '2026-01-15T12:00:00.000Z',
  };
  const fitted = await fitTenant(input, localRunner);
  const { parts } = fitted.report.served;
  const gainOf = (wanted: PartName): number => {
    const { without, with: grown } = parts.find(({ part }) => part === wanted) ?? { without: 0, with: 0 };
    return without - grown;
  };
  return { ...fitted, parts, gainOf };
}

test('a skill that goes better after one than after another has terms with both, by their keys', async () => {
  // Skill 0 comes after 1 or 2, and helps only after 1; the others are as likely as not.
  const log = drawnLog(400, 40, 0, (random, before) => {
    const last = before.at(-1)?.skill ?? 0;
    const skill = last === 1 || last === 2 ? 0 : 1 + Math.floor(random() * (skills - 1));
    const p = skill !== 0 ? 0.5 : last === 1 ? 0.9 : 0.3;
    return { skill, correct: random() < p };
  });
  const { model, gainOf } = await fitOf(log);
  assert.ok(gainOf('before') > 0.01, `${gainOf('before')}`);
  const { keys, terms } = model.skills.get('skill 0')?.related ?? { keys: [], terms: [] };
  const after = (skillId: string): number => terms[3 * Array.from(keys).indexOf(hashKey(skillId))] as number;
  assert.ok(after('skill 1') - after('skill 2') > 1, `${after('skill 1')} and ${after('skill 2')}`);
});

test('who does retries better than others is told from who does first tries better', async () => {
  const log = drawnLog(300, 60, 60, (random, before, learner) => {
    const last = before.at(-1);
    const isRetry = last !== undefined && !last.correct;
    const item = isRetry ? (last.item as number) : 1 + Math.floor(random() * 60);
    // Those who fail at first do well at once when they try again, and the other way round.
    const knows = learner % 2 === 0 ? 1.5 : -1.5;
    return { skill: item % skills, item, correct: random() < sigmoid(isRetry ? -knows : knows) };
  });
  const { model, gainOf } = await fitOf(log);
  assert.ok(gainOf('retries') > 0.005, `${gainOf('retries')}`);
  const weight = model.prediction.weights[
    features.findIndex(({ name }) => name === 'retryAbility')
  ] as number;
  assert.ok(weight > 0.05, `${weight}`);
});

test('a part that says nothing of other learners is not published', async () => {
  const log = drawnLog(60, 40, 30, (random) => {
    const item = 1 + Math.floor(random() * 30);
    return { skill: item % skills, item, correct: random() < 0.6 };
  });
  const { parts, model } = await fitOf(log);
  for (const { without, with: grown, published } of parts) assert.equal(published, grown < without);
  assert.ok(parts.some(({ published }) => !published));
  if (parts.some(({ part, published }) => part === 'streaks' && !published))
    assert.ok(model.prediction.streaks.every((term) => term === 0));
});

test('a model with terms of other skills but no keys for them is refused', () => {
  const odd = { ...resolveSkillModel(unfittedModel, 'odd'), related: { keys: [1], terms: [0.5] } };
  const model = encodeModel({ ...unfittedModel, skills: new Map([['odd', odd]]) });
  assert.throws(() => decodeModel(model), /terms without a key/);
});

test('a model whose keys are not in order, so that some would not be found, is refused', () => {
  const odd = {
    ...resolveSkillModel(unfittedModel, 'odd'),
    related: { keys: [2, 1], terms: [0, 0, 0, 0, 0, 0] },
  };
  const model = encodeModel({ ...unfittedModel, skills: new Map([['odd', odd]]) });
  assert.throws(() => decodeModel(model), /the keys of skill odd are not in order/);
});

test('where learners contradict each other, the spread of log-odds stays possible', () => {
  const calibrated = (logits: readonly number[]) =>
    fitCalibration(
      { correct: Uint8Array.from(logits, (_, i) => i % 2) } as AnswerLog,
      Float64Array.from(logits, (eta, i) => (i % 2 === 1 ? eta : -eta)),
    );
  const { low, high, maxStep } = predictionConstants.fit.calibration;
  for (const eta of [-14, -2, 0, 2, 14]) {
    const { shift, spread } = calibrated(new Array(1000).fill(eta));
    assert.ok(
      spread >= low && spread <= high && Math.abs(shift) <= 8 * maxStep,
      `${eta}: ${shift}, ${spread}`,
    );
  }
  // Nine of ten as sure as that: the optimum.
  const { spread } = calibrated(Array.from({ length: 20_000 }, (_, i) => (i % 20 < 2 ? -4 : 4)));
  assert.ok(Math.abs(spread - logit(0.9) / 4) < 0.01, `${spread}`);
});

test('a skill that no fit has seen has the streaks of all skills', () => {
  const streaks = Array.from({ length: streakCount }, (_, i) => i / 10 - 0.5);
  const model = { ...unfittedModel, prediction: { ...unfittedModel.prediction, streaks } };
  const { terms } = resolveSkillModel(model, 'new');
  assert.equal(terms.length, skillTermCount);
  const row = new Float64Array(rowWidth);
  const logitsAt = (streak: number): number => {
    row[streakColumn] = streak;
    const own = {
      skill: terms,
      item: null,
      related: emptyRelatedTerms,
      itemsBefore: emptyRelatedTerms,
      itemDifficulty: 0,
    };
    return logit(predict(model.prediction, own, row));
  };
  assert.ok(
    Math.abs(logitsAt(5) - logitsAt(0) - 0.5) < 1e-9 && Math.abs(logitsAt(-5) - logitsAt(0) + 0.5) < 1e-9,
  );
});

test('of pairs those with the most answers stay, within the bounds of each owner and of all', () => {
  // Two owners; owner 0 meets key k so often as k, owner 1 key 1 nine times.
  const rows = Float32Array.from([1, 2, 2, 3, 3, 3, ...new Array(9).fill(1)]);
  const order = Uint32Array.from(rows, (_, place) => place);
  const sorted = { order, starts: Uint32Array.of(0, 6, 15) };
  const tableOf = (answers: number, each: number, all: number) =>
    buildFrequentPairs(rows, 1, sorted, [0], 1, { answers, each, all });
  assert.deepEqual([...tableOf(1, 9, 9).keys], [1, 2, 3, 1]);
  assert.deepEqual([...tableOf(2, 9, 9).keys], [2, 3, 1]);
  assert.deepEqual([...tableOf(1, 1, 9).keys], [3, 1]);
  const one = tableOf(1, 9, 1);
  assert.deepEqual([[...one.keys], [...one.starts]], [[1], [0, 0, 1]]);
  assert.deepEqual(
    [findPairMember(one, 0, 3), findPairMember(one, 1, 1), findPairMember(one, 1, 0)],
    [0, 1, 0],
  );
});

test('an answer counts once for a pair, in however many columns the key stands', () => {
  const rows = Float32Array.from([7, 7, 0, 7, 0, 8]);
  const sorted = { order: Uint32Array.of(0, 1, 2), starts: Uint32Array.of(0, 3) };
  const keysOf = (answers: number) =>
    Array.from(buildFrequentPairs(rows, 2, sorted, [0, 1], 1, { answers, each: 9, all: 9 }).keys);
  assert.deepEqual([keysOf(1), keysOf(2), keysOf(3)], [[7, 8], [7], []]);
});

test('pairs of parts that are not published take no room', () => {
  const related = { keys: [2, 5, 9], terms: [0, 0, -0, 0, 0, 0.5] };
  assert.deepEqual(
    mapRelatedKeys(related, 2, (key) => key),
    { keys: [9], terms: [0, 0.5] },
  );
});

test('pairs survive another numbering, those that are no longer known aside', () => {
  const related = { keys: [2, 5, 9], terms: [1, 2, 3, 4, 5, 6] };
  const renamed = mapRelatedKeys(related, 2, (key) => (key === 5 ? 0 : 20 - key));
  assert.deepEqual(renamed, { keys: [11, 18], terms: [5, 6, 1, 2] });
  const { keys, terms } = readRelatedTerms(buildPairTable([renamed, { keys: [], terms: [] }], 2), 0);
  assert.deepEqual([[...(keys as Uint32Array)], [...(terms as Float32Array)]], [renamed.keys, renamed.terms]);
});
