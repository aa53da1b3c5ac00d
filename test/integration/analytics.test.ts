/** The queries of docs/analytics.md on a school whose right results are computed apart from ClickHouse. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectWarehouse } from '../../src/warehouse/clickhouse/client.js';
import { expectedLearning } from '../support/analytics/expected-learning.js';
import { expectedModel } from '../support/analytics/expected-model.js';
import { expectedPeople } from '../support/analytics/expected-people.js';
import { expectedUse } from '../support/analytics/expected-use.js';
import { fillSchool } from '../support/analytics/fill.js';
import { type Question, questionsOf, readPage } from '../support/analytics/page.js';
import type { Cell } from '../support/analytics/reckon.js';
import { smallSchool } from '../support/analytics/school.js';
import { onDatabaseOf, testDatabase } from '../support/inspect/warehouse.js';
import { freshDatabase } from '../support/servers/embedded.js';

const expected = { ...expectedUse, ...expectedLearning, ...expectedPeople, ...expectedModel };
const questions = questionsOf(readPage());

const maxLines = 20;
const maxColumns = 110;

test('every question has a right result, and its SQL is short', () => {
  assert.deepEqual(questions.map(({ title }) => title).toSorted(), Object.keys(expected).toSorted());
  for (const { title, sql } of questions) {
    const lines = sql.split('\n');
    assert.ok(lines.length <= maxLines, `${title}: ${lines.length} lines`);
    assert.deepEqual(
      lines.filter(({ length }) => length > maxColumns),
      [],
      title,
    );
  }
});

test('queries of analysts', { timeout: 600_000 }, async (t) => {
  const { clickhouseUrl, analystUrl } = await freshDatabase();
  const { client, url } = await testDatabase(t, clickhouseUrl);
  const school = smallSchool();
  await fillSchool(client, school);
  const analyst = connectWarehouse(onDatabaseOf(url, analystUrl));
  t.after(() => analyst.close());
  for (const question of questions)
    await t.test(question.title, async () => {
      const result = await analyst.query({ query: question.sql, format: 'JSONCompactEachRowWithNames' });
      const [names = [], ...rows] = await result.json<Cell[]>();
      const shown = rows.map((row) => row.filter((_, i) => names[i] !== 'picture'));
      assertRows(shown, expected[question.title]?.(school) ?? [], question);
    });
});

/** Sums that were added in another order differ in their last digits. */
const enough = 1e-9;

function assertRows(actual: readonly Cell[][], wanted: readonly Cell[][], { sql }: Question): void {
  const isSame = (a: Cell, b: Cell): boolean =>
    typeof b === 'number' && a !== null ? Math.abs(Number(a) - b) < enough : a === b;
  assert.notEqual(wanted.length, 0, sql);
  const cells = wanted.flatMap((row, i) =>
    row.map((cell, j) => isSame(actual[i]?.[j] ?? null, cell) && actual[i]?.length === row.length),
  );
  if (actual.length !== wanted.length || cells.includes(false)) assert.deepEqual(actual, wanted, sql);
}
