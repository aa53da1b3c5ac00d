/**
 * The queries in docs/analytics on a school in which a third of the answers have several skills. Queries that count an
 * answer under each skill return the same as if each skill had its own answer; others, as if there were no further skill.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { AttemptRow } from '../../src/contracts/answers/attempt-row.js';
import { connectWarehouse } from '../../src/warehouse/clickhouse/client.js';
import { createSchema } from '../../src/warehouse/schema/create-schema.js';
import { queryPages, readQuestions } from '../support/analytics/page.js';
import { storeSchool } from '../support/analytics/school.js';
import { freshDatabase } from '../support/servers/embedded.js';

const skillIds = ['circles', 'commas', 'inferences', 'linear-equations', 'linear-functions'];

/** @param gain in mastery and plateaus of the further skills; 0: as if the learner has always known them */
function addSkills({ event, figures, conditions }: AttemptRow, i: number, gain: number): AttemptRow {
  const others = skillIds.filter((skillId) => skillId !== event.skillIds[0]);
  const further =
    i % 3 > 0 ? [] : [others[i % 4] as string, ...(i % 2 > 0 ? [] : [others[(i + 1) % 4] as string])];
  const [skill, condition] = [figures.skills[0], conditions.skills[0]];
  const masteryBefore = gain === 0 ? 1 : skill.masteryBefore / 2;
  const plateauDetected = gain > 0 && i % 5 === 0;
  const own = { masteryBefore, masteryAfter: masteryBefore + gain, plateauDetected };
  const parameters = { ...condition.parameters, ...(gain === 0 && { pSlip: 0 }) };
  return {
    event: { ...event, skillIds: [event.skillIds[0], ...further] },
    figures: { ...figures, skills: [skill, ...further.map(() => own)] },
    conditions: { ...conditions, skills: [condition, ...further.map(() => ({ ...condition, parameters }))] },
  };
}

/** One answer for each skill. */
const splitSkills = ({ event, figures, conditions }: AttemptRow): AttemptRow[] =>
  event.skillIds.map((skillId, i) => ({
    event: { ...event, skillIds: [skillId] },
    figures: { ...figures, skills: [figures.skills[i] ?? figures.skills[0]] },
    conditions: { ...conditions, skills: [conditions.skills[i] ?? conditions.skills[0]] },
  }));

async function openSchool(change: Parameters<typeof storeSchool>[1]) {
  const { clickhouseUrl } = await freshDatabase();
  const client = connectWarehouse(clickhouseUrl);
  after(() => client.close());
  await createSchema(client);
  await storeSchool(client, change);
  return async (query: string): Promise<unknown[][]> => {
    const result = await client.query({ query, format: 'JSONCompact' });
    return (await result.json<unknown[]>()).data;
  };
}

const questions = queryPages.flatMap(readQuestions);

/** Sums in another order may round to another last digit. */
function assertSame(title: string, found: readonly unknown[][], expected: readonly unknown[][]): void {
  assert.equal(found.length, expected.length, title);
  for (const [i, row] of found.entries())
    for (const [j, cell] of row.entries()) {
      const wanted = expected[i]?.[j];
      const isNear = typeof cell === 'number' && Math.abs(cell - Number(wanted)) < 0.0011;
      if (!isNear) assert.deepEqual(cell, wanted, `${title}: row ${i}, column ${j}`);
    }
}

test('Queries that count an answer under each of its skills see one answer for each skill', async () => {
  const mixed = await openSchool((row, i) => [addSkills(row, i, 0.1)]);
  const split = await openSchool((row, i) => splitSkills(addSkills(row, i, 0.1)));
  const asked = questions.filter(({ counts }) => counts === 'under');
  assert.ok(asked.length > 15, `${asked.length} queries`);
  for (const { title, sql } of asked) assertSame(title, await mixed(sql), await split(sql));
});

test('Queries that count an answer once do not see its further skills', async () => {
  const mixed = await openSchool((row, i) => [addSkills(row, i, 0)]);
  const single = await openSchool((row) => [row]);
  const asked = questions.filter(({ counts }) => counts === 'once');
  assert.ok(asked.length > 10, `${asked.length} queries`);
  for (const { title, sql } of asked)
    if (!sql.includes('has(skill_ids')) assertSame(title, await mixed(sql), await single(sql));
});
