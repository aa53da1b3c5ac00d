/**
 * The queries in docs/analytics and of Grafana's dashboard Learning, by the read-only account, on a small school.
 * The rows of test/fixtures/analytics.json were computed from the same school by a separate program, without ClickHouse:
 * never replace them by the output of a query.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { connectWarehouse, selectRows } from '../../src/warehouse/clickhouse/client.js';
import { createFactsHistory } from '../../src/warehouse/reads/facts-history.js';
import { createSchema } from '../../src/warehouse/schema/create-schema.js';
import { queryPages, readQuestions } from '../support/analytics/page.js';
import { copySchool, storeSchool } from '../support/analytics/school.js';
import { expandSql, isSql, type Panel, panelsOf, readDashboards } from '../support/inspect/dashboards.js';
import { root } from '../support/runner/root.js';
import { freshDatabase } from '../support/servers/embedded.js';

type Cell = string | number | null;

const { clickhouseUrl, analystUrl } = await freshDatabase();
const client = connectWarehouse(clickhouseUrl);
const analyst = connectWarehouse(analystUrl);
after(() => Promise.all([client.close(), analyst.close()]));
await createSchema(client);
await storeSchool(client);

async function runQuery(query: string) {
  const result = await analyst.query({ query, format: 'JSONCompact' });
  const { meta = [], data } = await result.json<Cell[]>();
  return { names: meta.map(({ name }) => name), types: meta.map(({ type }) => type), rows: data };
}

const expected: Readonly<Record<string, Cell[][]>> = JSON.parse(
  readFileSync(join(root, 'test/fixtures/analytics.json'), 'utf8'),
);
const questions = queryPages.flatMap(readQuestions);

/** Sums in a different order differ in their last digits. */
const tolerance = 1e-9;

const isSame = (cell: Cell | undefined, wanted: Cell): boolean =>
  typeof wanted === 'number' && cell !== null ? Math.abs(Number(cell) - wanted) < tolerance : cell === wanted;

const isSameRow = (row: readonly Cell[] | undefined, wanted: readonly Cell[]): boolean =>
  row?.length === wanted.length && wanted.every((cell, i) => isSame(row[i], cell));

test('Every query in docs/analytics returns the rows that were computed without ClickHouse', async () => {
  assert.equal(questions.length, Object.keys(expected).length);
  for (const { title, sql } of questions) {
    const { names, rows } = await runQuery(sql);
    // Charts repeat a number.
    const actual = rows.map((row) => row.filter((_, i) => names[i] !== 'chart'));
    const wanted = expected[title] ?? [];
    assert.notEqual(wanted.length, 0, title);
    const isRight = actual.length === wanted.length && wanted.every((row, i) => isSameRow(actual[i], row));
    if (!isRight) assert.deepEqual(actual, wanted, title);
  }
});

const learning = readDashboards().find(({ title }) => title === 'Learning') ?? assert.fail('no dashboard');
const panels = panelsOf(learning).flatMap((panel) =>
  panel.targets.filter(isSql).map(({ format, rawSql }) => ({ panel, format, rawSql })),
);
const skills = ['circles', 'commas', 'inferences', 'linear-equations', 'linear-functions'];

/** Runs a query as Grafana sends it. The name with a quote shows how the query quotes its variables. */
function runPanel(sql: string, tenant = 'demo') {
  const variables = { tenant: [tenant], skill: [...skills, "geo'metry"], period: ['week'] };
  return runQuery(expandSql(sql, { from: '2025-02-01', to: '2025-06-30', variables }));
}

const isNumber = (value: unknown): boolean =>
  value !== null && value !== '' && Number.isFinite(Number(value)) && Number(value) !== 0;

/** A panel finds the columns that its kind, axes and overrides name, none of them empty. */
function assertDrawable(
  { title, type, options, fieldConfig }: Panel,
  format: number,
  { names, types, rows }: Awaited<ReturnType<typeof runPanel>>,
): void {
  assert.ok(rows.length > 0, title);
  for (const [i, name] of names.entries()) {
    const isEmpty = rows.every((row) => row[i] === null || row[i] === '');
    // The highest range of histories is open.
    if (name !== 'to') assert.ok(!isEmpty, `${title}: ${name} is empty`);
  }
  if (type === 'stat') assert.ok(rows.length === 1 && names.length === 1 && isNumber(rows[0]?.[0]), title);
  if (format === 0) assert.match(`${names[0]} ${types[0]}`, /^time (Date|DateTime)/, title);
  if (type === 'timeseries') assert.equal(format, 0, title);
  const label = /^\$\{__field\.labels\.(\w+)\}$/.exec(String(fieldConfig.defaults.displayName ?? ''))?.[1];
  const used = [options.xField, label, ...fieldConfig.overrides.map(({ matcher }) => matcher.options)];
  for (const name of used) assert.ok(typeof name !== 'string' || names.includes(name), `${title}: ${name}`);
}

test('Every panel of the dashboard Learning gets rows that it can draw, of one tenant only', async () => {
  assert.ok(panels.length >= 20);
  for (const { panel, format, rawSql } of panels) {
    assertDrawable(panel, format, await runPanel(rawSql));
    const { rows } = await runPanel(rawSql, 'unknown');
    assert.ok(!rows.flat().some(isNumber), panel.title);
  }
});

test('The dashboard Learning counts the stored rows', async () => {
  const sqlOf = (title: string, type: string): string =>
    panels.find(({ panel }) => panel.title === title && panel.type === type)?.rawSql ?? '';
  const stats = { Answers: 4646, Learners: 26, Accuracy: 2969 / 4646, Goals: 17, Mastered: 19 / 129 };
  for (const [title, value] of Object.entries(stats)) {
    const { rows } = await runPanel(sqlOf(title, 'stat'));
    assert.ok(isSame(rows[0]?.[0], value), `${title}: ${rows}`);
  }
  const { rows } = await runPanel(sqlOf('Mastery funnel by skill', 'barchart'));
  const funnel = ['circles,2,4,11,9', 'inferences,1,12,10,3', 'linear-equations,0,9,15,2'];
  funnel.push('linear-functions,1,14,9,2', 'commas,0,6,16,3');
  assert.deepEqual(rows.map(String), funnel);
});

test('The dashboard Learning offers all tenants and skills, and marks each new version of the model', async () => {
  for (const [name, values] of Object.entries({ tenant: ['demo', 'other'], skill: skills })) {
    const variable = learning.templating.list.find((one) => one.name === name);
    const { rows } = await runPanel(variable?.query.rawSql ?? '');
    assert.deepEqual(rows.flat(), values, name);
  }
  const { names, rows } = await runPanel(learning.annotations.list[0]?.target.rawSql ?? '');
  assert.deepEqual(names, ['time', 'text']);
  const texts = rows.map(([, text]) => text);
  assert.deepEqual(texts, ['Version 1 of the model (fit)', 'Version 2 of the model (fit)']);
});

test('The dashboard Learning reads only tables and views that docs/analytics/schema.md describes', async () => {
  const views = await selectRows<{ name: string }>(
    client,
    "SELECT name FROM system.tables WHERE database = currentDatabase() AND engine = 'View'",
  );
  const documented = ['model_versions', 'attempts', ...views.map(({ name }) => name)];
  for (const { panel, rawSql } of panels)
    for (const [, table = ''] of rawSql.matchAll(/\b(?:FROM|JOIN) (\w+)/g))
      assert.ok(documented.includes(table), `${panel.title}: ${table}`);
});

/** Times stay in UTC. */
const hideTimes = (rows: readonly Cell[][]): unknown =>
  rows.map((row) => row.filter((cell) => typeof cell !== 'string' || !/^[\d-]+ \d\d:/.test(cell)));

test('Every query in docs/analytics counts local days, weeks and hours', async () => {
  const timeZone = 'Pacific/Kiritimati';
  await createFactsHistory(client, clickhouseUrl).recordTimeZone('far', { timeZone, requestedAt: 0 });
  await copySchool(client, 'far', timeZone, 14);
  for (const { title, sql } of questions) {
    const wanted = await runQuery(sql);
    const local = await runQuery(sql.replaceAll("tenant = 'demo'", "tenant = 'far'"));
    assert.deepEqual(hideTimes(local.rows), hideTimes(wanted.rows), title);
  }
});
