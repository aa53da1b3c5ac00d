import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ClickHouseClient } from '@clickhouse/client';
import { connectWarehouse, ensureDatabase, selectRows } from '../../src/warehouse/clickhouse/client.js';
import { createAttemptWarehouse } from '../../src/warehouse/ingest/attempt-warehouse.js';
import { createStoredRows } from '../../src/warehouse/reads/stored-rows.js';
import { createSchema } from '../../src/warehouse/schema/create-schema.js';
import { rollups } from '../../src/warehouse/schema/rollups.js';
import { attemptRow, encodedRows } from '../support/builders/attempt-rows.js';
import { allOnce, counts, filledTables, testDatabase } from '../support/inspect/warehouse.js';
import { freshDatabase } from '../support/servers/embedded.js';

const rowsFrom = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, i) => attemptRow(from + i));
const everything = [{ partition: 0, from: '0-0', to: '9-0', rows: 0 }];

const rollupNames = rollups.map(({ table }) => table.name);

test('the warehouse', { timeout: 600_000 }, async (t) => {
  const { clickhouseUrl } = await freshDatabase();

  await t.test('the schema is made once by several processes at once', async (t) => {
    const url = new URL(clickhouseUrl);
    url.pathname = '/made_at_start';
    const clients = [1, 2, 3, 4].map(() => connectWarehouse(url.href));
    t.after(() => Promise.all(clients.map((client) => client.close())));
    await Promise.all(clients.map(() => ensureDatabase(url.href)));
    await Promise.all(clients.map((client) => createSchema(client)));
    const [client] = clients as [ClickHouseClient];
    assert.equal(await createSchema(client), false);
    const [bare] = await selectRows<{ n: number }>(
      client,
      `SELECT toUInt32(count()) AS n FROM system.columns
       WHERE database = currentDatabase() AND table NOT LIKE '%_mv' AND table NOT IN ('learner_skill_daily', 'learner_skill_total', 'skill_daily', 'skill_catalogue') AND comment = ''`,
    );
    assert.equal(bare?.n, 0, 'every column says what it means');
    await client.command({ query: "INSERT INTO schema_migrations (version, name) VALUES (11, 'later')" });
    await assert.rejects(createSchema(client), {
      name: 'StartError',
      message:
        'ClickHouse has schema version 11, this version of the service knows 10: install the newer one',
    });
  });

  await t.test('a row arrives as it was encoded', async (t) => {
    const { client } = await testDatabase(t, clickhouseUrl);
    const row = attemptRow(1, {
      userId: 'a\\b "ü" 🎓\\N',
      itemId: null,
      timeSpentSeconds: 12.5,
      questionDifficulty: null,
      masteryAfter: 0.1 + 0.2,
      occurredAt: 1763705000123,
    });
    await createAttemptWarehouse(client).insert([encodedRows([row])], 'one');
    const [stored] = await selectRows(
      client,
      `SELECT user_id, item_id, time_spent_seconds, question_difficulty, mastery_after, confidence_score,
         toString(occurred_at) AS occurred_at FROM attempts`,
    );
    assert.deepEqual(stored, {
      user_id: row.userId,
      item_id: '',
      time_spent_seconds: 12.5,
      question_difficulty: null,
      mastery_after: 0.1 + 0.2,
      confidence_score: null,
      occurred_at: '2025-11-21 06:03:20.123',
    });
  });

  await t.test('of a skill no answer is counted that is not shown, whenever it arrives', async (t) => {
    const { client } = await testDatabase(t, clickhouseUrl);
    let arrived = false;
    const query: ClickHouseClient['query'] = async (options) => {
      const found = await client.query(options);
      if (!arrived) await createAttemptWarehouse(client).insert([encodedRows([row])], 'in between');
      arrived = true;
      return found;
    };
    const row = attemptRow(1);
    const { userId, skillId } = row;
    const meeting = new Proxy(client, {
      get: (of, name) => (name === 'query' ? query : Reflect.get(of, name)),
    });
    const rowsOf = createStoredRows(meeting, (_, read) => read());
    const ask = () =>
      rowsOf.readSkillAttempts({
        tenant: 'default',
        userId,
        skillId,
        to: 1e6,
        below: { ms: 0, seq: 0 },
        atMost: 10,
      });
    const { rows, stored } = await ask();
    assert.ok(arrived && stored <= rows.length, `${stored} counted, ${rows.length} shown`);
    const later = await ask();
    assert.deepEqual([later.stored, later.rows.length], [1, 1]);
  });

  await t.test('numbers answers on a skill while all earlier answers are stored or archived', async (t) => {
    const { client } = await testDatabase(t, clickhouseUrl);
    const skillOf: Readonly<Record<number, string>> = { 4: 'b', 5: 'a', 6: 'b', 7: 'a', 9: 'a' };
    const rows = Object.entries(skillOf).map(([seq, skillId], i) =>
      attemptRow(i, { userId: 'u', skillId, learnerSeq: Number(seq) }),
    );
    await createAttemptWarehouse(client).insert([encodedRows(rows)], 'numbers');
    const numbers = async (): Promise<(number | null)[]> => {
      const range = { userId: 'u', skillId: 'a', to: 1e6, below: { ms: 0, seq: 0 }, atMost: 10 };
      const found = await createStoredRows(client, (_, read) => read()).readSkillAttempts({
        tenant: 'default',
        ...range,
      });
      return found.rows.map(({ number }) => number);
    };
    assert.deepEqual(await numbers(), [null, null, null]);
    await client.command({ query: 'INSERT INTO archived_months (month, answers) VALUES (197001, 3)' });
    const query = `INSERT INTO archived_learner_skill (month, tenant, user_id, skill_id, day, attempts)
      VALUES (197001, 'default', 'u', 'a', '1970-01-01', 2), (197001, 'default', 'u', 'b', '1970-01-01', 1)`;
    await client.command({ query });
    // Answer 8 of the learner is missing.
    assert.deepEqual(await numbers(), [null, 4, 3]);
  });

  await t.test('times arrive to the millisecond from 1970 on', async (t) => {
    const { client } = await testDatabase(t, clickhouseUrl);
    const times = [
      0,
      1,
      5_123,
      999_999,
      1_000_000,
      1_234_567,
      9_999_999,
      86_400_001,
      19_800_101_000,
      4e12 + 1,
    ];
    const rows = times.map((occurredAt, i) => attemptRow(i, { occurredAt, userId: 'u', learnerSeq: i + 1 }));
    await createAttemptWarehouse(client).insert([encodedRows(rows)], 'times');
    const stored = await selectRows<{ ms: string }>(
      client,
      'SELECT toString(toUnixTimestamp64Milli(occurred_at)) AS ms FROM attempts ORDER BY learner_seq',
    );
    assert.deepEqual(
      stored.map(({ ms }) => Number(ms)),
      times,
    );
  });

  await t.test(
    'one insert of 100,000 different keys is one block, and counts once when repeated',
    async (t) => {
      const { url } = await testDatabase(t, clickhouseUrl);
      // Each insert takes seconds, and on a busy machine more than a statement gets.
      const client = connectWarehouse(url, null, 300_000);
      t.after(() => client.close());
      const warehouse = createAttemptWarehouse(client);
      for (const table of filledTables) {
        await client.command({ query: `SYSTEM STOP MERGES ${table}` });
      }
      const rows = Array.from({ length: 100_000 }, (_, i) =>
        attemptRow(i, { userId: `u${i}`, skillId: `s${i % 70_000}` }),
      );
      const chunks = Array.from({ length: 100 }, (_, i) =>
        encodedRows(rows.slice(i * 1000, (i + 1) * 1000), i * 1000),
      );
      for (let again = 0; again < 3; again++) await warehouse.insert(chunks, 'same');
      assert.deepEqual(await counts(client), allOnce(100_000));
      const parts = await selectRows<{ table: string; parts: number }>(
        client,
        `SELECT table, toUInt32(count()) AS parts FROM system.parts
       WHERE database = currentDatabase() AND active AND table != 'schema_migrations' GROUP BY table`,
      );
      assert.deepEqual(new Set(parts.map(({ parts: n }) => n)), new Set([1]), JSON.stringify(parts));
      await warehouse.insert([encodedRows(rowsFrom(0, 10), 100_000)], 'other');
      assert.deepEqual(await counts(client), allOnce(100_010));
    },
  );

  await t.test("no caller's dates are too many for one block", async (t) => {
    const { client } = await testDatabase(t, clickhouseUrl);
    const months = Array.from({ length: 600 }, (_, i) => attemptRow(i, { occurredAt: Date.UTC(1970, i, 2) }));
    await createAttemptWarehouse(client).insert([encodedRows(months)], 'months');
    assert.deepEqual(await counts(client), allOnce(600));
  });

  for (const broken of rollupNames) {
    await t.test(`an insert that ended before ${broken} had it is completed by its retry`, async (t) => {
      const { client } = await testDatabase(t, clickhouseUrl);
      const warehouse = createAttemptWarehouse(client);
      const block = [encodedRows(rowsFrom(0, 1000))];
      await failOnce(client, broken, () => warehouse.insert(block, 'cut'));
      await warehouse.insert(block, 'cut');
      assert.deepEqual(await counts(client), allOnce(1000));
    });

    await t.test(`without the token, ${broken} is computed again, also twice`, async (t) => {
      const { client } = await testDatabase(t, clickhouseUrl);
      const warehouse = createAttemptWarehouse(client);
      await warehouse.insert([encodedRows(rowsFrom(0, 1000))], 'whole');
      await failOnce(client, broken, () =>
        warehouse.insert([encodedRows(rowsFrom(1000, 1500), 1000)], 'cut'),
      );
      assert.deepEqual(
        await warehouse.repairRollups(everything).then((names) => names.includes(broken)),
        true,
      );
      assert.deepEqual(await counts(client), allOnce(1500));
      assert.deepEqual(await warehouse.repairRollups(everything), [], 'nothing is left to repair');
      await client.command({ query: `TRUNCATE TABLE ${broken}` });
      assert.deepEqual(await warehouse.repairRollups(everything), [broken]);
      assert.deepEqual(await counts(client), allOnce(1500));
      const figures = await selectRows<Record<string, number>>(
        client,
        `SELECT a.correct AS correct, a.seconds AS seconds, b.correct AS rolled_correct, b.seconds AS rolled_seconds FROM
          (SELECT toUInt32(sum(is_correct)) AS correct, sum(time_spent_seconds) AS seconds FROM attempts) AS a,
          (SELECT toUInt32(sum(correct)) AS correct, sum(timed_seconds) AS seconds FROM skill_daily) AS b`,
      );
      assert.equal(figures[0]?.correct, figures[0]?.rolled_correct);
      assert.equal(figures[0]?.seconds, figures[0]?.rolled_seconds);
    });

    await t.test(`a repair of ${broken} that slept while another one was made doubles nothing`, async (t) => {
      const { client } = await testDatabase(t, clickhouseUrl);
      const warehouse = createAttemptWarehouse(client);
      await warehouse.insert([encodedRows(rowsFrom(0, 1000))], 'whole');
      await client.command({ query: `TRUNCATE TABLE ${broken}` });
      const sleeper = createAttemptWarehouse(
        sleepingBefore(client, `INSERT INTO ${broken}`, () => warehouse.repairRollups(everything)),
      );
      assert.deepEqual(await sleeper.repairRollups(everything), [broken]);
      assert.deepEqual(await counts(client), allOnce(1000));
    });

    for (const statement of ['DELETE FROM', 'INSERT INTO']) {
      await t.test(
        `${statement} ${broken} of a dead process does nothing when another one has repaired`,
        async (t) => {
          const { client } = await testDatabase(t, clickhouseUrl);
          const warehouse = createAttemptWarehouse(client);
          await warehouse.insert([encodedRows(rowsFrom(0, 1000))], 'whole');
          await client.command({ query: `TRUNCATE TABLE ${broken}` });
          const meanwhile = () => warehouse.repairRollups(everything);
          const dead = createAttemptWarehouse(
            sleepingBefore(client, `${statement} ${broken}`, meanwhile, 'it is dead'),
          );
          await assert.rejects(dead.repairRollups(everything), /it is dead/);
          assert.deepEqual(await counts(client), allOnce(1000));
        },
      );
    }
  }
});

/** The client, but for the first such statement: before that something else is done. @param end what it fails with then */
function sleepingBefore(
  client: ClickHouseClient,
  statement: string,
  meanwhile: () => Promise<unknown>,
  end?: string,
): ClickHouseClient {
  let slept = false;
  return new Proxy(client, {
    get: (target, name) =>
      name !== 'command'
        ? Reflect.get(target, name)
        : async (params: Parameters<ClickHouseClient['command']>[0]) => {
            if (slept || !params.query.startsWith(statement)) return target.command(params);
            slept = true;
            await meanwhile();
            const done = await target.command(params);
            if (end !== undefined) throw new Error(end);
            return done;
          },
  });
}

/** Lets the insert fail in the rollup, after the table has stored the block. */
async function failOnce(client: ClickHouseClient, table: string, insert: () => Promise<void>): Promise<void> {
  await client.command({ query: `ALTER TABLE ${table} ADD CONSTRAINT fail CHECK attempts > 1000000` });
  await assert.rejects(insert(), /VIOLATED_CONSTRAINT/);
  await client.command({ query: `ALTER TABLE ${table} DROP CONSTRAINT fail` });
  const [row] = await selectRows<{ n: number }>(client, 'SELECT toUInt32(count()) AS n FROM attempts');
  assert.ok((row?.n ?? 0) > 0, 'the table has the block that the rollup refused');
}
