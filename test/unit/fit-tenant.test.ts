import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createFitPool } from '../../src/compute/job-pools.js';
import { decodeModel, encodeModel } from '../../src/contracts/models/stored-model.js';
import type { AnswerLog } from '../../src/domain/base/answer-log.js';
import { defaultParameters } from '../../src/domain/base/bkt-parameters.js';
import {
  resolveSkillModel,
  type SkillModel,
  type TenantModel,
  unfittedModel,
} from '../../src/domain/catalogue/tenant-model.js';
import { localRunner } from '../../src/domain/fit/fit-stages.js';
import { fitTenant, selectTrainingLearners } from '../../src/domain/fit/fit-tenant.js';
import { seeded } from '../support/builders/random.js';

/** Answers in turns on all skills; learners differ, and so do items. */
function makeLog(learners: number, skills: number, perLearner: number, withDifficulty: boolean): AnswerLog {
  const random = seeded(learners + 7 * skills);
  const answers = learners * perLearner;
  const column = (bytes: number) => new SharedArrayBuffer(bytes * answers);
  const log = {
    starts: Uint32Array.from({ length: learners + 1 }, (_, learner) => learner * perLearner),
    skill: new Uint32Array(column(4)),
    item: new Uint32Array(column(4)),
    correct: new Uint8Array(column(1)),
    at: new Float64Array(column(8)),
    seconds: new Float32Array(column(4)),
    difficulty: new Float32Array(column(4)),
    skills,
    items: 5 * skills,
  };
  for (let place = 0; place < answers; place++) {
    const learner = Math.floor(place / perLearner);
    const practice = Math.floor((place % perLearner) / skills);
    const skill = place % skills;
    const variant = Math.floor(random() * 5);
    const logit = (learner % 7) / 2 - 2.5 + 0.4 * practice - 0.5 * (variant - 2);
    log.skill[place] = skill;
    log.item[place] = 1 + 5 * skill + variant;
    log.correct[place] = random() < 1 / (1 + Math.exp(-logit)) ? 1 : 0;
    log.at[place] = 1.7e12 + 60_000 * place;
    log.seconds[place] = 10 + 50 * random();
    log.difficulty[place] = withDifficulty ? 0.5 * (variant - 2) : Number.NaN;
  }
  return log;
}

const inputOf = (log: AnswerLog, current: TenantModel = unfittedModel) => ({
  log,
  skillIds: Array.from({ length: log.skills }, (_, skill) => `skill-${skill}`),
  training: selectTrainingLearners(
    Uint32Array.from({ length: log.starts.length - 1 }, (_, i) => (i * 2654435761) >>> 0),
  ),
  current,
  version: current.version + 1,
  fittedAt: '2026-01-15T12:00:00.000Z',
});

for (const withDifficulty of [false, true]) {
  const kind = withDifficulty ? 'with' : 'without';
  test(`threads fit what one thread fits, ${kind} difficulties`, { timeout: 60_000 }, async (t) => {
    const input = inputOf(makeLog(120, 8, 48, withDifficulty));
    const pool = createFitPool({ threads: 3, servesRequests: false, redisUrl: '', clickhouseUrl: '' });
    t.after(() => pool.close());
    const [here, there] = await Promise.all([fitTenant(input, localRunner), fitTenant(input, pool)]);
    assert.deepEqual(there, here);
    assert.ok(here.changed && here.report.served.published, JSON.stringify(here.report.served));
    const { oldLogLoss, newLogLoss } = here.report.served;
    assert.ok((newLogLoss ?? 1) < (oldLogLoss ?? 0));
    assert.deepEqual(decodeModel(encodeModel(here.model)), here.model, 'the stored form keeps every digit');
  });
}

test('the same answers again give a model that is no worse', async () => {
  const log = makeLog(120, 8, 48, false);
  const first = await fitTenant(inputOf(log), localRunner);
  const second = await fitTenant({ ...inputOf(log, first.model), currentItems: first.items }, localRunner);
  const { oldLogLoss, newLogLoss } = second.report.served;
  assert.ok(
    Math.abs((oldLogLoss ?? 0) - (first.report.served.newLogLoss ?? 1)) < 1e-9,
    'judged as it was then',
  );
  assert.ok((newLogLoss ?? 1) <= (oldLogLoss ?? 0) + 0.001);
});

test('parameters set by hand stay, and skills without answers stay as they were', async () => {
  const log = makeLog(120, 6, 48, false);
  const parameters = { pInit: 0.5, pLearn: 0.05, pGuess: 0.1, pSlip: 0.05, pForget: 0 };
  const byHand: SkillModel = {
    ...resolveSkillModel(unfittedModel, ''),
    parameters,
    source: 'manual',
    version: 3,
  };
  const skills = new Map<string, SkillModel>([
    ['skill-0', byHand],
    ['elsewhere', { ...byHand, source: 'fitted' }],
  ]);
  const { model } = await fitTenant(inputOf(log, { ...unfittedModel, version: 3, skills }), localRunner);
  assert.deepEqual(model.skills.get('skill-0')?.parameters, parameters);
  assert.deepEqual(model.skills.get('skill-0')?.source, 'manual');
  assert.deepEqual(model.skills.get('elsewhere')?.parameters, parameters);
  assert.equal(model.skills.get('skill-1')?.version, 4);
});

test('with fewer than five fitted skills there is no prior', async () => {
  const { model } = await fitTenant(inputOf(makeLog(120, 4, 48, false)), localRunner);
  assert.equal(model.prior, null);
  assert.deepEqual(resolveSkillModel(model, 'new').parameters, defaultParameters);
  const many = await fitTenant(inputOf(makeLog(120, 8, 48, false)), localRunner);
  assert.equal(resolveSkillModel(many.model, 'new').source, 'prior');
});

for (const learners of [1, 2, 5]) {
  test(`a log of ${learners} learners gives figures that can be stored`, async () => {
    for (const log of [makeLog(learners, 2, 3, false), makeLog(learners, 2, 3, true)]) {
      const { model } = await fitTenant(inputOf(log), localRunner);
      assert.deepEqual(decodeModel(encodeModel(model)), model);
    }
  });
}

test('a model of another format is rejected', () => {
  for (const format of [2, 4]) {
    const text = encodeModel(unfittedModel).replace('"format":3', `"format":${format}`);
    assert.throws(() => decodeModel(text), /the stored model cannot be read: \/format/);
  }
});

test('a stored model of which the end is missing is refused, wherever it breaks off', () => {
  const skills = new Map(
    ['a', 'b', 'c'].map((skillId) => [skillId, resolveSkillModel(unfittedModel, skillId)]),
  );
  for (const model of [unfittedModel, { ...unfittedModel, skills }]) {
    const text = encodeModel(model);
    assert.deepEqual(decodeModel(text), model);
    for (let length = 0; length < text.length; length++)
      assert.throws(() => decodeModel(text.slice(0, length)), `${length} of ${text.length}`);
  }
});
