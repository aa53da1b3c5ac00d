/** The analyst views on cohorts and skills, checked against figures computed by hand. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { indices } from '../../src/lists.js';
import { connectWarehouse, selectRows } from '../../src/warehouse/clickhouse/client.js';
import { createAttemptWarehouse } from '../../src/warehouse/ingest/attempt-warehouse.js';
import { rollups } from '../../src/warehouse/schema/rollups.js';
import { attemptRow, encodedRows } from '../support/builders/attempt-rows.js';
import { timedSums, viewEfficiency } from '../support/inspect/view-efficiency.js';
import { testDatabase } from '../support/inspect/warehouse.js';
import { freshDatabase } from '../support/servers/embedded.js';

/** A Monday. */
const monday = Date.UTC(2026, 0, 5, 10);
const dayMs = 86_400_000;

interface Answered {
  readonly user: string;
  readonly skill?: string;
  /** After the Monday. */
  readonly day: number;
  readonly right: boolean;
  readonly seconds?: number | null;
  readonly from: number;
  readonly to: number;
  readonly p?: number;
  readonly plateau?: boolean;
  readonly tenant?: string;
}

const rowOf = (answered: Answered, i: number) =>
  attemptRow(i, {
    tenant: answered.tenant ?? 'default',
    userId: answered.user,
    skillId: answered.skill ?? 'algebra',
    isCorrect: answered.right,
    timeSpentSeconds: answered.seconds ?? null,
    occurredAt: monday + answered.day * dayMs + i * 1000,
    learnerSeq: i + 1,
    masteryBefore: answered.from,
    masteryAfter: answered.to,
    pCorrect: answered.p ?? 0.5,
    plateauDetected: answered.plateau ?? false,
  });

/** Ann and Bob began in week 0, Cem in week 1; all of them with times, but for Bob. */
const answers: readonly Answered[] = [
  { user: 'ann', day: 0, right: true, seconds: 20, from: 0.3, to: 0.6 },
  { user: 'ann', day: 0, right: false, seconds: 20, from: 0.6, to: 0.5 },
  { user: 'ann', day: 2, right: true, seconds: 40, from: 0.5, to: 0.7 },
  { user: 'ann', day: 9, right: true, seconds: 20, from: 0.6, to: 0.8, plateau: true },
  { user: 'bob', skill: 'geometry', day: 6, right: true, from: 0.3, to: 0.4 },
  { user: 'bob', day: 8, right: false, from: 0.3, to: 0.2, plateau: true },
  { user: 'bob', day: 10, right: true, from: 0.2, to: 0.5 },
  { user: 'cem', day: 7, right: false, seconds: 80, from: 0.3, to: 0.2, p: 0.25 },
  { user: 'cem', day: 8, right: true, seconds: 80, from: 0.2, to: 0.5, p: 0.25 },
  { user: 'cem', day: 8, right: true, seconds: 160, from: 0.5, to: 0.8, p: 0.5 },
  { user: 'ann', day: 0, right: true, from: 0.1, to: 0.2, tenant: 'other' },
];

type Row = Record<string, number | string | null>;

/** Sums of learners have seven digits. */
const near = (actual: unknown, expected: number, what: string): void =>
  assert.ok(
    typeof actual === 'number' && Math.abs(actual - expected) < 1e-5,
    `${what}: ${actual} instead of ${expected}`,
  );

function assertRow(row: Row | undefined, expected: Row): void {
  for (const [name, value] of Object.entries(expected)) {
    if (typeof value === 'number') near(Number(row?.[name]), value, name);
    else assert.equal(row?.[name], value, name);
  }
}

/** Timed answers on algebra. @param who none: of all learners */
const timedOf = (who?: string, lastDay = 30) =>
  timedSums(
    answers
      .filter(({ user, tenant, day }) => (who ?? user) === user && tenant === undefined && day <= lastDay)
      .flatMap(({ right, seconds }) => (seconds ? [{ correct: right, seconds }] : [])),
  );

const efficiency = (user: string, lastDay?: number): number =>
  viewEfficiency(timedOf(user, lastDay), timedOf()) ?? assert.fail('fewer than three times');

test('views of cohorts and skills', { timeout: 600_000 }, async (t) => {
  const { clickhouseUrl, analystUrl } = await freshDatabase();
  const { client, url } = await testDatabase(t, clickhouseUrl);
  const warehouse = createAttemptWarehouse(client);
  // In blocks of their own and without merges, so that a day is in several parts.
  for (const table of rollups.map((rollup) => rollup.table.name)) {
    await client.command({ query: `SYSTEM STOP MERGES ${table}` });
  }
  for (const [i, answered] of answers.entries()) {
    await warehouse.insert([encodedRows([rowOf(answered, i)], i)], `block ${i}`);
  }
  const asAnalyst = new URL(analystUrl);
  asAnalyst.pathname = new URL(url).pathname;
  const analyst = connectWarehouse(asAnalyst.href);
  t.after(() => analyst.close());

  await t.test('each cohort and skill, week by week', async () => {
    const rows = await selectRows<Row>(
      analyst,
      `SELECT * FROM cohort_skill_weekly WHERE tenant = 'default' ORDER BY cohort, skill_id, week`,
    );
    assert.deepEqual(
      rows.map(({ cohort, skill_id, week }) => [cohort, skill_id, week]),
      [
        ['2026-01-05', 'algebra', 0],
        ['2026-01-05', 'algebra', 1],
        ['2026-01-05', 'geometry', 0],
        ['2026-01-12', 'algebra', 0],
      ],
    );
    assertRow(rows[0], {
      learners: 1,
      attempts: 3,
      accuracy: 2 / 3,
      velocity_per_attempt: 0.4 / 3,
      velocity_per_active_day: 0.2,
      mean_mastery: 0.6,
      correct_per_minute: (60 * 2) / 80,
      efficiency_index: efficiency('ann', 2),
    });
    assertRow(rows[1], {
      learners: 2,
      attempts: 3,
      accuracy: 2 / 3,
      velocity_per_attempt: 0.4 / 3,
      velocity_per_active_day: 0.4 / 3,
      // Of three days: ann's .8, bob's .2 and .5.
      mean_mastery: 0.5,
      correct_per_minute: 3,
      efficiency_index: null,
    });
    assertRow(rows[2], { learners: 1, attempts: 1, correct_per_minute: null, efficiency_index: null });
    assertRow(rows[3], {
      learners: 1,
      attempts: 3,
      velocity_per_active_day: 0.25,
      mean_mastery: 0.5,
      correct_per_minute: (60 * 2) / 320,
      efficiency_index: efficiency('cem'),
    });
  });

  await t.test('each skill, over its learners', async () => {
    const rows = await selectRows<Row>(
      analyst,
      `SELECT * FROM skill_velocity WHERE tenant = 'default' ORDER BY skill_id`,
    );
    assert.equal(rows.length, 2);
    // Per attempt: ann .6 / 4, bob .2 / 2, cem .5 / 3. Per active day: ann .6 / 3, bob .2 / 2, cem .5 / 2.
    const ann = efficiency('ann');
    const cem = efficiency('cem');
    assert.ok(ann > 50 && cem < 50);
    assertRow(rows[0], {
      learners: 3,
      attempts: 9,
      velocity_per_attempt_q1: 0.125,
      velocity_per_attempt_median: 0.15,
      velocity_per_attempt_q3: (0.15 + 0.5 / 3) / 2,
      velocity_per_active_day_q1: 0.15,
      velocity_per_active_day_median: 0.2,
      velocity_per_active_day_q3: 0.225,
      efficiency_index_q1: cem + (ann - cem) / 4,
      efficiency_index_median: (ann + cem) / 2,
      efficiency_index_q3: cem + (3 * (ann - cem)) / 4,
      correct_per_minute: (60 * 5) / 420,
      plateau_share: 1 / 3,
    });
    assertRow(rows[1], { learners: 1, attempts: 1, efficiency_index_median: null, plateau_share: 0 });
  });

  await t.test('each learner on a skill, over all days', async () => {
    const [ann, bob] = await selectRows<Row>(
      analyst,
      `SELECT * FROM learner_skill_total WHERE tenant = 'default' AND skill_id = 'algebra' ORDER BY user_id`,
    );
    assertRow(ann, { user_id: 'ann', attempts: 4, active_days: 3, last_day: '2026-01-14', on_plateau: 1 });
    assertRow(ann, { accuracy: 0.75, velocity_per_attempt: 0.15, velocity_per_active_day: 0.2 });
    // He was on a plateau on an earlier day.
    assertRow(bob, { user_id: 'bob', attempts: 2, active_days: 2, last_day: '2026-01-15', on_plateau: 0 });
    const skillDays = await selectRows<Row>(
      analyst,
      `SELECT * FROM learner_skill_daily WHERE tenant = 'default' AND user_id = 'ann' ORDER BY day`,
    );
    assertRow(skillDays[0], { attempts: 2, first_mastery: 0.3, last_mastery: 0.5, brier: 0.25 });
    assert.equal(skillDays[0]?.last_answer_at, '2026-01-05 10:00:01');
  });

  await t.test('tenants apart; views and columns say what they mean', async () => {
    const tenants = await selectRows<Row>(
      analyst,
      'SELECT tenant, toUInt32(sum(attempts)) AS n FROM skill_velocity GROUP BY tenant ORDER BY tenant',
    );
    assert.deepEqual(tenants, [
      { tenant: 'default', n: 10 },
      { tenant: 'other', n: 1 },
    ]);
    const bare = await selectRows<Row>(
      analyst,
      `SELECT name FROM system.columns WHERE database = currentDatabase() AND comment = ''
         AND table IN ('cohort_skill_weekly', 'skill_velocity')
       UNION ALL SELECT name FROM system.tables WHERE database = currentDatabase() AND comment = ''
         AND name IN ('cohort_skill_weekly', 'skill_velocity')`,
    );
    assert.deepEqual(bare, []);
  });
});

test('a cohort that answers fast and wrong is less efficient than one that is slow and right', {
  timeout: 600_000,
}, async (t) => {
  const { clickhouseUrl } = await freshDatabase();
  const { client } = await testDatabase(t, clickhouseUrl);
  const cohort = (name: string, week: number, correctOfFive: number, seconds: number): Answered[] =>
    indices(60).map((i) => ({
      ...{ user: `${name} ${i % 4}`, day: 7 * week, from: 0.3, to: 0.3, p: correctOfFive / 5 },
      ...{ right: i % 5 < correctOfFive, seconds: seconds + (i % 7) },
    }));
  const cohorts = [cohort('fast and wrong', 0, 2, 15), cohort('usual', 1, 4, 40), cohort('slow', 2, 4, 90)];
  const rows = cohorts.flat().map(rowOf);
  await createAttemptWarehouse(client).insert([encodedRows(rows)], 'cohorts');
  const found = await selectRows<{ index: number }>(
    client,
    'SELECT efficiency_index AS index FROM cohort_skill_weekly ORDER BY cohort',
  );
  const [wrong = 100, usual = 0, slow = 0] = found.map(({ index }) => index);
  assert.ok(wrong < 40 && wrong < slow - 10 && slow < usual && usual > 55, JSON.stringify(found));
  const [skill] = await selectRows<Row>(client, 'SELECT efficiency_index_q1 AS low FROM skill_velocity');
  assert.ok(Number(skill?.low) < 40);
});
