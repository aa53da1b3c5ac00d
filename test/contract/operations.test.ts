/** Metrics, the calls for operators and administrators, and where the development key works. */
import assert from 'node:assert/strict';
import { get } from 'node:http';
import { networkInterfaces } from 'node:os';
import { after, test } from 'node:test';
import { withMaintenance } from '../../src/app/operations/maintenance.js';
import { allScopes, hashKey } from '../../src/contracts/access/access.js';
import { createLogger } from '../../src/logger.js';
import { describeReport } from '../../src/services/audit/audit-report.js';
import { auditAndRecord } from '../../src/services/audit/run-audit.js';
import {
  acceptedCountsKey,
  acceptedField,
  journalKey,
  outboxKey,
  parkedKey,
} from '../../src/store/redis/keys.js';
import { version } from '../../src/version.js';
import { erasureDone } from '../support/builders/learner-data.js';
import { callerOf, event, exchangeRaw, outcomeOf, rawRequest } from '../support/http/http.js';
import { readPages } from '../support/http/read-pages.js';
import { clickhouseOf, keysOf, redisOf, startService } from '../support/servers/service.js';
import { valuesOf } from '../support/values-of.js';
import { askUntil, waitFor } from '../support/wait.js';

const addresses = Object.values(networkInterfaces()).flatMap((found) => found ?? []);
const hasIpv6 = addresses.some(({ address }) => address === '::1');
const service = await startService({ after }, { host: hasIpv6 ? '::' : '0.0.0.0' });
const keys = await keysOf({ after }, service);
const redis = await redisOf({ after }, service.redisUrl);
const caller = callerOf(service, service.key);
const anonymous = callerOf(service, null);
const operator = callerOf(service, await keys.add({ scopes: ['operator'] }));
const admin = callerOf(service, await keys.add({ tenant: 'school' }));
const developmentKey = 'a-development-key';

const saveDevelopmentKey = (key: string) =>
  keys.store.save({
    keyHash: hashKey(key),
    ...{ tenant: 'default', requestsPerMinute: null, scopes: allScopes, development: true },
  });
await saveDevelopmentKey(developmentKey);

const scrape = async (): Promise<string> => (await anonymous.raw({ method: 'GET', path: '/metrics' })).text;

/** Value of a metric, or undefined. */
function metric(text: string, name: string, ...labels: string[]): number | undefined {
  const start = `skilltrace_${name}{${[...labels, 'process="all"'].join()}} `;
  const line = text.split('\n').find((one) => one.startsWith(start));
  return line === undefined ? undefined : Number(line.slice(start.length));
}

test('/metrics counts answers by outcome and requests by route, without ids or keys in labels', async () => {
  const first = event({ user_id: 'a-learner', event_id: 'counted-once' });
  const statuses = [
    (await caller.track(first)).status,
    (await caller.track(first)).status,
    (await caller.track({ ...first, is_correct: false })).status,
    (await caller.trackAll([event(), event(), { user_id: 'x' }])).status,
    (await caller.get('/api/v1/mastery/a-learner')).status,
    (await caller.get('/no/such/a-learner')).status,
  ];
  assert.deepEqual(statuses, [200, 200, 422, 207, 200, 404]);
  const text = await scrape();
  const outcomes = ['counted', 'replayed', 'reused', 'invalid'];
  assert.deepEqual(
    outcomes.map((outcome) => metric(text, 'answers_total', `outcome="${outcome}"`)),
    [3, 1, 1, 1],
  );
  for (const [method, route, status, count] of [
    ['POST', 'track-answer', 200, 2],
    ['POST', 'track-answer', 422, 1],
    ['POST', 'track-answers', 207, 1],
    ['GET', 'mastery/:user_id', 200, 1],
  ] as const) {
    const labels = [`method="${method}"`, `route="/api/v1/${route}"`, `status="${status}"`];
    assert.equal(metric(text, 'http_requests_total', ...labels), count, `${labels}`);
  }
  assert.doesNotMatch(text, /a-learner|counted-once|test-key|default/);
});

test('/metrics reports request durations as a cumulative histogram', async () => {
  const text = await scrape();
  const labels = ['method="POST"', 'route="/api/v1/track-answer"'];
  const bucket = new RegExp(
    `duration_seconds_bucket\\{${labels},le="([^"]+)",process="all"\\} (\\d+)$`,
    'gm',
  );
  const buckets = [...text.matchAll(bucket)].map(([, bound, count]) => ({ bound, count: Number(count) }));
  assert.ok(buckets.length > 10);
  assert.deepEqual(
    buckets,
    buckets.toSorted((a, b) => a.count - b.count),
  );
  assert.deepEqual(buckets.at(-1), { bound: '+Inf', count: 3 });
  assert.equal(metric(text, 'http_request_duration_seconds_count', ...labels), 3);
  assert.ok((metric(text, 'http_request_duration_seconds_sum', ...labels) ?? 0) > 0);
});

test('/metrics reports the outbox, the servers and the process', async () => {
  const names = ['outbox_length', 'oldest_pending_seconds', 'lanes_waiting', 'redis_up', 'clickhouse_up'];
  const valuesIn = (text: string) => names.map((name) => metric(text, name)).join();
  const text = await askUntil('an empty outbox', scrape, (found) => valuesIn(found) === '0,0,0,1,1');
  for (const stream of ['attempts', 'journal'])
    assert.equal(metric(text, 'parked_rows', `of="${stream}"`), 0);
  assert.match(text, /^process_cpu_seconds_total\{process="all"\} (?!0$)/m);
  const { headers } = await anonymous.raw({ method: 'GET', path: '/metrics' });
  assert.equal(headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8');
});

test('/health shares its checks of Redis between concurrent requests', async () => {
  const countCommands = async (): Promise<number> =>
    Number(/total_commands_processed:(\d+)/.exec(await redis.info('stats'))?.[1]);
  const statusOfHealth = async (): Promise<number> => (await anonymous.get('/api/v1/health')).status;
  const start = await countCommands();
  for (let i = 0; i < 10; i++) assert.equal(await statusOfHealth(), 200);
  const sequential = (await countCommands()) - start;
  const statuses = await Promise.all(Array.from({ length: 200 }, statusOfHealth));
  assert.deepEqual([...new Set(statuses)], [200]);
  const concurrent = (await countCommands()) - start - sequential;
  // Includes the commands of background jobs.
  assert.ok(concurrent < 10 * sequential, `${sequential} for 10 requests, ${concurrent} for 200`);
});

const getParked = (query = '') => operator.get(`/api/v1/parked${query}`);
const redrive = async () => (await operator.send('POST', '/api/v1/parked/redrive')).json.data;

test('GET /parked lists a row that ClickHouse rejects, and redrive stores it', async (t) => {
  const clickhouse = clickhouseOf(t, service);
  await clickhouse.command({ query: "ALTER TABLE attempts ADD CONSTRAINT no CHECK user_id != 'bad'" });
  await admin.track({ user_id: 'bad', skill_id: 's', is_correct: true });
  const { json } = await askUntil('a parked row', getParked, ({ json }) => json.data.rows.length > 0);
  const [{ parked_at, id, ...row }, ...others] = json.data.rows;
  assert.deepEqual(others, []);
  assert.match(row.stream, /^st:\{p\d+\}:out$/);
  assert.deepEqual([row.tenant, row.reason], ['school', 'VIOLATED_CONSTRAINT']);
  assert.ok(Math.abs(Date.parse(parked_at) - Date.now()) < 600_000 && /^\d+-\d+$/.test(id));

  await clickhouse.command({ query: 'ALTER TABLE attempts DROP CONSTRAINT no' });
  assert.deepEqual(await redrive(), { moved: 1, stayed: 0, erased: 0 });
  assert.deepEqual((await getParked()).json.data.rows, []);
  await waitFor('the row', async () => {
    const query = "SELECT count() FROM attempts WHERE user_id = 'bad'";
    return (await (await clickhouse.query({ query, format: 'TabSeparated' })).text()) === '1\n';
  });
  assert.deepEqual(await redrive(), { moved: 0, stayed: 0, erased: 0 });
});

test('GET /parked pages through the rows of all streams', async () => {
  const streams = [outboxKey(2), journalKey(5), outboxKey(14)];
  for (const stream of streams)
    for (let i = 0; i < 3; i++) await redis.xadd(parkedKey(stream), '*', 'id', `${i}-1`, 'reason', 'TEST');
  const { rows, next_cursor } = (await getParked()).json.data;
  assert.deepEqual([rows.length, next_cursor, rows[0].tenant], [9, null, null]);
  assert.deepEqual((await readPages(getParked, 'rows', 2)).flat(), rows);
  assert.deepEqual(new Set(valuesOf(rows, 'stream')), new Set(streams));
  const outOfRange = Buffer.from(`parked:0 ${2n ** 64n}-0`).toString('base64url');
  assert.equal(outcomeOf(await getParked(`?cursor=${outOfRange}`)), '400 INVALID_REQUEST');
  for (const stream of streams) await redis.del(parkedKey(stream));
});

test("GET /erasures lists a tenant's erasures with their states, newest first", async () => {
  const list = (query = '') => admin.get(`/api/v1/erasures${query}`);
  const ids: string[] = [];
  for (let i = 0; i < 3; i++) {
    await admin.track({ user_id: `erased-${i}`, skill_id: 's', is_correct: true });
    const { json } = await admin.send('DELETE', `/api/v1/learners/erased-${i}`);
    ids.unshift(json.data.erasure_id);
    if (i === 0) await erasureDone(admin, json.data.status_url);
  }
  const { erasures } = (await list()).json.data;
  assert.deepEqual(valuesOf(erasures, 'erasure_id'), ids);
  assert.deepEqual([erasures[0].done_at, erasures[2].status], [null, 'done']);
  assert.ok(erasures[2].done_at >= erasures[2].requested_at);
  assert.deepEqual((await readPages(list, 'erasures', 2)).flat(), erasures);
  for (const id of ids) await erasureDone(admin, `/api/v1/erasures/${id}`);
  for (const { erasure_id, ...erasure } of (await list()).json.data.erasures) {
    const { requested_at, done_at } = (await admin.get(`/api/v1/erasures/${erasure_id}`)).json.data;
    assert.deepEqual(erasure, { status: 'done', requested_at, done_at });
  }
  const other = callerOf(service, await keys.add({ tenant: 'other' }));
  assert.deepEqual((await other.get('/api/v1/erasures')).json.data, { erasures: [], next_cursor: null });
});

test('GET /audits returns the report of the last audit', async () => {
  const getLast = async () => (await operator.get('/api/v1/audits')).json.data.last;
  assert.equal(await getLast(), null);
  const day = Math.floor(Date.now() / 86_400_000);
  await redis.hincrby(acceptedCountsKey(3), acceptedField('school', day), 1);
  const endpoints = { redisUrl: service.redisUrl, clickhouseUrl: service.clickhouseUrl, analystUrl: null };
  const { signal } = new AbortController();
  const report = await withMaintenance(
    { redis, partitions: 16 },
    endpoints,
    createLogger('silent', 'test'),
    (parts) => auditAndRecord(parts, { days: null, signal, pauseMs: 20, maxWaitMs: 5000 }),
  );
  const last = await getLast();
  const [{ tenant, partition, kind, expected, found }] = last.mismatches;
  assert.deepEqual([tenant, partition, kind, expected], ['school', 3, 'missing', found + 1]);
  assert.ok(last.accepted > last.stored);
  const added = { mismatches_by_kind: { missing: 1 }, not_compared_count: 0 };
  assert.deepEqual(last, { ...describeReport(report), ...added });
});

test('GET /deployment returns the versions of the service and its servers', async () => {
  const { data } = (await operator.get('/api/v1/deployment')).json;
  assert.deepEqual([data.version, data.partitions], [version, 16]);
  assert.equal(data.node_version, process.versions.node);
  for (const name of ['redis_version', 'clickhouse_version']) assert.match(data[name], /^\d+\.\d+/);
  assert.ok(data.schema_version >= 10);
  assert.equal(data.deployment_id, await redis.hget('st:meta', 'deployment_id'));
});

const withDevelopmentKey = (headers: Record<string, string | string[] | null>) => {
  const parts = { method: 'GET', path: '/api/v1/skills', headers: { Host: 'localhost', ...headers } };
  return exchangeRaw(service.port, rawRequest(developmentKey, parts));
};

test('The development key works from loopback addresses only, other keys from every address', async () => {
  const statusAt = (host: string, key: string): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const headers = { Host: 'localhost', 'X-API-Key': key };
      const request = get({ host, port: service.port, path: '/api/v1/skills', headers, agent: false });
      request.on('response', (response) => resolve(response.resume().statusCode)).on('error', reject);
    });
  for (const address of ['127.0.0.1', '127.0.0.2', ...(hasIpv6 ? ['::1'] : [])])
    assert.equal(await statusAt(address, developmentKey), 200, address);
  const external = addresses.filter(({ internal, scopeid }) => !internal && !scopeid);
  for (const { address } of external.filter(({ family }) => hasIpv6 || family === 'IPv4')) {
    assert.equal(await statusAt(address, developmentKey), 401, address);
    assert.equal(await statusAt(address, service.key), 200, address);
  }
});

test('The development key works only if Host names this machine, against DNS rebinding', async () => {
  for (const Host of ['localhost', `LOCALHOST.:${service.port}`, '[::1]:80'])
    assert.equal((await withDevelopmentKey({ Host })).status, 200, Host);
  for (const Host of ['evil.example', 'localhost.evil.example', `[fd00::1]:${service.port}`]) {
    const { status, headers, text } = await withDevelopmentKey({ Host });
    assert.deepEqual([status, headers['www-authenticate']], [401, 'ApiKey'], Host);
    assert.match(text, /"UNAUTHORIZED".*npm run keys -- create/);
  }
  assert.equal((await withDevelopmentKey({ Host: ['localhost', 'localhost'] })).status, 400);
});

test('The development key does not work through a proxy, other keys do', async () => {
  for (const name of ['Forwarded', 'Via', 'x-forwarded-host', 'X-FORWARDED-PROTO', 'X-Forwarded-Any'])
    for (const value of ['127.0.0.1', ''])
      assert.equal((await withDevelopmentKey({ [name]: value })).status, 401, `${name}: ${value}`);
  assert.equal((await withDevelopmentKey({ 'X-Forwarded': 'no proxy header' })).status, 200);
  const headers = { Host: 'evil.example', Via: '1.1 proxy', 'X-Forwarded-For': '192.0.2.1' };
  assert.equal((await caller.get('/api/v1/skills', headers)).status, 200);
});

test('A rejected development key gets 401 before path and body are checked, also on its first use', async () => {
  const external = { method: 'POST', headers: { Host: 'evil.example' }, body: '{"user_id":7}' };
  const development = callerOf(service, developmentKey);
  for (const path of ['/api/v1/nothing', '/api/v1/mastery/ada', '/api/v1/track-answer'])
    assert.equal((await development.raw({ ...external, path })).status, 401, path);
  const unused = 'another-development-key';
  await saveDevelopmentKey(unused);
  const first = callerOf(service, unused);
  const responses = await Promise.all([
    first.raw({ ...external, path: '/api/v1/track-answer' }),
    first.get('/api/v1/skills', { Host: 'localhost' }),
  ]);
  assert.deepEqual(valuesOf(responses, 'status'), [401, 200]);
});
