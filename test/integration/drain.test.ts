/** The drain: blocks of answers from the outbox to ClickHouse, and dead letters for rows that ClickHouse rejects. */
import assert from 'node:assert/strict';
import { after, beforeEach, test } from 'node:test';
import type { PinnedBlock } from '../../src/contracts/outbox/job-data.js';
import { computeSum, indices, splitIntoParts } from '../../src/lists.js';
import { createLogger } from '../../src/logger.js';
import type { DrainTask } from '../../src/services/outbox/complete-block.js';
import { createDrain } from '../../src/services/outbox/drain-outbox.js';
import { createParkedRows, redrive } from '../../src/store/corrections/redrive.js';
import { createOutbox, type Outbox } from '../../src/store/outbox/outbox.js';
import {
  dueErasuresKey,
  journalKey,
  maxParkedRows,
  metaKey,
  outboxKey,
  outboxRowCountKey,
  parkedKey,
} from '../../src/store/redis/keys.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import {
  type AttemptWarehouse,
  createAttemptWarehouse,
} from '../../src/warehouse/ingest/attempt-warehouse.js';
import { encodedRow, fillOutbox } from '../support/builders/attempt-rows.js';
import { runCommand } from '../support/commands/command.js';
import { allOnce, counts, emptyTables, fileDatabase, filledTables } from '../support/inspect/warehouse.js';
import { listed } from '../support/listed.js';
import { isLongForm } from '../support/runner/long-form.js';
import { startTestRedis } from '../support/servers/embedded.js';
import { redisOf } from '../support/servers/service.js';
import { valuesOf } from '../support/values-of.js';

const partitions = 2;
const all = [0, 1];

const { client, clickhouseUrl } = await fileDatabase({ after });
const redisUrl = await startTestRedis({ after });
const redis = await redisOf({ after }, redisUrl);
const outbox = createOutbox(redis, partitions);
const warehouse = createAttemptWarehouse(client);

beforeEach(async () => {
  await emptyTables(client);
  for (const key of all.map(outboxKey)) await redis.del(key, parkedKey(key));
  for (const partition of all) await redis.del(outboxRowCountKey(partition));
});

const query = (sql: string): Promise<unknown> => client.command({ query: sql });
const fill = (from: number, to: number): Promise<void> => fillOutbox(redis, partitions, from, to);
const crash = () => Promise.reject(new Error('crash'));

/** The drain of a process that has just started: it looks up all rows that are older than itself. */
const newDrain = (
  store: AttemptWarehouse = warehouse,
  box: Outbox = outbox,
  limits = { maxRows: 1000, maxBytes: 2 ** 30 },
) => createDrain({ outbox: box, warehouse: store, logger: createLogger('silent', 'test'), limits });

/** The drain of a running process, which relies on the token of a block. */
async function runningDrain(store?: AttemptWarehouse) {
  const drain = newDrain(store);
  await drain(newTask());
  return drain;
}

/** A task that remembers the block which the drain pinned last. */
function newTask(batch: PinnedBlock | null = null): DrainTask & { saved: PinnedBlock | null } {
  const task = {
    partitions: all,
    batch,
    saved: batch,
    save: async (pinned: PinnedBlock) => {
      task.saved = pinned;
    },
  };
  return task;
}

/** Drains a block and crashes before the trim. @returns the pinned block */
async function drainWithoutTrim(drain = newDrain(warehouse, { ...outbox, trim: crash })) {
  const task = newTask();
  await assert.rejects(drain(task), /crash/);
  assert.ok(task.saved);
  return task.saved;
}

async function assertDrained(stored: number, parked = 0): Promise<void> {
  const facts = await outbox.facts();
  assert.deepEqual([facts.outboxLength, facts.parked], [0, parked]);
  assert.deepEqual(await counts(client), allOnce(stored));
}

async function readParked(partition: number): Promise<Record<string, string>[]> {
  const entries = await redis.xrange(parkedKey(outboxKey(partition)), '-', '+');
  return entries.map(([, fields]) => Object.fromEntries(splitIntoParts(fields, 2)));
}

/** A row with a field that the table cannot parse. */
const brokenRow = (i: number): string => encodedRow(i).split('\t').with(5, 'perhaps').join('\t');
const rejectPartition1 = 'ALTER TABLE attempts ADD CONSTRAINT no CHECK partition_id != 1';
const acceptPartition1 = 'ALTER TABLE attempts DROP CONSTRAINT no';

test('The drain stores blocks of maxRows with a fair share of each partition and trims the outbox', async () => {
  await fill(0, 1500);
  const { outboxLength, oldestPendingSeconds, parked } = await outbox.facts();
  assert.deepEqual([outboxLength, parked], [1500, 0]);
  assert.ok(oldestPendingSeconds >= 0 && oldestPendingSeconds < 60);
  const drain = newDrain(warehouse, outbox, { maxRows: 600, maxBytes: 2 ** 30 });
  const task = newTask();
  assert.deepEqual(await drain(task), { rows: 600, present: 0 });
  assert.deepEqual(valuesOf(task.saved?.ranges ?? [], 'rows'), [300, 300]);
  assert.equal(task.saved?.verify, true, 'rows older than the process need a lookup');
  for (const rows of [600, 300, 0]) assert.deepEqual(await drain(newTask()), { rows, present: 0 });
  await fill(1500, 1600);
  const second = newTask();
  assert.deepEqual(await drain(second), { rows: 100, present: 0 });
  assert.equal(second.saved?.verify, false, 'rows younger than the process need no lookup');
  await assertDrained(1600);
});

test('The drain ends a block at maxBytes', async () => {
  await fillOutbox(redis, 1, 0, 1500);
  const drain = newDrain(warehouse, outbox, { maxRows: 1500, maxBytes: 50_000 });
  const { rows } = await drain(newTask());
  assert.ok(rows < 1500 && rows % 200 === 0, `${rows} rows`);
  while ((await drain(newTask())).rows > 0);
  await assertDrained(1500);
});

test('A retried drain stores the pinned block once after a crash before the trim', async () => {
  await fill(0, 300);
  const pinned = await drainWithoutTrim();
  await fill(300, 400);
  assert.equal((await newDrain()(newTask(pinned))).rows, 300, 'the retry excludes newer rows');
  assert.equal((await newDrain()(newTask(pinned))).rows, 0, 'the trimmed block is empty');
  await newDrain()(newTask());
  await assertDrained(400);
});

test('A retried drain completes a trim that reached only some partitions', async () => {
  await fill(0, 300);
  const trim: Outbox['trim'] = (ranges) => outbox.trim(ranges.slice(0, 1)).then(crash);
  const pinned = await drainWithoutTrim(newDrain(warehouse, { ...outbox, trim }));
  assert.deepEqual(await newDrain()(newTask(pinned)), { rows: 150, present: 150 });
  await assertDrained(300);
});

test('The drain stores rows once if Redis loses their trim', async () => {
  await fill(0, 600);
  const before = await Promise.all(all.map((partition) => redis.xrange(outboxKey(partition), '-', '+')));
  await newDrain()(newTask());
  for (const partition of all) {
    await redis.del(outboxKey(partition));
    for (const [id, fields] of before[partition] ?? []) await redis.xadd(outboxKey(partition), id, ...fields);
  }
  await fill(600, 700);
  assert.deepEqual(await newDrain()(newTask()), { rows: 700, present: 600 });
  assert.deepEqual(await counts(client), allOnce(700));
});

test('The drain keeps rows that only a rollup rejects, and a later block repairs the rollup', async () => {
  const drain = await runningDrain();
  await fill(0, 500);
  await query('ALTER TABLE daily_skill ADD CONSTRAINT fail CHECK attempts > 1000000');
  await assert.rejects(drain(newTask()), /fail/);
  await query('ALTER TABLE daily_skill DROP CONSTRAINT fail');
  const { outboxLength, parked } = await outbox.facts();
  assert.deepEqual([outboxLength, parked], [500, 0]);
  assert.notDeepEqual(await counts(client), allOnce(500));
  await fill(500, 800);
  assert.deepEqual(await newDrain()(newTask()), { rows: 800, present: 500 });
  await assertDrained(800);
});

test('The drain looks up the rows of a pinned block that is older than the token window', async () => {
  await fill(0, 200);
  const pinned = await drainWithoutTrim();
  const old = { ...pinned, verify: false, fixedAt: pinned.fixedAt - 86_400_000 };
  assert.deepEqual(await newDrain()(newTask(old)), { rows: 200, present: 200 });
  await assertDrained(200);
});

for (const table of filledTables) {
  test(`A retried drain restores rows of ${table} that ClickHouse lost although it has the token`, async () => {
    // A ClickHouse that is killed after it noted the token and before it moved the part into place.
    const drain = await runningDrain({
      ...warehouse,
      insert: async (...block) => {
        await warehouse.insert(...block);
        await query(`ALTER TABLE ${table} DELETE WHERE 1 SETTINGS mutations_sync = 2`);
        await crash();
      },
    });
    await fill(0, 400);
    const pinned = await drainWithoutTrim(drain);
    await newDrain()(newTask({ ...pinned, verify: false }));
    await assertDrained(400);
  });
}

test('The drain moves each unreadable entry to the dead letters with a reason and stores the others', async () => {
  const drain = await runningDrain();
  const row = encodedRow(1);
  const tooShort = row.split('\t').slice(0, 7).join('\t');
  const notUtf8 = Buffer.from([0xff, 0xfe, 0x09, 0x00]);
  await fill(0, 2);
  for (const broken of [brokenRow(1), tooShort, `${row}\tone more`, notUtf8, ''])
    await redis.xadd(outboxKey(1), '*', 'r', broken);
  await redis.xadd(outboxKey(1), '*', 'other', 'field');
  await fill(2, 4);
  await drain(newTask());
  await assertDrained(4, 6);
  const parked = await readParked(1);
  assert.ok(parked.every(({ id, reason }) => /^\d+-\d+$/.test(id ?? '') && /^[A-Z_]+$/.test(reason ?? '')));
  assert.equal(parked.find(({ r }) => r === brokenRow(1))?.reason, 'CANNOT_PARSE_INPUT_ASSERTION_FAILED');
  const withoutRow = parked.filter(({ reason }) => reason === 'NO_ROW');
  assert.deepEqual(withoutRow.map(({ r, other }) => r ?? other).sort(), ['', 'field']);
});

test('The drain parks only the broken rows of an entry, each under its own outbox id', async () => {
  const rows = indices(7).map((place) => ([1, 4].includes(place) ? brokenRow(place) : encodedRow(place)));
  rows[5] = '';
  const [ms, seq] = ((await redis.xadd(outboxKey(1), '*', 'r', rows.join('\n'))) ?? '').split('-');
  const idOf = (place: number): number => Number(seq) * 65_536 + place;
  assert.equal((await newDrain()(newTask())).rows, 4);
  const query = 'SELECT toFloat64(outbox_seq) AS seq, event_id FROM attempts ORDER BY outbox_seq';
  const expected = [0, 2, 3, 6].map((place) => ({ seq: idOf(place), event_id: `event-${place}` }));
  assert.deepEqual(await selectRows(client, query), expected);
  const parked = (await readParked(1)).map(({ id, r }) => `${id} ${r}`);
  const rejected = [1, 4, 5].map((place) => `${ms}-${idOf(place)} ${rows[place]}`);
  assert.deepEqual(parked, rejected);
  assert.equal((await outbox.facts()).outboxLength, 0);
});

test('The drain parks at most maxParkedRows rows of a partition and still serves the others', async () => {
  await query(rejectPartition1);
  await fill(0, 12);
  await newDrain()(newTask());
  await assertDrained(6, 6);
  assert.equal((await readParked(1))[0]?.reason, 'VIOLATED_CONSTRAINT');
  const pipeline = redis.pipeline();
  for (let i = 6; i < maxParkedRows - 3; i++) pipeline.xadd(parkedKey(outboxKey(1)), '*', 'r', 'x');
  await pipeline.exec();
  await fill(12, 24);
  const task = newTask();
  await assert.rejects(newDrain()(task), /the limit of parked rows of partition 1 is reached/);
  const { outboxLength, parked, fullyParked } = await outbox.facts();
  assert.deepEqual([outboxLength, parked, fullyParked], [2, maxParkedRows + 1, 1], 'an entry is not split');
  assert.deepEqual(await counts(client), allOnce(12));
  await query(acceptPartition1);
  await newDrain()(newTask(task.saved));
  await newDrain()(newTask());
  assert.deepEqual(await counts(client), allOnce(14), 'pending rows are stored after the repair');
});

const renameColumn = 'ALTER TABLE attempts RENAME COLUMN';

for (const [missing, breaking, repair, code] of [
  ['table', 'RENAME TABLE attempts TO elsewhere', 'RENAME TABLE elsewhere TO attempts', '60'],
  ['column', `${renameColumn} weight TO heaviness`, `${renameColumn} heaviness TO weight`, '16'],
] as const) {
  test(`The drain parks no rows while a ${missing} is missing`, async () => {
    const drain = await runningDrain();
    await fill(0, 50);
    await query(breaking);
    const task = newTask();
    await assert.rejects(drain(task), { code });
    assert.equal((await outbox.facts()).outboxLength, 50);
    await query(repair);
    await drain(newTask(task.saved));
    await assertDrained(50);
  });
}

test('The drain loses no row and stores none twice after a crash between two steps', async () => {
  // The long form crashes after each step, `npm test` after every fourth.
  let stored = 0;
  let parked = 0;
  for (let step = 0, hasCrashed = true; hasCrashed; step += isLongForm ? 1 : 4) {
    await fill(stored, stored + 2);
    await redis.xadd(outboxKey(0), '*', 'r', `broken\n${encodedRow(stored + 2)}\nbroken too`);
    await redis.xadd(outboxKey(0), '*', 'other', 'field');
    await fill(stored + 3, stored + 5);
    stored += 5;
    parked += 3;
    let steps = 0;
    const crashing =
      <Arguments extends unknown[], Value>(work: (...given: Arguments) => Promise<Value>) =>
      async (...given: Arguments): Promise<Value> => {
        const [done] = await Promise.allSettled([work(...given)]);
        if (steps++ === step) throw new Error('crash');
        if (done?.status !== 'fulfilled') throw done?.reason;
        return done.value;
      };
    const [trim, park, parkRows] = [outbox.trim, outbox.park, outbox.parkRows];
    const box = { ...outbox, trim: crashing(trim), park: crashing(park), parkRows: crashing(parkRows) };
    const task = newTask();
    const first = newDrain({ ...warehouse, insert: crashing(warehouse.insert) }, box);
    hasCrashed = await first({ ...task, save: crashing(task.save) }).then(
      () => false,
      (error: Error) => error.message === 'crash',
    );
    const second = newDrain();
    await second(newTask(task.saved));
    while ((await second(newTask())).rows > 0);
    await assertDrained(stored, parked);
  }
});

test('The drain isolates only rows that an earlier attempt did not store', async () => {
  const drain = await runningDrain();
  await fill(0, 20);
  const pinned = await drainWithoutTrim();
  // A restored Redis can have a row inside the pinned range that ClickHouse never received.
  const last = (await redis.xadd(outboxKey(0), '*', 'r', 'broken')) as string;
  const ranges = pinned.ranges.map((range) => (range.partition === 0 ? { ...range, to: last } : range));
  await drain(newTask({ ...pinned, ranges }));
  await assertDrained(20, 1);
});

test('redrive moves each dead letter back to the outbox once, also when two run at the same time', async () => {
  await redis.hset(metaKey, 'partitions', partitions);
  const drain = await runningDrain();
  await query(rejectPartition1);
  await fill(0, 10);
  await redis.xadd(outboxKey(1), '*', 'other', 'field');
  await drain(newTask());
  await assertDrained(5, 6);
  const parked = createParkedRows(redis);
  const streams = await parked.listStreams(1);
  const redriveAll = async (): Promise<number> => {
    const outcomes = await Promise.all(streams.map((stream) => redrive(redis, stream)));
    return computeSum(outcomes.map(({ moved }) => moved));
  };
  assert.equal(await redriveAll(), 6);
  await drain(newTask());
  await assertDrained(5, 6);
  await query(acceptPartition1);
  const [first, second] = await Promise.all([redriveAll(), redriveAll()]);
  assert.equal(first + second, 6);
  await drain(newTask());
  await assertDrained(10, 1);
  const [left, ...others] = await listed(parked.listEntries([outboxKey(1)]));
  assert.deepEqual([left?.stream, left?.tenant, left?.reason, others], [outboxKey(1), null, 'NO_ROW', []]);
});

test('redrive moves nothing while a correction of the partition is pending or due', async () => {
  const stream = outboxKey(0);
  await redis.xadd(parkedKey(stream), '*', 'id', '5-0', 'reason', 'CANNOT_PARSE_NUMBER', 'r', 'row');
  const addRows = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i++) await redis.xadd(stream, '*', 'r', 'other');
  };
  // More rows before it than a page of the outbox has.
  await addRows(450);
  const correction = (await redis.xadd(stream, '*', 'c', '{}')) as string;
  await addRows(10);
  assert.deepEqual(await redrive(redis, stream), { moved: 0, stayed: 1, erased: 0 });
  await redis.xdel(stream, correction);
  await redis.xadd(dueErasuresKey(0), correction, 'c', '{}');
  assert.deepEqual(await redrive(redis, stream), { moved: 0, stayed: 1, erased: 0 }, 'an erasure is due');
  await redis.xdel(dueErasuresKey(0), correction);
  assert.deepEqual(await redrive(redis, stream), { moved: 1, stayed: 0, erased: 0 });
  const [last] = await redis.xrevrange(stream, '+', '-', 'COUNT', 1);
  assert.deepEqual(last?.[1], ['r', 'row']);
});

test('npm run parked lists dead letters without learner ids and redrives them', async () => {
  await redis.hset(metaKey, 'partitions', partitions);
  const row = encodedRow(3);
  const park = (stream: string, ...fields: string[]) =>
    redis.xadd(parkedKey(stream), '*', 'id', '5-0', 'reason', 'CANNOT_PARSE_NUMBER', ...fields);
  await park(outboxKey(0), 'r', row);
  await park(journalKey(1), 'k', 'goal', 'r', '1\tschool\tlearner-3\t1200\t\\N');
  const run = (...args: string[]) =>
    runCommand('parked', { REDIS_URL: redisUrl, CLICKHOUSE_URL: clickhouseUrl }, ...args);
  const linesOf = (text: string): string[] => text.trim().split('\n');
  const { out } = await run('list', '--json');
  const entries = linesOf(out).map((line) => JSON.parse(line));
  const found = entries.map(({ stream, tenant, ...entry }) =>
    [stream, tenant, entry.id, entry.reason].join(' '),
  );
  const rejected = '5-0 CANNOT_PARSE_NUMBER';
  assert.deepEqual(found, [`${outboxKey(0)} default ${rejected}`, `${journalKey(1)} school ${rejected}`]);
  assert.doesNotMatch(out, /learner-3/);
  assert.equal(linesOf((await run('list', '--partition', '1')).out).length, 2);
  assert.equal((await run('redrive')).out, '2 rows requeued\n');
  const [[, pending] = [], ...others] = await redis.xrange(outboxKey(0), '-', '+');
  assert.deepEqual([pending, others], [['r', row], []]);
  assert.equal((await outbox.facts()).parked, 0);
  await redis.del(journalKey(1));
  assert.match((await run('drop')).err, /Pass list or redrive/);
});
