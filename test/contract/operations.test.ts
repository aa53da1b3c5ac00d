/** What operators and administrators look at and do: parked rows, erasures, the last audit, the deployment. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { withMaintenance } from '../../src/app/operations/maintenance.js';
import { createLogger } from '../../src/logger.js';
import { describeReport } from '../../src/services/audit/audit-report.js';
import { auditAndRecord } from '../../src/services/audit/run-audit.js';
import { loadLastAudit } from '../../src/store/audit/audit-store.js';
import {
  acceptedCountsKey,
  acceptedField,
  auditKey,
  journalKey,
  outboxKey,
  parkedKey,
} from '../../src/store/redis/keys.js';
import { version } from '../../src/version.js';
import { erasureDone } from '../support/builders/learner-data.js';
import { callerOf } from '../support/http/http.js';
import { clickhouseOf, keysOf, redisOf, startService } from '../support/servers/service.js';
import { askUntil, waitFor } from '../support/wait.js';

const service = await startService({ after });
const keys = await keysOf({ after }, service);
const redis = await redisOf({ after }, service.redisUrl);
const operator = callerOf(service, await keys.add({ scopes: ['operator'] }));
const admin = callerOf(service, await keys.add({ tenant: 'school' }));

const parkedAt = async (query = '') => (await operator.get(`/api/v1/parked${query}`)).json.data;
const redrive = async () => (await operator.call({ path: '/api/v1/parked/redrive' })).json.data;

/** All entries of a list in pages of two. */
async function paged(read: (query: string) => Promise<{ next_cursor: string | null }>, name: string) {
  const found: unknown[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page: { next_cursor: string | null; [name: string]: unknown } = await read(
      `?limit=2${cursor && `&cursor=${cursor}`}`,
    );
    found.push(...(page[name] as unknown[]));
    cursor = page.next_cursor;
  }
  return found;
}

test('a row that ClickHouse refuses is listed, and stored when it is put back', async (t) => {
  const clickhouse = clickhouseOf(t, service);
  await clickhouse.command({ query: "ALTER TABLE attempts ADD CONSTRAINT no CHECK user_id != 'refused'" });
  await admin.track({ user_id: 'refused', skill_id: 's', is_correct: true });
  const { rows } = await askUntil('a parked row', parkedAt, (data) => data.rows.length > 0);
  const [{ parked_at, id, ...row }] = rows;
  assert.equal(rows.length, 1);
  assert.match(row.stream, /^st:\{p\d+\}:out$/);
  assert.deepEqual([row.tenant, row.reason], ['school', 'VIOLATED_CONSTRAINT']);
  assert.ok(Math.abs(Date.parse(parked_at) - Date.now()) < 600_000 && /^\d+-\d+$/.test(id));

  await clickhouse.command({ query: 'ALTER TABLE attempts DROP CONSTRAINT no' });
  assert.deepEqual(await redrive(), { moved: 1, stayed: 0, erased: 0 });
  assert.deepEqual((await parkedAt()).rows, []);
  await waitFor('the row', async () => {
    const query = "SELECT count() AS n FROM attempts WHERE user_id = 'refused'";
    const [found] = await (await clickhouse.query({ query, format: 'JSONEachRow' })).json<{ n: string }>();
    return Number(found?.n) === 1;
  });
  assert.deepEqual(await redrive(), { moved: 0, stayed: 0, erased: 0 });
});

test('pages of parked rows have each once, over the streams', async () => {
  const streams = [outboxKey(2), journalKey(5), outboxKey(14)];
  for (const stream of streams)
    for (let i = 0; i < 3; i++) await redis.xadd(parkedKey(stream), '*', 'id', `${i}-1`, 'reason', 'TEST');
  const { rows, next_cursor } = await parkedAt();
  assert.deepEqual([rows.length, next_cursor], [9, null]);
  assert.deepEqual(await paged(parkedAt, 'rows'), rows);
  assert.deepEqual([...new Set(rows.map(({ stream }: { stream: string }) => stream))].sort(), streams.sort());
  assert.equal(rows[0].tenant, null);
  const beyond = Buffer.from(`parked:0 ${2n ** 64n}-0`).toString('base64url');
  for (const cursor of ['x', beyond])
    assert.equal((await operator.get(`/api/v1/parked?cursor=${cursor}`)).json.error.code, 'INVALID_REQUEST');
  for (const stream of streams) await redis.del(parkedKey(stream));
});

test("a tenant's erasures are listed, newest first, each with its state", async () => {
  const begun: string[] = [];
  const listed = async (query = '') => (await admin.get(`/api/v1/erasures${query}`)).json.data;
  for (let i = 0; i < 5; i++) {
    await admin.track({ user_id: `gone-${i}`, skill_id: 's', is_correct: true });
    const { json } = await admin.call({ method: 'DELETE', path: `/api/v1/learners/gone-${i}` });
    begun.unshift(json.data.erasure_id);
    // One that is open, and one that is done.
    if (i === 0) await erasureDone(admin, json.data.status_url);
  }
  const idsOf = (page: { erasures: readonly { erasure_id: string }[] }) =>
    page.erasures.map(({ erasure_id }) => erasure_id);
  const first = await listed();
  assert.deepEqual(idsOf(first), begun);
  assert.equal(first.erasures[4].status, 'done');
  assert.ok(first.erasures[4].done_at >= first.erasures[4].requested_at);
  assert.equal(first.erasures[0].done_at, null);
  assert.deepEqual(
    (await paged(listed, 'erasures')).map((one) => (one as { erasure_id: string }).erasure_id),
    begun,
  );
  for (const id of begun) await erasureDone(admin, `/api/v1/erasures/${id}`);
  const last = await listed();
  assert.deepEqual(idsOf(last), begun);
  for (const { erasure_id, ...one } of last.erasures) {
    const { data } = (await admin.get(`/api/v1/erasures/${erasure_id}`)).json;
    assert.deepEqual(one, { status: 'done', requested_at: data.requested_at, done_at: data.done_at });
  }
  const other = callerOf(service, await keys.add({ tenant: 'other' }));
  assert.deepEqual((await other.get('/api/v1/erasures')).json.data, { erasures: [], next_cursor: null });
  assert.equal((await admin.get('/api/v1/erasures?cursor=x')).json.error.code, 'INVALID_REQUEST');
});

test('the last audit is told as it was reported', async () => {
  const last = async () => (await operator.get('/api/v1/audits')).json.data.last;
  assert.equal(await last(), null);
  const day = Math.floor(Date.now() / 86_400_000);
  await redis.hincrby(acceptedCountsKey(3), acceptedField('school', day), 1);
  const logger = createLogger('silent', 'test');
  const report = await withMaintenance(
    { redis, partitions: 16 },
    { redisUrl: service.redisUrl, clickhouseUrl: service.clickhouseUrl, analystUrl: null },
    logger,
    (parts) =>
      auditAndRecord(parts, {
        days: null,
        signal: new AbortController().signal,
        pauseMs: 20,
        maxWaitMs: 5000,
      }),
  );
  assert.deepEqual(await last(), {
    ...describeReport(report),
    mismatches_by_kind: { missing: 1 },
    not_compared_count: 0,
  });
  const { mismatches, accepted, stored } = await last();
  assert.deepEqual(
    [mismatches[0].tenant, mismatches[0].partition, mismatches[0].kind],
    ['school', 3, 'missing'],
  );
  assert.ok(accepted > stored && mismatches[0].expected === mismatches[0].found + 1);
  const { report: _, ...earlier } = (await loadLastAudit(redis)) ?? {};
  await redis.set(auditKey, JSON.stringify(earlier));
  assert.equal(await last(), null, 'an earlier version kept no report');
});

test('the deployment and the versions of its parts', async () => {
  const { data } = (await operator.get('/api/v1/deployment')).json;
  assert.deepEqual([data.version, data.partitions], [version, 16]);
  assert.equal(data.node_version, process.versions.node);
  assert.match(data.redis_version, /^\d+\.\d+/);
  assert.match(data.clickhouse_version, /^\d+\.\d+/);
  assert.ok(data.schema_version >= 10);
  assert.equal(data.deployment_id, await redis.hget('st:meta', 'deployment_id'));
});
