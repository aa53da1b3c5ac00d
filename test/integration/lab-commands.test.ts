/** `npm run evaluate` and `npm run backtest` on made-up answers and on small files of public data sets. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { formulaVersion } from '../../src/domain/base/formula-version.js';
import { resolveSkillModel, unfittedModel } from '../../src/domain/catalogue/tenant-model.js';
import { localRunner } from '../../src/domain/fit/fit-stages.js';
import { skillColumns } from '../../src/domain/prediction/features.js';
import { streakCount } from '../../src/domain/prediction/prediction-model.js';
import { forecastFold, scoreForecasts } from '../../src/lab/backtest/forecasts.js';
import { bootstrapIntervals, resamples } from '../../src/lab/backtest/results.js';
import { planWindows, selectAnswersBefore, unboundedWindow } from '../../src/lab/backtest/windows.js';
import { predictAll } from '../../src/lab/evaluate/predict.js';
import { createProbes } from '../../src/lab/evaluate/probe.js';
import { replayLog } from '../../src/lab/evaluate/replay.js';
import { modelNames } from '../../src/lab/evaluate/results.js';
import { trainModels } from '../../src/lab/evaluate/train.js';
import { computeSum, distinct, indices } from '../../src/lists.js';
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

const run = (command: string, ...args: string[]) => runCommand(command, {}, ...args);
const runJson = async (command: string, ...args: string[]) => lineOf(await run(command, ...args, '--json'));

const short = makeAnswers(50, 40);
const long = makeAnswers(60, 70);
const half = long.slice(0, long.length / 2);
/** The long histories with ten times the pauses. */
const months = long.map((answer) => ({ ...answer, ts: 1_500_000_000 + 10 * (answer.ts - 1_700_000_000) }));

const bare: readonly MadeColumn[] = ['user_id', 'skill_id', 'correct'];
const timed: readonly MadeColumn[] = [...bare, 'item_id', 'ts', 'order', 'fold'];
const rich: readonly MadeColumn[] = [...timed, 'response_time_s', 'question_difficulty'];

function withScriptTags(answers: readonly MadeAnswer[], columns: readonly MadeColumn[]): Buffer {
  const tagged = answers.map((answer) => ({ ...answer, skill: `<script>${answer.skill}` }));
  return gzipSync(csvOf(tagged, columns));
}
const flip = (answer: MadeAnswer): MadeAnswer => ({ ...answer, correct: answer.correct === 1 ? 0 : 1 });

test('evaluate reports every metric as JSON and writes a self-contained page', async (t) => {
  const file = await fileOf(t, withScriptTags(short, rich), '<script>answers');
  const page = join(await tempDir(t), 'page.html');
  const ended = await run('evaluate', file, '--json', '--threads', '1', '--report', page);
  const found = lineOf(ended);
  assert.equal(ended.err, `${file}: format skilltrace\n`);
  assert.deepEqual(Object.keys(found).slice(0, 4), ['rows', 'learners', 'models', 'fit']);
  assert.deepEqual([found.rows, found.learners, found.train], [400, 10, { rows: 1600, learners: 40 }]);
  assert.deepEqual([found.fold, found.split, found.left_out], [1, 'fold', 0]);
  assert.deepEqual(Object.keys(found.models), ['overall_mean', 'skill_mean', 'bkt', 'served']);
  for (const [model, metrics] of Object.entries<Record<string, number>>(found.models)) {
    assert.deepEqual(Object.keys(metrics), ['auc', 'rmse', 'log_loss', 'accuracy', 'ece'], model);
    for (const value of Object.values(metrics)) assert.ok(value >= 0 && value < 1, `${model} ${value}`);
    const bins: { answers: number }[] = found.reliability[model];
    assert.equal(computeSum(bins.map(({ answers }) => answers)), found.rows);
  }
  const { overall_mean, skill_mean, served } = found.models;
  assert.equal(overall_mean.auc, 0.5);
  assert.ok(served.auc > skill_mean.auc && served.log_loss < overall_mean.log_loss);
  const { probes, met_items, ...violations } = found.monotone;
  assert.ok(probes > 15 * 400 && met_items > probes / 10 && met_items < probes, `${probes}, ${met_items}`);
  assert.deepEqual(violations, { right_lowers: 0, wrong_raises: 0, furthest: 0 });
  const { by_mastery, pairs, contradictions, mastered_then_low, mastered_then_accuracy } = found.validity;
  assert.ok(pairs > 0 && contradictions <= pairs && mastered_then_low <= mastered_then_accuracy);
  assert.equal(computeSum(by_mastery.map(({ answers }: { answers: number }) => answers)), found.rows);
  assert.deepEqual([found.run.version, found.run.formula_version], [version, formulaVersion]);
  assert.match(found.headline[0], /^The served probability predicts held-out answers with AUC 0\.\d{3}/);
  assert.ok(found.auc_margins.served > 0);
  const [low, high] = found.validity.intervals.contradictions;
  assert.ok(low <= contradictions / pairs && contradictions / pairs < high);
  assert.ok(found.fit.observations === 1600 && found.fit.seconds > 0 && found.fit.iterations > 0);
  assert.ok(found.served_fit.peak_bytes > 1e7);
  const parts = ['streaks', 'before', 'course', 'retries', 'itemsBefore'];
  for (const [i, { part, answers, published, ...losses }] of found.parts.entries())
    assert.deepEqual([part, answers, published], [parts[i], 1600, losses.with < losses.without]);
  assert.equal(found.parts.length, parts.length);

  const html = readFileSync(page, 'utf8');
  for (const text of [
    version,
    found.run.date.slice(0, 10),
    found.headline[0],
    '1 thread',
    'Monotonicity of the served probability',
  ])
    assert.ok(html.includes(text), text);
  // A reliability plot for each of four models, one of mastery, and two learning curves.
  assertSelfContained(html, 7);
  await assertLegible(t, page, /^Evaluation of /);
});

test('evaluate splits a file by a hash, with the same results for any number of threads', async (t) => {
  const file = await fileOf(t, csvOf(short, bare));
  const { code, out, err } = await run('evaluate', file, '--threads', '1');
  assert.deepEqual([code, err], [0, `${file}: format skilltrace\n`]);
  const { models, split, learners } = await runJson('evaluate', file, '--threads', '2');
  assert.equal(split, 'hash');
  assert.ok(learners > 3 && learners < 20, `${learners} of 50 learners in a fifth`);
  assert.match(
    out,
    /^The served probability predicts held-out answers with AUC 0\.\d{3} ± 0\.\d{3}, .*better than BKT \(0\.\d{3}\) and .*\(0\.\d{3}\)\.\n/,
  );
  assert.match(out, /\nCreated +Skilltrace \d.*, model formulas \d+, \d{4}-\d\d-\d\d \d\d:\d\d UTC\n/);
  assert.match(out, /folds by a hash of user_id/);
  assert.match(out, /\n {2}MODEL +AUC +RMSE +LOG LOSS +ACCURACY +ECE +ANSWERS\n/);
  for (const name of modelNames) {
    const [auc, rmse] = [models[name].auc.toFixed(4), models[name].rmse.toFixed(4)];
    assert.match(out, new RegExp(`\n  ${name} +${auc}[^\n]* ${rmse}`));
  }
});

test('evaluate reads several skills, joined or as a list, and reports the questions that need them', async (t) => {
  const made = short.map((answer) => ({
    ...answer,
    skill: answer.skill === 's5' ? `s5~~s${answer.order % 2}` : answer.skill,
  }));
  const lines = recordsOf(made, timed).map(({ skill_id, ...fields }) =>
    JSON.stringify({ ...fields, skill_ids: `${skill_id}`.split('~~').toReversed() }),
  );
  const joined = await runJson('evaluate', await fileOf(t, csvOf(made, timed)));
  const listed = await runJson('evaluate', await fileOf(t, lines.join('\n'), 'answers.ndjson'));
  const several = made.filter(({ skill, fold }) => fold === 1 && skill.includes('~~')).length;
  assert.ok(several > 0 && several < joined.rows);
  for (const found of [joined, listed]) {
    assert.equal(found.several_skills.answers, several);
    assert.ok(found.several_skills.auc > 0.5 && found.several_skills.ece < 0.2);
    assert.deepEqual([found.monotone.right_lowers, found.monotone.wrong_raises], [0, 0]);
  }
  const { out } = await run('evaluate', await fileOf(t, csvOf(made, timed)));
  assert.match(
    out,
    new RegExp(`Served model, ${several} answers to questions with several skills: AUC \\.?\\d`),
  );
});

test('evaluate reads the same answers from a file of ASSISTments 2009, with one row per skill and no order', async (t) => {
  const made = short.map((answer, i) => ({
    ...{ ...answer, order: i },
    skill: answer.skill === 's5' ? `s5~~s${answer.order % 2}` : answer.skill,
  }));
  const rows = made.flatMap(({ user, skill, item, correct, order, seconds }) =>
    skill.split('~~').map((one) => [order, user, item, 1, correct, 1000 * seconds, one].join()),
  );
  const header = 'order_id,user_id,problem_id,original,correct,ms_first_response,skill_name';
  const apart = rows.toSorted((a, b) => (a.slice(-1) < b.slice(-1) ? 1 : -1));
  const file = await fileOf(t, `${[header, ...apart].join('\n')}\n`);
  const { models, several_skills } = await runJson('evaluate', file);
  const own = csvOf(made, [...bare, 'item_id', 'order', 'response_time_s']);
  const expected = await runJson('evaluate', await fileOf(t, own));
  assert.deepEqual(models, expected.models);
  assert.deepEqual(several_skills, expected.several_skills);
});

test('evaluate leaves out invalid rows, and prints its results even if it cannot write the page', async (t) => {
  const invalid = ['u1,s1,2,i1,0,1,1', ',s1,1,i1,0,1,1', 'u1,s1', 'u1,s1,1,i1,0,1,1.5', 'u1,s1,1,i1,x,1,1'];
  const mixed = ['u1,s1,1,i1,0,1,-1', 'u1,s1,1,i1,1700000000,99,4', 'new,s1,1,i1,1700000000,1,'];
  const file = await fileOf(t, `${csvOf(short, timed)}${[...invalid, ...mixed].join('\n')}\n`);
  const folder = await tempDir(t);
  const page = join(folder, 'page.html');
  await symlink(join(folder, 'missing', 'page.html'), page);
  const { code, out, err } = await run('evaluate', file, '--json', '--report', page);
  assert.equal(code, 1);
  const { left_out, rows, train, split } = lineOf({ code: 0, out, err });
  assert.deepEqual([left_out, rows + train.rows, split], [6, 2002, 'mixed']);
  assert.match(err, /^.*: format skilltrace\n6 rows left out:\n {2}line 2002: correct "2" must be/);
  assert.match(err, /line 2004: the row has 2 fields.*\n {2}line 2005: fold "1.5" must be an integer/);
  assert.match(err, /and 1 more\n1 row has a different fold.*\n1 learner has no fold/);
  assert.match(err, /\n--report .* cannot be written: .*\n$/);
});

test('Both lab commands report an error in at most two lines on stderr', async (t) => {
  const file = await fileOf(t, csvOf(makeAnswers(40, 8), timed));
  const oneLearner = await fileOf(t, csvOf(long.slice(0, 70), timed));
  const untimed = await fileOf(t, csvOf(makeAnswers(40, 8), bare));
  const header = await fileOf(t, 'user_id,skill_id,correct\n');
  const invalid = await fileOf(t, 'user_id,skill_id,correct\nu,s,maybe\n');
  const oneClass = await fileOf(t, `user_id,skill_id,correct\n${'u,s,1\n'.repeat(100)}`);
  const page = join(await tempDir(t), 'missing', 'page.html');
  const common: readonly (readonly [args: readonly string[], err: RegExp])[] = [
    [[], /exactly one FILE/],
    [[`${file}.missing`], /\.missing cannot be read: no such file$/m],
    [
      [file, '--fold', '9'],
      /Fold 9 has no learners\. Folds with learners: 1, 2, 3, 4, 5\. Pass one of them with --fold/,
    ],
    [[file, '--fold', 'one'], /--fold "one" must be an integer/],
    [[file, '--threads', '0'], /--threads "0" must be an integer from 1/],
    [[oneLearner], /training needs learners in other folds\. Use a file with at least 20 learners/],
    [[header], /contains no valid answer\n {2}it has no rows: pass a file/],
    [[oneClass], /all 100 answers are correct\. Check the column of the results, or name/],
    [[invalid], /contains no valid answer\n {2}line 2: correct "maybe"/],
    [[file, '--report', page], /--report .* cannot be written/],
    [[file, '--report', ''], /--report .* cannot be written: it is a directory/],
    [[file, '--unknown'], /--unknown/],
  ];
  const cases = ['evaluate', 'backtest'].flatMap((command) =>
    common.map(([args, expected]) => ({ command, args, expected })),
  );
  cases.push({
    command: 'backtest',
    args: [file],
    expected: /a learner needs 10 answers within 90 days after a forecast\. Use a log with more/,
  });
  cases.push({
    command: 'backtest',
    args: [untimed],
    expected: /needs more than 20 answers, because no learner has answers at different times/,
  });
  for (const { command, args, expected } of cases) {
    const { code, out, err } = await run(command, ...args);
    assert.deepEqual([code, out], [1, ''], `${command} ${args.join(' ')}`);
    assert.match(err, expected);
    assert.ok(err.trim().split('\n').length <= 2, err);
  }
  assert.ok(!existsSync(page));
});

test('Monotonicity probes find a prediction that falls after a correct answer', () => {
  const split = splitOf(short.slice(0, 400), bare);
  const skillIds = indices(split.test.skills).map(String);
  const probe = (streaks: number[]) => {
    const skills = skillIds.map((skillId) => {
      const skill = resolveSkillModel(unfittedModel, skillId);
      const terms = skill.terms.toSpliced(1 + skillColumns.length, streakCount, ...streaks);
      return [skillId, { ...skill, terms }] as const;
    });
    const sets = skillIds.map((skillId) => [skillId] as const);
    const served = { model: { ...unfittedModel, skills: new Map(skills) }, sets, itemOf: () => null };
    const probes = createProbes(served, split);
    replayLog(served, split.test, probes.visit);
    return probes.check;
  };
  const rising = indices(streakCount);
  const good = probe(rising);
  assert.deepEqual([good.rightLowers, good.wrongRaises, good.metItems], [0, 0, 0]);
  assert.equal(good.probes, split.test.correct.length * split.test.skills, 'every skill after each answer');
  const bad = probe(rising.toReversed());
  assert.ok(bad.rightLowers > good.probes / 4 && bad.wrongRaises > good.probes / 4);
  assert.ok(bad.furthest > 0.01);
});

/** Changes every field that a prediction of the answer does not know. */
const changeAnswer = (answer: MadeAnswer): MadeAnswer => ({
  ...flip(answer),
  skill: answer.skill === 's0' ? 's1' : 's0',
  item: answer.item === 'i0' ? 'i9' : 'i0',
});

test('A prediction uses only earlier answers of its learner', async () => {
  const predict = async (answers: readonly MadeAnswer[]) => {
    const split = splitOf(answers, timed);
    return predictAll(split, (await trainModels(split.training, localRunner)).models).predictions;
  };
  const few = short.slice(0, 1200);
  const original = await predict(few);
  for (const known of [0, 17]) {
    // The learner u0 is the first of the test log. Skill and item of each answer are known at its turn.
    const changed = await predict(
      few.map((answer, i) => {
        if (answer.fold !== 1 || (answer.user === 'u0' && i < known)) return answer;
        return answer.user === 'u0' && i === known ? flip(answer) : changeAnswer(answer);
      }),
    );
    for (const name of modelNames)
      assert.deepEqual(changed[name].subarray(0, known + 1), original[name].subarray(0, known + 1), name);
    for (const name of ['bkt', 'served'] as const) assert.notDeepEqual(changed[name], original[name], name);
  }
});

test('The training log has every answer of the other folds in the order of `order` or ts', () => {
  const { training, test: tested } = splitOf(short, timed);
  const correct = short.flatMap((answer) => (answer.fold === 1 ? [] : [answer.correct]));
  assert.deepEqual([...training.correct], correct);
  assert.equal(training.correct.length + tested.correct.length, short.length);
  const changedAnswers = short.map((answer) => (answer.fold === 1 ? changeAnswer(answer) : answer));
  const changed = splitOf(changedAnswers, timed);
  assert.deepEqual(changed.training, training);
  assert.notDeepEqual(changed.test, tested);
  const backwards = short.toReversed().sort((a, b) => Number(a.user.slice(1)) - Number(b.user.slice(1)));
  for (const missing of ['ts', 'order'] as const) {
    const columns = timed.filter((name) => name !== missing);
    assert.deepEqual(splitOf(backwards, columns).training.correct, training.correct, `without ${missing}`);
  }
  assert.notDeepEqual(splitOf(backwards, [...bare, 'fold']).training.correct, training.correct);
});

type Json = ReturnType<typeof JSON.parse>;

function assertBands(bands: readonly Json[], cases: number, horizons: readonly number[]): void {
  assert.equal(computeSum(bands.map((band) => band.cases)), cases);
  assert.deepEqual(distinct(bands.map(({ horizon }) => horizon)), horizons);
  for (const band of bands) {
    assert.ok(band.history_to === null || band.history_to >= band.history_from);
    assert.ok(band.low >= 0 && band.low <= band.coverage_80 + 1e-9);
    assert.ok(band.high <= 1 && band.high >= band.coverage_80 - 1e-9);
    assert.ok(band.learners > 0 && band.learners <= band.cases);
  }
}

test('backtest reports coverage and losses as JSON and writes a self-contained page', async (t) => {
  const file = await fileOf(t, withScriptTags(long, timed), '<script>answers');
  const page = join(await tempDir(t), 'page.html');
  const ended = await run('backtest', file, '--json', '--report', page);
  const found = lineOf(ended);
  assert.equal(ended.err, `${file}: format skilltrace\n`);
  assert.deepEqual(Object.keys(found).slice(0, 5), ['cases', 'learners', 'coverage', 'bands', 'models']);
  assert.deepEqual([found.learners, found.unit, found.fold, found.cutoffs], [60, 'days', null, []]);
  assert.deepEqual(Object.keys(found.coverage), ['50', '80', '95']);
  assert.ok(Math.abs(found.coverage['80'] - 0.8) < 0.06, `covers ${found.coverage['80']}`);
  assertBands(found.bands, found.cases, [7, 30, 90]);
  assert.deepEqual(Object.keys(found.models), ['served', 'no_change', 'population']);
  for (const [model, losses] of Object.entries<Record<string, number>>(found.models)) {
    assert.deepEqual(Object.keys(losses), ['brier', 'log_loss', 'mae'], model);
    for (const [name, loss] of Object.entries(losses))
      assert.ok(loss > 0 && found.models.served[name] <= loss, `${model} ${name} ${loss}`);
  }
  const html = readFileSync(page, 'utf8');
  // Coverage and loss by horizon, width, reliability, PIT.
  assertSelfContained(html, 9);
  const beginning = html.slice(html.indexOf('</h1>'), html.indexOf('<h2>'));
  const covered = `${Math.round(100 * found.coverage['80'])} % of the 80 % intervals contained the observed share`;
  assert.ok(found.headline[0].startsWith(covered), found.headline[0]);
  for (const text of [...found.headline, `Skilltrace ${version}, model formulas ${formulaVersion}`])
    assert.ok(beginning.includes(text), text);
  assert.match(html, /<h2>By past trend<\/h2>/);
  assert.deepEqual([found.horizons, found.run.version], [[7, 30, 90], version]);
  const ofAll = found.trends.filter(({ horizon }: Json) => horizon === null);
  assert.equal(computeSum(ofAll.map(({ cases }: Json) => cases)), found.cases);
  assert.equal(found.is_recalibrated, false);
  await assertLegible(t, page, /^Backtest of /);
});

test('backtest of one fold without times uses horizons in answers, with any threads', async (t) => {
  const file = await fileOf(t, csvOf(half, [...bare, 'fold']));
  const found = await runJson('backtest', file, '--fold', '3', '--threads', '2');
  const { code, out, err } = await run('backtest', file, '--fold', '3', '--threads', '1');
  assert.deepEqual([code, err], [0, `${file}: format skilltrace\n`]);
  assert.deepEqual([found.learners, found.fold, found.unit, found.cutoffs], [6, 3, 'answers', []]);
  assertBands(found.bands, found.cases, [20, 50]);
  assert.match(
    out,
    /^\d+ % of the 80 % intervals .*; no band has enough forecasts and learners to be judged\.\n/,
  );
  assert.match(out, /\nCreated +Skilltrace .*\nCommand .*\nFile .*\nFold +3\n.*\nHorizons +20, 50 answers\n/);
  assert.match(out, /\nBy past trend, horizons in answers:\n {2}TREND +ANSWERS/);
  const coverage = found.coverage['80'].toFixed(3);
  assert.match(out, new RegExp(`\n  80 % +${coverage} +\\[0\\.\\d{3}.[01]\\.\\d{3}\\]`));
  assert.match(out, new RegExp(`\n  served +${found.models.served.brier.toFixed(4)}`));
});

test('backtest replaces a single fold by a hash and forecasts few learners without a fit', async (t) => {
  const inOneFold = makeAnswers(10, 70).map((answer) => ({ ...answer, fold: 7 }));
  const file = await fileOf(t, csvOf(inOneFold, [...bare, 'fold']));
  const ended = await run('backtest', file, '--json');
  const note = 'All learners are in fold 7; a hash of user_id assigns folds 1 to 5 instead';
  assert.equal(ended.err, `${file}: format skilltrace\n${note}\n`);
  const { seconds: _, run: __, ...found } = lineOf(ended);
  const {
    seconds: ___,
    run: ____,
    ...byHash
  } = await runJson('backtest', await fileOf(t, csvOf(inOneFold, bare)));
  assert.deepEqual(found, byHash);
  assert.deepEqual([found.learners, found.unit], [10, 'answers']);
  for (const command of ['backtest', 'evaluate']) {
    const { code, out, err } = await run(command, file, '--fold', '7');
    assert.deepEqual([code, out], [1, '']);
    assert.match(err, /All learners are in fold 7; .*in other folds\. .* pass --columns fold= to assign/);
  }
  assert.equal((await run('evaluate', file, '--columns', 'fold=', '--folds', 'all')).code, 0);
});

test('backtest of several months trains for each window on the answers before it', async (t) => {
  const file = await fileOf(t, csvOf(months, timed));
  const found = await runJson('backtest', file, '--fold', '1');
  assert.deepEqual([found.learners, found.unit, found.cutoffs.length], [12, 'days', 3]);
  assert.deepEqual(found.cutoffs, found.cutoffs.toSorted());
  assert.equal(computeSum(found.bands.map(({ cases }: Json) => cases)), found.cases);
});

test('A forecast uses no answer within its horizon and none of other test learners', async () => {
  const forecast = async (answers: readonly MadeAnswer[]) => {
    const split = splitOf(answers, timed);
    const { served } = (await trainModels(split.training, localRunner)).models;
    return scoreForecasts(forecastFold(split, served, 1, unboundedWindow));
  };
  const original = await forecast(half);
  for (const known of [3, 40]) {
    const isKnown = ({ fold, user }: MadeAnswer, i: number) => fold !== 1 || (user === 'u0' && i < known);
    const changed = await forecast(half.map((answer, i) => (isKnown(answer, i) ? answer : flip(answer))));
    const own = original.filter(({ learner, history }) => learner === 0 && history <= known);
    assert.ok(own.length > 3);
    for (const [i, { history, horizon, expected, width }] of own.entries())
      assert.deepEqual({ ...changed[i], history, horizon, expected, width }, changed[i]);
    assert.notDeepEqual(changed, original);
  }
});

test('Backtest windows follow each other, and their training logs end before they begin', () => {
  const split = splitOf(months, timed);
  const windows = planWindows(split);
  assert.equal(windows.length, 3);
  for (const short of [splitOf(long, timed), splitOf(months, bare)])
    assert.deepEqual(planWindows(short), [unboundedWindow]);
  assert.equal(selectAnswersBefore(split.training, unboundedWindow), split.training);
  for (const [i, window] of windows.entries()) {
    assert.equal(window.to, windows[i + 1]?.from ?? Number.POSITIVE_INFINITY);
    const known = selectAnswersBefore(split.training, window);
    assert.ok(known.at.every((time) => time < window.from));
    assert.equal(known.correct.length, split.training.at.filter((time) => time < window.from).length);
    const changed = months.map((answer) => (1000 * answer.ts >= window.from ? flip(answer) : answer));
    assert.deepEqual(selectAnswersBefore(splitOf(changed, timed).training, window), known);
  }
});

test('bootstrapIntervals is deterministic and yields to the event loop between samples', async () => {
  const learners = indices(30).map((i) => Float64Array.of(1 + (i % 3), i % 7, 0.5 * i));
  let turns = 0;
  let isDone = false;
  const counting = (async () => {
    for (; !isDone; turns++) await nextTurn();
  })();
  const found = await bootstrapIntervals(learners);
  isDone = true;
  await counting;
  assert.ok(turns >= resamples, `${turns} turns`);
  assert.deepEqual(found, [
    { low: 1, high: 1 },
    { low: 1.0317460317460319, high: 1.8867924528301887 },
    { low: 2.7983870967741935, high: 4.61864406779661 },
  ]);
});

for (const [name, bkt, served] of [
  ['assist2009.csv.gz', 0.718, 0.782],
  ['algebra05.csv.gz', 0.752, 0.813],
] as const) {
  const file = referenceFile(name);
  const options = { skip: file === null };
  test(`evaluate reaches the documented accuracy on ${name}`, options, async () => {
    const { models, monotone } = await runJson('evaluate', file ?? '');
    assert.ok(models.bkt.auc >= bkt, `bkt ${models.bkt.auc}`);
    assert.ok(models.served.auc >= served, `served ${models.served.auc}`);
    assert.ok(models.served.ece <= 0.015, `ece ${models.served.ece}`);
    assert.deepEqual([monotone.right_lowers, monotone.wrong_raises], [0, 0]);
    assert.ok(monotone.probes >= 50_000 && monotone.met_items > monotone.probes / 10);
  });

  test(`backtest reaches the documented coverage on ${name}`, options, async () => {
    const { bands, models, coverage, unit } = await runJson('backtest', file ?? '');
    for (const band of bands.filter(({ learners }: Json) => learners >= 500))
      for (const level of [50, 80, 95])
        assert.ok(Math.abs(band[`coverage_${level}`] - level / 100) <= 0.03, JSON.stringify(band));
    // Learners of one class take a course together, so that the next questions are new to all of them.
    const slack = unit === 'days' ? 0.05 : 0.02;
    for (const [level, share] of Object.entries<number>(coverage))
      assert.ok(Math.abs(share - Number(level) / 100) < slack, `${level} % interval covers ${share}`);
    for (const loss of ['brier', 'log_loss', 'mae'])
      assert.ok(models.served[loss] <= Math.min(models.no_change[loss], models.population[loss]), loss);
  });
}
