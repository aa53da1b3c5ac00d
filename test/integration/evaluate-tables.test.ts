/** Tables and cross-validation of `npm run evaluate` and `npm run fit -- FILE` on made-up answers. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { parse } from 'csv-parse/sync';
import { quoteLiteral } from '../../src/embedded/clickhouse/sql.js';
import { streamLocalQuery } from '../../src/embedded/local-query.js';
import { measureMetrics } from '../../src/lab/evaluate/results.js';
import { computeSum, distinct, groupBy } from '../../src/lists.js';
import { makeAnswers, recordsOf } from '../support/builders/answer-file.js';
import { runCommand } from '../support/commands/command.js';
import { fileOf, lineOf } from '../support/commands/log-commands.js';
import { tempDir } from '../support/temp.js';

type Json = ReturnType<typeof JSON.parse>;
type Row = Readonly<Record<string, string>>;

const run = (command: string, ...args: string[]) => runCommand(command, {}, ...args);

/** Ids that CSV must quote, questions with several skills, and answers without an item. */
const skills: Readonly<Record<string, string>> = { s0: 'a, "b"', s1: '\\N', s2: ' c ', s5: 'a, "b"~~s4' };
const made = makeAnswers(40, 20).map((answer) => ({
  ...answer,
  skill: skills[answer.skill] ?? answer.skill,
  item: answer.item.endsWith('7') ? '' : `é${answer.item}`,
}));
const lines = recordsOf(made, ['user_id', 'skill_id', 'item_id', 'correct', 'order', 'fold']);
const writeAnswers = (t: TestContext) =>
  fileOf(t, lines.map((line) => JSON.stringify(line)).join('\n'), 'answers.ndjson');

const readCsv = (path: string): Row[] => parse(readFileSync(path), { columns: true });
const numbersOf = (rows: readonly Row[], column: string): number[] => rows.map((row) => Number(row[column]));

async function queryFile(path: string, columns: string): Promise<Json[]> {
  const sql = `SELECT ${columns} FROM file(${quoteLiteral(path)}, 'Parquet')`;
  const chunks: Buffer[] = [];
  for await (const chunk of streamLocalQuery({ sql, format: 'JSONCompactEachRow' })) chunks.push(chunk);
  return Buffer.concat(chunks)
    .toString()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}

const metricsOf = (rows: readonly Row[], column = 'p_correct') =>
  measureMetrics(Uint8Array.from(numbersOf(rows, 'correct')), Float64Array.from(numbersOf(rows, column)));

function assertNear(actual: number, expected: number, tolerance = 1e-6): void {
  assert.ok(Math.abs(actual - expected) <= tolerance, `${actual}, not ${expected}`);
}

/** Every answer once, in the order of the file. */
function assertAnswers(rows: readonly Row[], expected: typeof made): void {
  assert.deepEqual(
    rows.map((row) => [row.user_id, row.skill_id, row.item_id, Number(row.correct), Number(row.answer)]),
    expected.map(({ user, skill, item, correct, order }) => [user, skill, item, correct, order]),
  );
}

/** A question with several skills counts for each of them. */
function assertSkills(parameters: readonly Row[], rows: readonly Row[]): void {
  for (const skill of parameters) {
    const own = rows.filter((row) => row.skill_id?.split('~~').includes(skill.skill_id ?? ''));
    assert.deepEqual(
      [Number(skill.answers), Number(skill.learners)],
      [own.length, distinct(own.map((row) => row.user_id)).length],
    );
    const { auc, logLoss } = metricsOf(own);
    assertNear(Number(skill.log_loss), logLoss);
    assert.equal(skill.auc === '' ? null : Number(skill.auc), auc);
  }
  const perSkill = computeSum(rows.map((row) => row.skill_id?.split('~~').length ?? 0));
  assert.equal(computeSum(numbersOf(parameters, 'answers')), perSkill);
}

/** Before the first answer of a learner, mastery is p_init; of several skills the geometric mean. */
function assertFirstMasteries(parameters: readonly Row[], rows: readonly Row[]): void {
  const pInit = new Map(parameters.map((row) => [row.skill_id, Number(row.p_init)]));
  const first = rows.filter(({ answer }) => answer === '1');
  assert.ok(first.some(({ skill_id }) => skill_id?.includes('~~')));
  for (const { skill_id = '', mastery } of first) {
    const own = skill_id.split('~~').map((skill) => pInit.get(skill) ?? Number.NaN);
    assertNear(Number(mastery), own.reduce((product, value) => product * value) ** (1 / own.length));
  }
}

test('evaluate writes predictions and parameters that reproduce its metrics, as CSV and as Parquet', async (t) => {
  const file = await writeAnswers(t);
  const folder = await tempDir(t);
  const [csv, parquet] = ['csv', 'parquet'].map((format) =>
    ['predictions', 'parameters'].map((name) => join(folder, `${name}.${format}`)),
  ) as [string[], string[]];
  const [predictions = '', parameters = ''] = csv;
  const found = lineOf(
    await run('evaluate', file, '--json', '--predictions', predictions, '--parameters', parameters),
  );
  const rows = readCsv(predictions);
  assertAnswers(
    rows,
    made.filter(({ fold }) => fold === 1),
  );
  assert.deepEqual(distinct(rows.map(({ fold }) => fold)), ['1']);
  for (const [model, column] of [
    ['served', 'p_correct'],
    ['bkt', 'p_correct_bkt'],
  ] as const) {
    const { auc, logLoss } = metricsOf(rows, column);
    assertNear(found.models[model].auc, auc ?? Number.NaN);
    assertNear(found.models[model].log_loss, logLoss);
    for (const name of ['auc', 'rmse']) {
      const [low, high] = found.intervals[model][name];
      assert.ok(low < found.models[model][name] && found.models[model][name] < high, `${model} ${name}`);
    }
  }
  const skillRows = readCsv(parameters);
  assert.equal(skillRows.length, 5);
  assertSkills(skillRows, rows);
  assertFirstMasteries(skillRows, rows);

  const [otherPredictions = '', otherParameters = ''] = parquet;
  await run('evaluate', file, '--predictions', otherPredictions, '--parameters', otherParameters);
  for (const [i, path] of parquet.entries()) {
    const expected = readCsv(csv[i] ?? '').map((row) => Object.values(row));
    const read = await queryFile(path, '*');
    assert.deepEqual(
      read.map((row) => row.map((value: Json) => `${value ?? ''}`)),
      expected,
    );
  }
  const [types] = await queryFile(otherPredictions, '[toTypeName(answer), toTypeName(mastery)]');
  assert.deepEqual(types, [['UInt32', 'Float64']]);
  assert.equal(readdirSync(folder).length, 4, 'no temporary files');
});

test('evaluate --folds all predicts each answer once, and averages the folds', async (t) => {
  const file = await writeAnswers(t);
  const folder = await tempDir(t);
  const [predictions, parameters, page] = ['a.csv', 'b.csv', 'page.html'].map((name) =>
    join(folder, name),
  ) as [string, string, string];
  const tables = ['--predictions', predictions, '--parameters', parameters, '--report', page];
  const found = lineOf(await run('evaluate', file, '--folds', 'all', '--json', ...tables));
  const rows = readCsv(predictions);
  assertAnswers(rows, made);
  assert.deepEqual([found.rows, found.learners, found.split], [800, 40, 'fold']);
  assert.deepEqual(
    found.folds.map(({ fold, rows, learners }: Json) => [fold, rows, learners]),
    [1, 2, 3, 4, 5].map((fold) => [fold, 160, 8]),
  );
  for (const model of ['bkt', 'served']) {
    assert.deepEqual(Object.keys(found.mean[model]), ['auc', 'rmse', 'log_loss', 'accuracy', 'ece']);
    for (const [name, mean] of Object.entries<number>(found.mean[model])) {
      const values: number[] = found.folds.map((fold: Json) => fold.models[model][name]);
      assertNear(mean, computeSum(values) / 5);
      const squares = values.map((value) => (value - computeSum(values) / 5) ** 2);
      assertNear(found.sd[model][name], Math.sqrt(computeSum(squares) / 4), 2e-6);
    }
  }
  const byFold = groupBy(readCsv(parameters), ({ fold }) => fold);
  assert.deepEqual([...byFold.keys()], ['1', '2', '3', '4', '5']);
  for (const [fold, own] of byFold)
    assertSkills(
      own,
      rows.filter((row) => row.fold === fold),
    );
  for (const [i, { models }] of found.folds.entries())
    assertNear(
      models.served.auc,
      metricsOf(rows.filter(({ fold }) => fold === `${i + 1}`)).auc ?? Number.NaN,
    );
  const html = readFileSync(page, 'utf8');
  assert.match(
    html,
    /<title>Evaluation of answers.ndjson, all folds<.*Metrics by fold.*<h2>Skills<.*p_forget/s,
  );
  assert.doesNotMatch(html, /NaN|undefined/);
  const { out } = await run('evaluate', file, '--folds', 'all');
  assert.match(
    out,
    /^Over 5 folds, the served probability predicts held-out answers with a mean AUC of 0\.\d{3} /,
  );
  assert.match(
    out,
    new RegExp(`\n  SERVED MODEL .*\n  Fold 1 [^]*\n  Mean +${found.mean.served.auc.toFixed(4)} `),
  );
});

test('fit of a FILE reports in-sample metrics, and writes tables without folds', async (t) => {
  const file = await writeAnswers(t);
  const [predictions, parameters] = ['a.csv', 'b.csv'].map((name) => join(dirname(file), name)) as [
    string,
    string,
  ];
  const found = lineOf(
    await run('fit', file, '--json', '--predictions', predictions, '--parameters', parameters),
  );
  const rows = readCsv(predictions);
  assertAnswers(rows, made);
  assert.deepEqual([found.answers, found.learners, found.skills, found.left_out], [800, 40, 5, 0]);
  const { auc, logLoss } = metricsOf(rows);
  assertNear(found.in_sample.served.auc, auc ?? Number.NaN);
  assertNear(found.in_sample.served.log_loss, logLoss);
  const skillRows = readCsv(parameters);
  assertSkills(skillRows, rows);
  assert.deepEqual(distinct([...rows, ...skillRows].map(({ fold }) => fold)), ['']);
  const { out } = await run('fit', file);
  assert.match(
    out,
    /^Fitted 5 skills on 800 answers of 40 learners in .*\nIn-sample predictions of the served model: AUC 0/,
  );
});

test('evaluate and fit reject wrong options, and files that they cannot write, before they read answers', async (t) => {
  const folder = await tempDir(t);
  const [missing, target] = [join(folder, 'missing.csv'), join(folder, 'x', 'out.csv')];
  const [table, same] = [join(folder, 'table.csv'), join(folder, 'same.csv')];
  writeFileSync(table, 'user_id,skill_id,correct\n');
  symlinkSync(table, join(folder, 'link.csv'));
  const mapping = join(folder, 'mapping.json');
  writeFileSync(mapping, '{}');
  const cases: readonly (readonly [command: string, args: readonly string[], err: RegExp])[] = [
    ['evaluate', [missing, '--fold', '1', '--folds', 'all'], /--fold and --folds exclude each other/],
    ['evaluate', [missing, '--folds', '3'], /--folds "3" must be one of all/],
    ['evaluate', [missing, '--predictions', target], /--predictions .*out\.csv cannot be written/],
    ['evaluate', [missing, '--parameters', folder], /--parameters .* cannot be written: it is a directory/],
    ['evaluate', [missing, '--parameters', '/dev/null'], /cannot be written: it is not a regular file/],
    ['evaluate', [missing, '--parameters', join(folder, '{a}.parquet')], /cannot contain \*, \?, \{ or \}/],
    ['evaluate', [table, '--predictions', table], /table\.csv is named twice/],
    ['evaluate', [table, '--report', join(folder, 'link.csv')], /table\.csv is named twice/],
    ['evaluate', [missing, '--predictions', same, '--parameters', same], /same\.csv is named twice/],
    ['fit', [table, '--parameters', table], /table\.csv is named twice/],
    ['evaluate', [missing, '--mapping', mapping, '--report', mapping], /mapping\.json is named twice/],
    ['fit', [missing, '--predictions', target], /--predictions .*out\.csv cannot be written/],
    ['fit', ['--predictions', missing], /need a file of answers/],
    ['fit', ['--parameters', missing], /need a file of answers/],
    ['fit', ['--kc', 'Default'], /Options that say how to read FILE need a FILE/],
    ['fit', [missing, missing], /Pass exactly one FILE/],
    ...[['--tenant', 'a'], ['--list'], ['--back'], ['--use', '0'], ['--dry-run']].map(
      (args) => ['fit', [missing, ...args], /A fit of FILE publishes nothing/] as const,
    ),
  ];
  for (const [command, args, expected] of cases) {
    const { code, out, err } = await run(command, ...args);
    assert.deepEqual([code, out], [1, ''], `${command} ${args.join(' ')}`);
    assert.match(err, expected);
    assert.doesNotMatch(err, /cannot be read/);
  }
  assert.ok(!existsSync(missing) && !existsSync(same));
});

test('evaluate keeps an existing file if it cannot write the new one completely', async (t) => {
  const file = await writeAnswers(t);
  const target = await fileOf(t, 'before');
  mkdirSync(`${target}.${process.pid}.tmp`);
  const { code, out, err } = await run('evaluate', file, '--predictions', target);
  assert.equal(code, 1);
  assert.match(out, /^The served probability predicts/);
  assert.match(err, /^--predictions .* cannot be written: .*Cannot open file/m);
  assert.equal(readFileSync(target, 'utf8'), 'before');
});
