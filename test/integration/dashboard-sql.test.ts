/** Every question of the dashboards, as Grafana sends it, by the read-only account on rows of a small school. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ClickHouseClient } from '@clickhouse/client';
import { encodeForecastRow, encodeGoalRow } from '../../src/contracts/journal/journal.js';
import { connectWarehouse, selectRows } from '../../src/warehouse/clickhouse/client.js';
import { createAttemptWarehouse } from '../../src/warehouse/ingest/attempt-warehouse.js';
import { createJournalWarehouse } from '../../src/warehouse/ingest/journal-warehouse.js';
import { attemptRow, encodedRows } from '../support/builders/attempt-rows.js';
import { servedForecast } from '../support/builders/journal-rows.js';
import {
  type Chosen,
  expandSql,
  isSql,
  type Panel,
  panelsOf,
  readDashboards,
} from '../support/inspect/dashboards.js';
import { testDatabase } from '../support/inspect/warehouse.js';
import { freshDatabase } from '../support/servers/embedded.js';

const dayMs = 86_400_000;
const start = Date.UTC(2026, 0, 5, 10);
const users = ['ann', 'bob', "c'em"];
const skills = ['algebra', "geo'metry"];
const answersOf = 3 * 2 * 30;

/** Of each learner an answer a day on both skills for 30 days; the second learner begins a week later than the first. */
const schoolAnswers = (tenant: string) =>
  Array.from({ length: answersOf }, (_, i) => {
    const day = Math.floor(i / 6);
    const mastery = Math.min(0.97, 0.3 + 0.03 * day);
    return attemptRow(i, {
      tenant,
      userId: users[i % 3] ?? '',
      skillId: skills[i % 2] ?? '',
      isCorrect: i % 4 !== 0,
      timeSpentSeconds: 20 + (i % 7),
      occurredAt: start + (day + 7 * (i % 3)) * dayMs + i * 1000,
      learnerSeq: 1 + Math.floor(i / 3),
      masteryBefore: mastery - 0.03,
      masteryAfter: mastery,
      plateauDetected: day > 25 && i % 3 === 0,
    });
  });

async function fillSchool(client: ClickHouseClient, tenant: string, firstId: number): Promise<void> {
  await createAttemptWarehouse(client).insert(
    [encodedRows(schoolAnswers(tenant), firstId)],
    `school-${tenant}`,
  );
  const journal = createJournalWarehouse(client);
  const forecasts = users.map((userId, i) =>
    servedForecast({ tenant, userId, madeAt: start + (10 + i) * dayMs, goalProbability: 0.2 + 0.3 * i }),
  );
  await journal.insert(
    'forecast',
    forecasts.map((forecast) => Buffer.from(encodeForecastRow(forecast))),
  );
  const goals = users.map((userId) => ({ tenant, userId, targetScore: 1200, targetDate: '2026-09-01' }));
  await journal.insert(
    'goal',
    goals.map((goal) => Buffer.from(`${start}\t${encodeGoalRow(goal)}`)),
  );
  await client.command({
    query: `INSERT INTO model_versions (tenant, change, version, action, published_at)
      VALUES ('${tenant}', 1, 1, 'fit', fromUnixTimestamp64Milli(${start + 5 * dayMs}))`,
  });
}

interface Told {
  readonly names: readonly string[];
  readonly types: readonly string[];
  readonly rows: readonly (readonly unknown[])[];
}

async function tell(reader: ClickHouseClient, query: string): Promise<Told> {
  const answer = await reader.query({ query, format: 'JSONCompact' });
  const { meta = [], data } = await answer.json<unknown[]>();
  return { names: meta.map(({ name }) => name), types: meta.map(({ type }) => type), rows: data };
}

const chosen = (tenant: string): Chosen => ({
  from: '2026-01-01',
  to: '2026-03-31',
  variables: { tenant: [tenant], skill: skills, period: ['week'] },
});

const isNumber = (value: unknown): boolean =>
  value !== null && value !== '' && Number.isFinite(Number(value)) && Number(value) !== 0;

/** What a panel of this kind draws with. */
function assertDrawn({ title, type, options, fieldConfig }: Panel, format: number, told: Told): void {
  const { names, types, rows } = told;
  assert.ok(rows.length > 0, title);
  for (const [i, name] of names.entries())
    assert.ok(
      rows.some((row) => row[i] !== null && row[i] !== ''),
      `${title}: ${name} is empty`,
    );
  if (type === 'stat') assert.ok(rows.length === 1 && names.length === 1 && isNumber(rows[0]?.[0]), title);
  if (format === 0) assert.match(`${names[0]} ${types[0]}`, /^time (Date|DateTime)/, title);
  if (type === 'timeseries') assert.equal(format, 0, title);
  if (typeof options.xField === 'string') assert.ok(names.includes(options.xField), `${title}: x`);
  for (const { matcher } of fieldConfig.overrides)
    assert.ok(names.includes(matcher.options), `${title}: ${matcher.options}`);
  const label = /^\$\{__field\.labels\.(\w+)\}$/.exec(String(fieldConfig.defaults.displayName ?? ''))?.[1];
  if (label !== undefined) assert.ok(names.includes(label), `${title}: ${label}`);
}

test('panels, variables and marks of the dashboards', { timeout: 600_000 }, async (t) => {
  const { clickhouseUrl, analystUrl } = await freshDatabase();
  const { client, url } = await testDatabase(t, clickhouseUrl);
  await fillSchool(client, 'school', 0);
  await fillSchool(client, 'other', 1000);
  const analyst = new URL(analystUrl);
  analyst.pathname = new URL(url).pathname;
  const reader = connectWarehouse(analyst.href);
  t.after(() => reader.close());
  const ask = (sql: string, tenant = 'school') => tell(reader, expandSql(sql, chosen(tenant)));
  const learning = readDashboards().find(({ title }) => title === 'Learning');
  assert.ok(learning !== undefined);
  const queries = panelsOf(learning).flatMap((panel) =>
    panel.targets.filter(isSql).map((target) => ({ panel, target })),
  );

  await t.test('every panel gets rows that it can draw', async () => {
    assert.ok(queries.length >= 20);
    for (const { panel, target } of queries) assertDrawn(panel, target.format, await ask(target.rawSql));
  });

  await t.test('of one tenant only', async () => {
    for (const { panel, target } of queries) {
      const { rows } = await ask(target.rawSql, 'nobody');
      assert.ok(!rows.flat().some(isNumber), panel.title);
    }
  });

  await t.test('figures are those of the rows', async () => {
    const figure = async (title: string): Promise<number> => {
      const found = queries.find(({ panel }) => panel.title === title && panel.type === 'stat');
      return Number((await ask(found?.target.rawSql ?? '')).rows[0]?.[0]);
    };
    assert.equal(await figure('Answers'), answersOf);
    assert.equal(await figure('Learners'), users.length);
    assert.equal(await figure('Accuracy'), 0.75);
    assert.equal(await figure('Goals'), users.length);
    assert.equal(await figure('Mastered'), 1);
    const funnel = queries.find(({ panel }) => panel.title === 'Mastery funnel by skill');
    const { rows } = await ask(funnel?.target.rawSql ?? '');
    assert.equal(rows.length, skills.length);
  });

  await t.test('variables offer what there is, and marks say when a model came into force', async () => {
    const offered = async (name: string): Promise<unknown[]> => {
      const variable = learning.templating.list.find((one) => one.name === name);
      assert.ok(variable?.type === 'query');
      return (await ask(variable.query.rawSql)).rows.map(([value]) => value);
    };
    assert.deepEqual(await offered('tenant'), ['other', 'school']);
    assert.deepEqual(await offered('skill'), skills);
    const [mark] = learning.annotations.list;
    const { names, rows } = await ask(mark?.target.rawSql ?? '');
    assert.deepEqual(names, ['time', 'text']);
    assert.equal(rows[0]?.[1], 'Version 1 of the model (fit)');
  });

  await t.test('no query reads more than the documented views', async () => {
    const [row] = await selectRows<{ views: string[] }>(
      client,
      "SELECT groupArray(name) AS views FROM system.tables WHERE database = currentDatabase() AND engine = 'View'",
    );
    const documented = new Set([...(row?.views ?? []), 'model_versions', 'attempts']);
    for (const { panel, target } of queries)
      for (const [, table = ''] of target.rawSql.matchAll(/\b(?:FROM|JOIN) (\w+)/g))
        assert.ok(documented.has(table), `${panel.title}: ${table}`);
  });
});
