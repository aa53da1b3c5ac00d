/** Schema, inserts, repairs and reads of the warehouse. */
import assert from 'node:assert/strict';
import { after, beforeEach, type TestContext, test } from 'node:test';
import type { ClickHouseClient } from '@clickhouse/client';
import { listSkillSets } from '../../src/domain/base/answer-log.js';
import { indices, splitIntoParts } from '../../src/lists.js';
import { connectWarehouse, ensureDatabase, selectRows } from '../../src/warehouse/clickhouse/client.js';
import { createAttemptWarehouse } from '../../src/warehouse/ingest/attempt-warehouse.js';
import { readAnswerColumns } from '../../src/warehouse/reads/answer-columns.js';
import { createStoredRows } from '../../src/warehouse/reads/stored-rows.js';
import { createSchema } from '../../src/warehouse/schema/create-schema.js';
import { learnerTables } from '../../src/warehouse/schema/learner-tables.js';
import { buildRollupSelect } from '../../src/warehouse/schema/rollup.js';
import { furtherNames, rollups } from '../../src/warehouse/schema/rollups.js';
import { attemptRow, encodedRows } from '../support/builders/attempt-rows.js';
import { madeAnswers, storeAnswers } from '../support/builders/made-answers.js';
import { allOnce, counts, emptyTables, fileDatabase, filledTables } from '../support/inspect/warehouse.js';

const { client, clickhouseUrl } = await fileDatabase({ after });
const warehouse = createAttemptWarehouse(client);
const everything = [{ partition: 0, from: '0-0', to: '9-0', rows: 0 }];

beforeEach(() => emptyTables(client));

/** Rows `from` to `to - 1` as one chunk of an insert. */
const chunk = (from: number, to: number) => {
  const rows = indices(to - from).map((i) => attemptRow(from + i));
  return [encodedRows(rows, from)];
};

let tokens = 0;
const newToken = (): string => `token ${tokens++}`;

/** A client of another database, without a schema. */
async function openDatabase(t: TestContext, suffix: string): Promise<ClickHouseClient> {
  const url = new URL(clickhouseUrl);
  url.pathname += suffix;
  await ensureDatabase(url.href);
  const other = connectWarehouse(url.href);
  t.after(() => other.close());
  return other;
}

test('createSchema runs once for concurrent processes and rejects a later schema version', async (t) => {
  const clients = await Promise.all([1, 2, 3, 4].map(() => openDatabase(t, '_new')));
  await Promise.all(clients.map((one) => createSchema(one)));
  const [first] = clients as [ClickHouseClient];
  assert.equal(await createSchema(first), false);
  await first.command({ query: "INSERT INTO schema_migrations (version, name) VALUES (15, 'later')" });
  await assert.rejects(createSchema(first), {
    name: 'StartError',
    message:
      'ClickHouse has schema version 15, but this version of the service supports only 14; install the newer version',
  });
});

test('createSchema rejects an earlier schema version and changes nothing', async (t) => {
  const earlier = await openDatabase(t, '_earlier');
  await earlier.command({
    query: 'CREATE TABLE schema_migrations (version UInt32, name String) ORDER BY version',
  });
  await earlier.command({ query: "INSERT INTO schema_migrations VALUES (6, 'earlier')" });
  await assert.rejects(createSchema(earlier), {
    name: 'StartError',
    message:
      'ClickHouse has schema version 6, but this version of the service needs 10 to 14; use an empty database',
  });
  assert.deepEqual(await selectRows(earlier, 'SHOW TABLES'), [{ name: 'schema_migrations' }]);
});

test('createSchema adds the columns that version 10 lacks and retains its rows', async (t) => {
  const earlier = await openDatabase(t, '_version_10');
  await createSchema(earlier);
  const columns = ['calibration_below', 'calibration_above', 'accuracy_cases'];
  const run = (query: string) => earlier.command({ query });
  // A view is checked when it is read.
  for (const name of columns) await run(`ALTER TABLE served_forecasts DROP COLUMN ${name}`);
  await run("INSERT INTO served_forecasts (tenant, user_id, forecast_days) VALUES ('t', 'u', 7)");
  await run('TRUNCATE TABLE schema_migrations');
  await run("INSERT INTO schema_migrations (version, name) VALUES (10, 'earlier')");
  assert.equal(await createSchema(earlier), true);
  const query = `SELECT user_id, ${columns.join(', ')} FROM forecasts`;
  assert.deepEqual(await selectRows(earlier, query), [
    { user_id: 'u', calibration_below: 1, calibration_above: 1, accuracy_cases: 0 },
  ]);
  assert.equal(await createSchema(earlier), false);
});

test('createSchema upgrades the views of version 11, and the sums of its answers stay right', async (t) => {
  const earlier = await openDatabase(t, '_version_11');
  await createSchema(earlier);
  const run = (query: string) => earlier.command({ query });
  for (const rollup of rollups) {
    const ownSums = Object.entries(rollup.sums).filter(([name]) => !furtherNames.includes(name));
    const query = buildRollupSelect({ ...rollup, sums: Object.fromEntries(ownSums) }, undefined, 'attempts');
    await run(`ALTER TABLE ${rollup.table.name}_mv MODIFY QUERY ${query}`);
  }
  for (const name of [...rollups.map(({ table }) => table.name), 'archived_learner_skill'])
    await run(`ALTER TABLE ${name} ${furtherNames.map((column) => `DROP COLUMN ${column}`).join(', ')}`);
  const lists = ['mastery_chance', 'masteries_before', 'masteries_after', 'skill_ids', 'further_skills'];
  for (const name of lists) await run(`ALTER TABLE attempts DROP COLUMN ${name}`);
  const answer = (learner_seq: number, further: object) =>
    storeAnswers(earlier, [{ tenant: 't', user_id: 'u', skill_id: 'a', learner_seq, ...further }]);
  await answer(1, {});
  await run('TRUNCATE TABLE schema_migrations');
  await run("INSERT INTO schema_migrations (version, name) VALUES (11, 'earlier')");
  const upgrades = await Promise.all([createSchema(earlier), createSchema(earlier)]);
  assert.ok(upgrades.includes(true));
  await answer(2, { further_skills: [{ skill_id: 'b' }] });
  for (const view of ['learner_skill_daily', 'learner_skill_total', 'skill_daily'])
    assert.deepEqual(
      await selectRows(
        earlier,
        `SELECT skill_id, toUInt32(attempts) AS n, toUInt32(answers) AS once FROM ${view} ORDER BY skill_id`,
      ),
      [
        { skill_id: 'a', n: 2, once: 2 },
        { skill_id: 'b', n: 1, once: 0 },
      ],
      view,
    );
});

test('The schema describes every column of its tables', async () => {
  const views = "'learner_skill_daily', 'learner_skill_total', 'skill_daily', 'skill_catalogue'";
  const bare = await selectRows(
    client,
    `SELECT table, name FROM system.columns WHERE database = currentDatabase()
     AND table NOT LIKE '%_mv' AND table NOT IN (${views}) AND comment = ''`,
  );
  assert.deepEqual(bare, []);
});

test('learnerTables lists every table with rows of a learner', async () => {
  const found = await selectRows<{ place: string }>(
    client,
    `SELECT DISTINCT table AS place FROM system.columns WHERE database = currentDatabase() AND name = 'user_id'
     AND table IN (SELECT name FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%MergeTree')`,
  );
  const names = learnerTables.map(({ table }) => table.name).sort();
  assert.deepEqual(found.map(({ place }) => place).sort(), names);
});

test('AttemptWarehouse stores texts, numbers, missing values and times from 1970 on as encoded', async () => {
  const times = [0, 1, 5_123, 999_999, 1_000_000, 9_999_999, 86_400_001, 19_800_101_000, 4e12 + 1];
  const values = { userId: 'a\\b "ü" 🎓\\N', timeSpentSeconds: 12.5, masteryAfter: 0.1 + 0.2 };
  const missing = { itemId: null, questionDifficulty: null, confidenceScore: null };
  const rows = times.map((occurredAt, i) => attemptRow(i, { ...values, ...missing, occurredAt }));
  await warehouse.insert([encodedRows(rows)], newToken());
  const query = `SELECT user_id AS userId, time_spent_seconds AS timeSpentSeconds, mastery_after AS masteryAfter,
    nullIf(item_id, '') AS itemId, question_difficulty AS questionDifficulty, confidence_score AS confidenceScore,
    toFloat64(toUnixTimestamp64Milli(occurred_at)) AS occurredAt FROM attempts ORDER BY occurredAt`;
  const expected = times.map((occurredAt) => ({ ...values, ...missing, occurredAt }));
  assert.deepEqual(await selectRows(client, query), expected);
});

test('AttemptWarehouse stores a block of 70,000 keys as one part and counts its repeat once', async () => {
  // More rows than the engine puts into a part by default.
  const count = 70_000;
  for (const table of filledTables) await client.command({ query: `SYSTEM STOP MERGES ${table}` });
  const rows = indices(count).map((i) => attemptRow(i, { userId: `u${i}`, skillId: `s${i % 66_000}` }));
  const chunks = splitIntoParts(rows, 1000).map((part, i) => encodedRows(part, i * 1000));
  const token = newToken();
  for (const _ of [1, 2]) await warehouse.insert(chunks, token);
  assert.deepEqual(await counts(client), allOnce(count));
  const parts = await selectRows(
    client,
    `SELECT table, toUInt32(count()) AS parts FROM system.parts
     WHERE database = currentDatabase() AND active AND table != 'schema_migrations' GROUP BY table ORDER BY table`,
  );
  const single = filledTables.toSorted().map((table) => ({ table, parts: 1 }));
  assert.deepEqual(parts, single);
  await warehouse.insert(chunk(count, count + 10), newToken());
  assert.deepEqual(await counts(client), allOnce(count + 10));
  for (const table of filledTables) await client.command({ query: `SYSTEM START MERGES ${table}` });
});

test('AttemptWarehouse accepts answers of 600 months in one block', async () => {
  const months = indices(600).map((i) => attemptRow(i, { occurredAt: Date.UTC(1970, i, 2) }));
  await warehouse.insert([encodedRows(months)], newToken());
  assert.deepEqual(await counts(client), allOnce(600));
});

for (const broken of rollups.map(({ table }) => table.name)) {
  test(`A repeated insert completes ${broken} if the first one failed there`, async () => {
    const token = newToken();
    await failInRollup(broken, () => warehouse.insert(chunk(0, 1000), token));
    await warehouse.insert(chunk(0, 1000), token);
    assert.deepEqual(await counts(client), allOnce(1000));
  });

  test(`repairRollups recomputes an incomplete and an empty ${broken} without the token`, async () => {
    await warehouse.insert(chunk(0, 1000), newToken());
    await failInRollup(broken, () => warehouse.insert(chunk(1000, 1500), newToken()));
    assert.ok((await warehouse.repairRollups(everything)).includes(broken));
    assert.deepEqual(await counts(client), allOnce(1500));
    assert.deepEqual(await warehouse.repairRollups(everything), []);
    await client.command({ query: `TRUNCATE TABLE ${broken}` });
    assert.deepEqual(await warehouse.repairRollups(everything), [broken]);
    assert.deepEqual(await counts(client), allOnce(1500));
    const sumsOf = (correct: string, seconds: string, table: string) =>
      selectRows(client, `SELECT toUInt32(sum(${correct})) AS c, sum(${seconds}) AS s FROM ${table}`);
    const stored = await sumsOf('is_correct', 'time_spent_seconds', 'attempts');
    assert.deepEqual(await sumsOf('correct', 'timed_seconds', 'skill_daily'), stored);
  });

  for (const [what, statement, error] of [
    ['A repair that paused before its INSERT', `INSERT INTO ${broken}`, null],
    ['The late INSERT of a dead repair', `INSERT INTO ${broken}`, 'dead'],
    ['The late DELETE of a dead repair', `DELETE FROM ${broken}`, 'dead'],
  ] as const) {
    test(`${what} changes no sum of ${broken} after another repair`, async () => {
      await warehouse.insert(chunk(0, 1000), newToken());
      await client.command({ query: `TRUNCATE TABLE ${broken}` });
      const repairOther = () => warehouse.repairRollups(everything);
      const late = createAttemptWarehouse(runBefore(statement, repairOther, error));
      const repair = late.repairRollups(everything);
      if (error === null) assert.deepEqual(await repair, [broken]);
      else await assert.rejects(repair, { message: error });
      assert.deepEqual(await counts(client), allOnce(1000));
    });
  }
}

/** Makes the insert fail in a rollup, after the table has stored the block. */
async function failInRollup(table: string, insert: () => Promise<void>): Promise<void> {
  const before = (await counts(client)).rows;
  await client.command({ query: `ALTER TABLE ${table} ADD CONSTRAINT fail CHECK attempts > 1000000` });
  await assert.rejects(insert(), /VIOLATED_CONSTRAINT/);
  await client.command({ query: `ALTER TABLE ${table} DROP CONSTRAINT fail` });
  assert.ok((await counts(client)).rows > before, 'the table has not stored the block');
}

/** A client that runs `work` before the first such statement. @param error thrown after that statement */
function runBefore(statement: string, work: () => Promise<unknown>, error: string | null): ClickHouseClient {
  let hasRun = false;
  const command: ClickHouseClient['command'] = async (params) => {
    if (hasRun || !params.query.startsWith(statement)) return client.command(params);
    hasRun = true;
    await work();
    const result = await client.command(params);
    if (error !== null) throw new Error(error);
    return result;
  };
  return new Proxy(client, {
    get: (target, name) => (name === 'command' ? command : Reflect.get(target, name)),
  });
}

const skillQuery = { tenant: 'default', to: 1e6, below: { ms: 0, seq: 0 }, atMost: 10 };

test('readSkillAttempts never counts an answer that it does not return', async () => {
  const row = attemptRow(1);
  let hasArrived = false;
  const query: ClickHouseClient['query'] = async (options) => {
    const result = await client.query(options);
    if (!hasArrived) await warehouse.insert([encodedRows([row])], newToken());
    hasArrived = true;
    return result;
  };
  const racing = new Proxy(client, {
    get: (target, name) => (name === 'query' ? query : Reflect.get(target, name)),
  });
  const { readSkillAttempts } = createStoredRows(racing, (_, read) => read());
  const read = () => readSkillAttempts({ ...skillQuery, userId: row.userId, skillId: row.skillId });
  const { rows, stored } = await read();
  assert.ok(hasArrived && stored <= rows.length, `${stored} counted, ${rows.length} returned`);
  const later = await read();
  assert.deepEqual([later.stored, later.rows.length], [1, 1]);
});

test('readSkillAttempts numbers answers only if all earlier ones are stored or archived', async () => {
  const skillOf: Readonly<Record<number, string>> = { 4: 'b', 5: 'a', 6: 'b', 7: 'a', 9: 'a' };
  const rows = Object.entries(skillOf).map(([seq, skillId], i) =>
    attemptRow(i, { userId: 'u', skillId, learnerSeq: Number(seq) }),
  );
  await warehouse.insert([encodedRows(rows)], newToken());
  const { readSkillAttempts } = createStoredRows(client, (_, read) => read());
  const readNumbers = async (): Promise<(number | null)[]> => {
    const found = await readSkillAttempts({ ...skillQuery, userId: 'u', skillId: 'a' });
    return found.rows.map(({ number }) => number);
  };
  assert.deepEqual(await readNumbers(), [null, null, null]);
  await client.command({ query: 'INSERT INTO archived_months (month, answers) VALUES (197001, 3)' });
  await client.command({
    query: `INSERT INTO archived_learner_skill (month, tenant, user_id, skill_id, day, attempts)
      VALUES (197001, 'default', 'u', 'a', '1970-01-01', 2), (197001, 'default', 'u', 'b', '1970-01-01', 1)`,
  });
  // Answer 8 of the learner is missing.
  assert.deepEqual(await readNumbers(), [null, 4, 3]);
});

test('readAnswerColumns numbers combinations of skills after the skills, in any order of the ids', async () => {
  const skillSets = [['b'], ['c', 'a'], ['a'], ['a', 'c'], ['c', 'b', 'a'], ['d', 'b']];
  const values = skillSets.map(([skill_id, ...further], i) => ({
    ...{ tenant: 'default', user_id: 'u', skill_id, learner_seq: i + 1 },
    further_skills: further.map((one) => ({ skill_id: one })),
  }));
  await storeAnswers(client, values);
  const { log, skillIds } = await readAnswerColumns(client, 'default', 1e6);
  assert.deepEqual([skillIds, log.skills], [['b', 'a', 'c', 'd'], 4]);
  assert.deepEqual(Array.from(log.skill), [0, 4, 1, 4, 5, 6]);
  const sets = listSkillSets(log).map((set) => set.map((skill) => skillIds[skill]).join(''));
  assert.deepEqual(sets, ['b', 'a', 'c', 'd', 'ac', 'abc', 'bd']);
});

test('readAnswerColumns returns the answers of a tenant by learner, or a sample of whole learners', async () => {
  const parameters = { pInit: 0.3, pLearn: 0.1, pGuess: 0.2, pSlip: 0.1, pForget: 0 };
  const [learners, each] = [100, 10];
  const skills = ['a', 'ü\u2028'.repeat(60)].map((skillId) => ({ skillId, learners, parameters }));
  await storeAnswers(client, madeAnswers('default', skills, each / 2, 9));
  await storeAnswers(client, madeAnswers('other', skills, each / 2, 10));
  const columns = await readAnswerColumns(client, 'default', 1e6);
  const { log, skillIds, itemIds, learnerHash, sampledOneIn } = columns;
  assert.deepEqual([log.skills, log.items, learnerHash.length], [2, itemIds.length - 1, learners]);
  assert.equal(sampledOneIn, 1);
  assert.deepEqual(new Set(skillIds), new Set(skills.map(({ skillId }) => skillId)));
  const expected = await selectRows<Record<string, string | number>>(
    client,
    `SELECT skill_id, item_id, is_correct, time_spent_seconds, toFloat64(occurred_at) AS at FROM attempts
     WHERE tenant = 'default' ORDER BY user_id, learner_seq`,
  );
  const read = Array.from(log.skill, (skill, i) => ({
    skill_id: skillIds[skill],
    item_id: itemIds[log.item[i] ?? 0],
    is_correct: log.correct[i],
    time_spent_seconds: log.seconds[i],
    at: (log.at[i] ?? 0) / 1000,
  }));
  assert.deepEqual(read, expected);
  assert.ok(log.difficulty.every(Number.isNaN));
  const starts = indices(learners + 1).map((learner) => each * learner);
  assert.deepEqual(Array.from(log.starts), starts);

  const sample = await readAnswerColumns(client, 'default', 250);
  const answers = sample.log.skill.length;
  assert.ok(sample.sampledOneIn >= 4 && answers <= 250 && answers >= 100, `${answers} answers`);
  assert.equal(answers, each * (sample.log.starts.length - 1));

  const empty = await readAnswerColumns(client, 'unknown', 1e6);
  assert.deepEqual([empty.log.skill.length, empty.log.starts], [0, new Uint32Array([0])]);
  assert.deepEqual([empty.skillIds, empty.learnerHash.length], [[], 0]);
});
