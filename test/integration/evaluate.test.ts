import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { resolveSkillModel, unfittedModel } from '../../src/domain/catalogue/tenant-model.js';
import { localRunner } from '../../src/domain/fit/fit-stages.js';
import { skillColumns } from '../../src/domain/prediction/features.js';
import { streakCount } from '../../src/domain/prediction/prediction-model.js';
import { predictAll } from '../../src/lab/evaluate/predict.js';
import { createProbes } from '../../src/lab/evaluate/probe.js';
import { replayLog } from '../../src/lab/evaluate/replay.js';
import { modelNames } from '../../src/lab/evaluate/results.js';
import { trainModels } from '../../src/lab/evaluate/train.js';
import { computeSum } from '../../src/lists.js';
import { version } from '../../src/version.js';
import {
  csvOf,
  type MadeAnswer,
  type MadeColumn,
  makeAnswers,
  recordsOf,
} from '../support/builders/answer-file.js';
import { runCommand } from '../support/commands/command.js';
import { assertSelfContained, fileOf, lineOf, splitOf } from '../support/commands/log-commands.js';
import { assertLegible } from '../support/pages/legible.js';
import { referenceFile } from '../support/runner/reference.js';
import { tempDir } from '../support/temp.js';

const limit = { timeout: 600_000 };

const evaluate = (...args: string[]) => runCommand('evaluate', {}, ...args);

const answers = makeAnswers(50, 40);
const all: readonly MadeColumn[] = ['user_id', 'skill_id', 'correct', 'item_id', 'ts', 'order', 'fold'];
const rich: readonly MadeColumn[] = [...all, 'response_time_s', 'question_difficulty'];
const bare: readonly MadeColumn[] = ['user_id', 'skill_id', 'correct'];

test(
  'all columns: one JSON object with every figure, and a page that needs nothing else',
  limit,
  async (t) => {
    const hostile = answers.map((answer) => ({ ...answer, skill: `<script>${answer.skill}` }));
    const file = await fileOf(t, gzipSync(csvOf(hostile, rich)), '<script>answers');
    const page = join(await tempDir(t), 'page.html');
    const ended = await evaluate(file, '--json', '--threads', '1', '--report', page);
    const found = lineOf(ended);
    assert.equal(ended.err, '');
    assert.deepEqual(Object.keys(found).slice(0, 4), ['rows', 'learners', 'models', 'fit']);
    assert.deepEqual([found.rows, found.learners, found.train], [400, 10, { rows: 1600, learners: 40 }]);
    assert.deepEqual([found.fold, found.split, found.left_out], [1, 'fold', 0]);
    assert.deepEqual(Object.keys(found.models), ['overall_mean', 'skill_mean', 'bkt', 'served']);
    for (const [model, figures] of Object.entries<Record<string, number>>(found.models)) {
      assert.deepEqual(Object.keys(figures), ['auc', 'rmse', 'log_loss', 'accuracy', 'ece'], model);
      for (const value of Object.values(figures)) assert.ok(value >= 0 && value < 1, `${model} ${value}`);
      const bins: { answers: number }[] = found.reliability[model];
      assert.equal(
        bins.reduce((sum, bin) => sum + bin.answers, 0),
        found.rows,
      );
    }
    assert.equal(found.models.overall_mean.auc, 0.5);
    assert.ok(found.models.served.auc > found.models.skill_mean.auc, 'it knows the learner');
    assert.ok(found.models.served.log_loss < found.models.overall_mean.log_loss);
    const { probes, met_items, ...violations } = found.monotone;
    assert.ok(probes > 15 * 400 && met_items > probes / 10 && met_items < probes, `${probes}, ${met_items}`);
    assert.deepEqual(violations, { right_lowers: 0, wrong_raises: 0, furthest: 0 });
    const { by_mastery: byMastery, ...validity } = found.validity;
    assert.ok(validity.pairs > 0 && validity.contradictions <= validity.pairs, `${validity.pairs} pairs`);
    assert.ok(validity.mastered_then_low <= validity.mastered_then_accuracy);
    assert.ok(validity.mastered_at_60 >= 0 && validity.jumps <= validity.settled_answers);
    assert.equal(computeSum(byMastery.map((bin: { answers: number }) => bin.answers)), found.rows);
    assert.equal(found.movers.learners, 0, 'each has 40 answers');
    assert.equal(found.run.version, version);
    assert.ok(Math.abs(Date.parse(found.run.date) - Date.now()) < limit.timeout);
    const { parts, served_fit: fit } = found;
    assert.ok(fit.peak_bytes > 1e7);
    assert.deepEqual(
      parts.map(({ part, answers }: { part: string; answers: number }) => [part, answers]),
      ['streaks', 'before', 'course', 'retries', 'itemsBefore'].map((part) => [part, 1600]),
    );
    for (const part of parts) assert.equal(part.published, part.with < part.without, part.part);
    const published = parts.filter((part: { published: boolean }) => part.published);
    const isAny = (...names: string[]) =>
      published.some(({ part }: { part: string }) => names.includes(part));
    assert.deepEqual(
      [fit.skill_pairs > 0, fit.item_pairs > 0],
      [isAny('before', 'course'), isAny('itemsBefore')],
    );
    const html = readFileSync(page, 'utf8');
    for (const text of [
      version,
      found.run.date.slice(0, 10),
      '1 thread',
      'Monotone as served',
      'Mastery and the answers',
      'Next answer by mastery',
      'Streaks on a skill',
    ])
      assert.ok(html.includes(text), text);
    assert.equal(found.fit.observations, 1600);
    assert.ok(found.fit.seconds > 0 && found.fit.iterations > 0);
    // A reliability plot per model, one of mastery, and two learning curves.
    assertSelfContained(html, 7);
    await assertLegible(t, page, /^Evaluation of /);
  },
);

test('no items, times, order or folds: a hash divides, always alike; text for people', limit, async (t) => {
  const file = await fileOf(t, csvOf(answers, bare));
  const ended = await evaluate(file, '--threads', '1');
  assert.deepEqual([ended.code, ended.err], [0, '']);
  assert.match(ended.out, /folds by a hash of user_id/);
  assert.match(ended.out, /\n {2}MODEL +AUC +RMSE +LOG LOSS +ACCURACY +ECE +ANSWERS\n/);
  assert.match(ended.out, /\n {2}served +0\.\d{4}/);
  assert.match(
    ended.out,
    /\nMastery: \d+ of \d+ pairs contradict their last ten answers( \(\d+\.\d %\))?\.\n/,
  );
  assert.match(ended.out, /^Skilltrace \d.*, \d{4}-\d\d-\d\d \d\d:\d\d UTC\n/);
  assert.match(ended.out, /\n {2}Streaks on a skill +0\.\d{5} /);
  assert.match(ended.out, /\* fewer than 200 observations/, 'bins of 400 answers');
  const first = lineOf(await evaluate(file, '--json', '--threads', '1'));
  const second = lineOf(await evaluate(file, '--json', '--threads', '2'));
  assert.equal(first.split, 'hash');
  assert.ok(first.learners > 5 && first.learners < 40, `${first.learners} of 100 learners in a fifth`);
  assert.deepEqual(second.models, first.models, 'the same in every run, whatever the threads');
});

test(
  'NDJSON and CSV of the same answers give the same figures; --fold takes another fold',
  limit,
  async (t) => {
    const lines = recordsOf(answers, all).map((record) => JSON.stringify(record));
    const ndjson = lineOf(await evaluate(await fileOf(t, lines.join('\n')), '--json', '--fold', '3'));
    const csv = await fileOf(t, csvOf(answers, all));
    assert.deepEqual(ndjson.models, lineOf(await evaluate(csv, '--json', '--fold', '3')).models);
    assert.notDeepEqual(ndjson.models, lineOf(await evaluate(csv, '--json')).models);
  },
);

test('order rules over the place in the file, and so does ts where there is no order', limit, async (t) => {
  const backwards = Array.from({ length: 100 }, (_, learner) =>
    answers.slice(40 * learner, 40 * learner + 40).toReversed(),
  );
  const modelsOf = async (made: readonly MadeAnswer[], names: readonly MadeColumn[]) =>
    lineOf(await evaluate(await fileOf(t, csvOf(made, names)), '--json')).models;
  const expected = await modelsOf(answers, all);
  assert.deepEqual(await modelsOf(backwards.flat(), all), expected);
  const timed = all.filter((name) => name !== 'order');
  assert.deepEqual(await modelsOf(backwards.flat(), timed), expected);
  const untimed = timed.filter((name) => name !== 'ts');
  assert.notDeepEqual(await modelsOf(backwards.flat(), untimed), await modelsOf(answers, untimed));
});

test('rows that do not fit are left out, counted and told', limit, async (t) => {
  const bad = [
    'u1,s1,2,i1,0,1,1',
    ',s1,1,i1,0,1,1',
    'u1,s1',
    'u1,s1,1,i1,0,1,1.5',
    'u1,s1,1,i1,x,1,1',
    'u1,s1,1,i1,0,1,-1',
  ];
  const mixed = ['u1,s1,1,i1,1700000000,99,4', 'new,s1,1,i1,1700000000,1,'];
  const file = await fileOf(t, `${csvOf(answers, all)}${[...bad, ...mixed].join('\n')}\n`);
  const ended = await evaluate(file, '--json');
  const found = lineOf(ended);
  assert.deepEqual([found.left_out, found.rows + found.train.rows, found.split], [6, 2002, 'mixed']);
  assert.match(ended.err, /^6 rows do not fit and are left out:\n {2}line 2002: correct "2" must be/);
  assert.match(ended.err, /line 2004: the row has 2 fields.*\n {2}line 2005: fold "1.5" must be an integer/);
  assert.match(ended.err, /and 1 more\n1 row has another fold.*\n1 learner has no fold/);
});

test(
  'what cannot be evaluated is said in a line or two, with nothing on standard output',
  limit,
  async (t) => {
    const file = await fileOf(t, csvOf(answers.slice(0, 200), all));
    const one = await fileOf(t, csvOf(answers.slice(0, 40), all));
    const useless = await fileOf(t, 'user_id,skill_id,correct\nu,s,maybe\n');
    const page = join(await tempDir(t), 'missing', 'page.html');
    const cases: readonly (readonly [readonly string[], RegExp])[] = [
      [[], /exactly one FILE/],
      [[`${file}.missing`], /\.missing cannot be read: there is no such file$/m],
      [[file, '--fold', '9'], /No learner is in fold 9; there are learners in 1, 2, 3, 4, 5/],
      [[file, '--fold', 'one'], /--fold "one": an integer/],
      [[file, '--threads', '0'], /--threads "0": an integer from 1/],
      [[one], /nobody is left to train on/],
      [[useless], /no answer that can be used\n {2}line 2: correct "maybe"/],
      [[file, '--report', page], /--report .* cannot be written/],
      [[file, '--report', ''], /--report .* cannot be written: it is a folder/],
      [[file, '--unknown'], /--unknown/],
    ];
    for (const [args, expected] of cases) {
      const { code, out, err } = await evaluate(...args);
      assert.deepEqual([code, out], [1, ''], args.join(' '));
      assert.match(err, expected);
      assert.ok(err.trim().split('\n').length <= 2, err);
    }
    assert.ok(!existsSync(page));
  },
);

test('a page that cannot be written in the end takes no figures away', limit, async (t) => {
  const file = await fileOf(t, csvOf(answers.slice(0, 200), all));
  const folder = await tempDir(t);
  const page = join(folder, 'page.html');
  await symlink(join(folder, 'missing', 'page.html'), page);
  const { code, out, err } = await evaluate(file, '--json', '--report', page);
  assert.equal(code, 1);
  assert.match(err, /^--report .* cannot be written: .*\n$/);
  assert.equal(lineOf({ code: 0, out, err }).rows, 40);
});

test('--help tells the columns, the options and what the figures mean', limit, async () => {
  const { code, out, err } = await evaluate('--help');
  assert.deepEqual([code, err], [0, '']);
  for (const word of ['fold', 'question_difficulty', '--report', 'log_loss', 'training']) {
    assert.ok(out.includes(word), word);
  }
});

test('probes find a model that moves against answers, and where only', () => {
  const split = splitOf(answers.slice(0, 400), bare);
  const skillIds = Array.from({ length: split.test.skills }, (_, skill) => String(skill));
  const checked = (streaks: number[]) => {
    const skills = skillIds.map((skillId) => {
      const skill = resolveSkillModel(unfittedModel, skillId);
      const terms = skill.terms.toSpliced(1 + skillColumns.length, streakCount, ...streaks);
      return [skillId, { ...skill, terms }] as const;
    });
    const served = { model: { ...unfittedModel, skills: new Map(skills) }, skillIds, itemOf: () => null };
    const probes = createProbes(served, split);
    replayLog(served, split.test, probes.visit);
    return probes.check;
  };
  const rising = Array.from({ length: streakCount }, (_, i) => i);
  const good = checked(rising);
  assert.deepEqual([good.rightLowers, good.wrongRaises, good.metItems], [0, 0, 0], 'there are no items');
  assert.equal(
    good.probes,
    split.test.correct.length * split.test.skills,
    'of skills that were not asked, too',
  );
  const bad = checked(rising.toReversed());
  assert.ok(bad.rightLowers > good.probes / 4 && bad.wrongRaises > good.probes / 4);
  assert.ok(bad.furthest > 0.01);
});

/** Everything about an answer but whose it is and when: what a prediction must not know beforehand. */
const changed = (answer: MadeAnswer): MadeAnswer => ({
  ...answer,
  correct: answer.correct === 1 ? 0 : 1,
  skill: answer.skill === 's0' ? 's1' : 's0',
  item: answer.item === 'i0' ? 'i9' : 'i0',
});

test('no prediction knows its answer, a later one, or one of another test learner', limit, async () => {
  const before = splitOf(answers, all);
  const { models } = await trainModels(before.training, localRunner);
  const { predictions: predicted } = predictAll(before, models);
  for (const known of [0, 1, 17, 39]) {
    // The first learner is of fold 1, and so first in the test log; what is asked of each is known at its turn.
    const future = splitOf(
      answers.map((answer, i) => {
        if (answer.fold !== 1 || (answer.user === 'u0' && i < known)) return answer;
        if (answer.user !== 'u0' || i > known) return changed(answer);
        return { ...answer, correct: answer.correct === 1 ? 0 : 1 };
      }),
      all,
    );
    const { predictions: again } = predictAll(
      future,
      (await trainModels(future.training, localRunner)).models,
    );
    for (const name of modelNames) {
      assert.deepEqual(again[name].subarray(0, known + 1), predicted[name].subarray(0, known + 1), name);
      if (name === 'bkt' || name === 'served') assert.notDeepEqual(again[name], predicted[name], name);
    }
  }
});

test('training is given no answer of a test learner', () => {
  const { training, test: tested } = splitOf(answers, all);
  const other = splitOf(
    answers.map((answer) => (answer.fold === 1 ? changed(answer) : answer)),
    all,
  );
  assert.deepEqual(other.training, training);
  assert.notDeepEqual(other.test, tested);
  assert.equal(training.correct.length + tested.correct.length, answers.length);
  const own = answers.filter(({ fold }) => fold !== 1).map(({ correct }) => correct);
  assert.deepEqual([...training.correct], own, 'each answer of the others once, in their order');
});

const floors = [
  ['assist2009.csv.gz', 0.718, 0.782],
  ['algebra05.csv.gz', 0.752, 0.813],
] as const;

for (const [name, bkt, served] of floors) {
  const path = referenceFile(name);
  test(`${name} is foretold as well as it must be`, { ...limit, skip: path === null }, async () => {
    const found = lineOf(await evaluate(path ?? '', '--json'));
    assert.ok(found.models.bkt.auc >= bkt, `bkt ${found.models.bkt.auc}`);
    assert.ok(found.models.served.auc >= served, `served ${found.models.served.auc}`);
    assert.ok(found.models.served.ece <= 0.015, `ece ${found.models.served.ece}`);
    assert.deepEqual([found.monotone.right_lowers, found.monotone.wrong_raises], [0, 0]);
    const { probes, met_items } = found.monotone;
    assert.ok(probes >= 50_000 && met_items > probes / 10, `${probes} probes, ${met_items} of items met`);
  });
}
