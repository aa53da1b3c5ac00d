/** The view group_weekly, compared with the same figures computed from the stored rows. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { dayMs } from '../../src/domain/base/common.js';
import { computeSum, distinct, groupBy } from '../../src/lists.js';
import { connectWarehouse, selectRows } from '../../src/warehouse/clickhouse/client.js';
import { createSchema } from '../../src/warehouse/schema/create-schema.js';
import { storeSchool } from '../support/analytics/school.js';
import { freshDatabase } from '../support/servers/embedded.js';

const { clickhouseUrl } = await freshDatabase();
const client = connectWarehouse(clickhouseUrl);
after(() => client.close());
await createSchema(client);
await storeSchool(client);

interface Answer {
  readonly user_id: string;
  readonly skill_id: string;
  readonly learner_seq: number;
  readonly at: number;
  readonly is_correct: number;
  readonly p_correct: number;
  readonly seconds: number;
  readonly mastery_before: number;
  readonly mastery_after: number;
}
interface Change {
  readonly group_id: string;
  readonly user_id: string;
  readonly at: number;
  readonly is_member: number;
}

const computeMean = (numbers: readonly number[]): number => computeSum(numbers) / numbers.length;
const toDay = (ms: number): number => Math.floor(ms / dayMs);
/** Day 4 of the epoch was a Monday. */
const toMonday = (ms: number): number => 7 * Math.floor((toDay(ms) + 3) / 7) - 3;

const readRows = <Row>(columns: string, from: string): Promise<Row[]> =>
  selectRows<Row>(client, `SELECT ${columns} FROM ${from} WHERE tenant = 'demo'`);

async function readSchool() {
  const at = (column: string): string => `toFloat64(toUnixTimestamp64Milli(${column})) AS at`;
  const answers = await readRows<Answer>(
    `user_id, skill_id, learner_seq, is_correct, p_correct, mastery_before, mastery_after, ${at('occurred_at')},
      if(time_spent_seconds > 0 AND time_spent_seconds <= 3600, time_spent_seconds, 0) AS seconds`,
    'attempts',
  );
  const groups = await readRows<{ group_id: string; name: string | null; at: number }>(
    `group_id, name, ${at('updated_at')}`,
    'group_changes',
  );
  const changes = await readRows<Change>(
    `group_id, user_id, is_member, ${at('updated_at')}`,
    'group_member_changes',
  );
  return { answers, groups, changes: changes.sort((a, b) => a.at - b.at) };
}

/** Whether the learner is a member at the end of the day; the first day of the group stands for all earlier days. */
function isMember(changes: readonly Change[], createdAt: number, day: number): boolean {
  const until = Math.max(day, toDay(createdAt));
  const last = changes.filter(({ at }) => toDay(at) <= until).at(-1);
  return last?.is_member === 1;
}

function summarize(answers: readonly Answer[]) {
  const byTime = answers.toSorted(
    (a, b) => Math.floor(a.at / 1000) - Math.floor(b.at / 1000) || a.learner_seq - b.learner_seq,
  );
  const lasts = [...groupBy(byTime, (a) => `${a.user_id} ${a.skill_id} ${toDay(a.at)}`).values()];
  return {
    learners: distinct(answers.map((a) => a.user_id)).length,
    learner_days: distinct(answers.map((a) => `${a.user_id} ${toDay(a.at)}`)).length,
    answers: answers.length,
    correct: computeSum(answers.map((a) => a.is_correct)),
    accuracy: computeMean(answers.map((a) => a.is_correct)),
    mean_p_correct: computeMean(answers.map((a) => a.p_correct)),
    seconds: computeSum(answers.map((a) => a.seconds)),
    mastery_gain: computeSum(answers.map((a) => a.mastery_after - a.mastery_before)),
    mean_mastery: computeMean(lasts.map((list) => list.at(-1)?.mastery_after ?? 0)),
  };
}

test('group_weekly has the figures of the members at the end of each day', async () => {
  const { answers, groups, changes } = await readSchool();
  const deleted = groups.filter(({ name }) => name === null).map(({ group_id }) => group_id);
  const expected = groups
    .filter(({ group_id }) => !deleted.includes(group_id))
    .flatMap(({ group_id, at }) => {
      const byLearner = groupBy(
        changes.filter((one) => one.group_id === group_id),
        (one) => one.user_id,
      );
      const own = answers.filter((a) => isMember(byLearner.get(a.user_id) ?? [], at, toDay(a.at)));
      return [...groupBy(own, (a) => toMonday(a.at))].map(
        ([week, list]) => [`${group_id} ${week}`, summarize(list)] as const,
      );
    });
  const found = await readRows<ReturnType<typeof summarize> & { key: string }>(
    "* EXCEPT (tenant, group_id, name, kind, week), concat(group_id, ' ', toString(toUInt16(week))) AS key",
    'group_weekly',
  );
  assert.ok(deleted.length > 0 && expected.length > 100);
  assert.deepEqual(found.map(({ key }) => key).sort(), expected.map(([key]) => key).sort());
  const byKey = new Map<string, object>(expected);
  for (const { key, ...figures } of found)
    for (const [name, wanted] of Object.entries(byKey.get(key) ?? {})) {
      const value = Number(figures[name as keyof typeof figures]);
      assert.ok(Math.abs(value - wanted) < 1e-6 * Math.max(1, wanted), `${key} ${name}: ${value}, ${wanted}`);
    }
});
