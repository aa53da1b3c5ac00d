/** Changes of a tenant's time zone during faults, corrections and other changes. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { sendSignal } from '../../src/embedded/supervisor.js';
import { computeSum, indices, splitIntoParts } from '../../src/lists.js';
import { createOutbox } from '../../src/store/outbox/outbox.js';
import { defaultPartitions } from '../../src/store/redis/server/deployment.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { erasureDone, takeBack } from '../support/builders/learner-data.js';
import { drawSkills, seeded } from '../support/builders/random.js';
import { auditsOf, namesOf } from '../support/commands/audits.js';
import { runCommand } from '../support/commands/command.js';
import { type Part, startServiceProcess, startSplit } from '../support/fault/deployment.js';
import type { Gateway } from '../support/fault/gateway.js';
import { compareDays, countMoved, drawTime, setTimeZone } from '../support/fault/time-zones.js';
import { callerOf, outcomeOf } from '../support/http/http.js';
import { clickhouseOf, redisOf } from '../support/servers/service.js';
import { askUntil, waitFor } from '../support/wait.js';

const scope = { after };
const deployment = await startSplit(scope);
const redis = (await redisOf(scope, deployment.redisUrl)) as Redis;
const clickhouse = clickhouseOf(scope, deployment);
const gateway = deployment.gateway as Gateway;
const dataDir = dirname(deployment.orders);
const { redisUrl, clickhouseUrl } = deployment;
const env = { DATA_DIR: dataDir, REDIS_URL: redisUrl, CLICKHOUSE_URL: clickhouseUrl };
const outbox = createOutbox(redis, defaultPartitions);
const audit = auditsOf(redis, clickhouse);
const limit = { timeout: 600_000 };
const random = seeded(20_261_103);

const [tenant = '', large = '', empty = ''] = deployment.tenants;
const caller = callerOf(deployment, tenant);
const zones = ['America/Los_Angeles', 'Asia/Kathmandu', 'Pacific/Apia', 'America/Havana', 'Europe/Berlin'];
let changes = 0;
const nextZone = (): string => zones[changes++ % zones.length] as string;

/** Accepted answers by tenant and learner. */
const accepted = new Map<string, Map<string, number>>(deployment.tenants.map((name) => [name, new Map()]));
const countsOf = (name: string): Map<string, number> => accepted.get(name) ?? assert.fail(name);
let events = 0;

/** One of seven answers is from the first hours of 1970, and one of three is late. */
function createAnswer(user_id: string, hasId = true): object {
  events += 1;
  const occurred_at = events % 7 === 0 ? `1970-01-01T0${events % 10}:00:00Z` : drawTime(random);
  return {
    ...{ user_id, ...drawSkills(['algebra', 'geometry', 'reading'], random), is_correct: random() < 0.6 },
    ...{ item_id: `item ${events % 50}`, event_id: hasId ? `event ${events}` : null },
    ...(events % 7 === 0 || events % 3 === 0 ? { occurred_at } : {}),
  };
}

/** Sends each batch until it is confirmed. A learner has about 20,000 recent event ids at most. */
async function answer(name: string, userIds: readonly string[], each: number): Promise<void> {
  const sent = userIds.flatMap((userId) => indices(each).map(() => createAnswer(userId, each < 1000)));
  const send = (batch: readonly object[]) => () =>
    callerOf(deployment, name)
      .trackAll(batch)
      .catch(() => null);
  for (const batch of splitIntoParts(sent, 1000))
    await askUntil('confirmed answers', send(batch), (response) => response?.status === 200);
  for (const userId of userIds) countsOf(name).set(userId, (countsOf(name).get(userId) ?? 0) + each);
}

const learners = indices(60).map((i) => `learner ${i}`);
const readChange = async (name = tenant) =>
  (await callerOf(deployment, name).get('/api/v1/settings')).json.data.time_zone_change;
const isDone = (name = tenant): Promise<boolean> =>
  readChange(name).then(
    (change) => change.status === 'done',
    () => false,
  );
const stored = () =>
  waitFor('an empty outbox', async () => (await outbox.facts().catch(() => null))?.outboxLength === 0);

/** All stores have the accepted answers on days of the zone. */
async function prove(zone: string, name = tenant): Promise<void> {
  await waitFor('the end of the change', () => isDone(name));
  await stored();
  const rows = await selectRows<{ userId: string; n: number }>(
    clickhouse,
    `SELECT user_id AS userId, toUInt32(count()) AS n FROM attempts WHERE tenant = '${name}' GROUP BY userId`,
  );
  assert.deepEqual(new Map(rows.map(({ userId, n }) => [userId, n])), new Map(countsOf(name)));
  const target = { ...deployment, tenants: [name] };
  assert.deepEqual(await compareDays(target, clickhouse, [zone], [...countsOf(name).keys()]), []);
  assert.deepEqual(await readView(name), [zone]);
  assert.deepEqual(namesOf((await audit()).mismatches), []);
  const verified = await runCommand('rebuild', env, '--verify', '--json');
  assert.deepEqual([verified.code, verified.err], [0, ''], verified.out);
}

const readView = async (name: string): Promise<string[]> =>
  (
    await selectRows<{ zone: string }>(
      clickhouse,
      `SELECT time_zone AS zone FROM time_zones WHERE tenant = '${name}'`,
    )
  ).map(({ zone }) => zone);

/** Changes the zone while answers arrive, and proves the result. @param interfere runs during the change */
async function changeDuring(interfere: (zone: string) => Promise<unknown>): Promise<void> {
  const zone = nextZone();
  await setTimeZone(deployment, tenant, zone);
  let stopped = false;
  const answerOn = async (): Promise<void> => {
    for (let i = 0; !stopped; i += 7) {
      await answer(tenant, [learners[i % learners.length] as string, `new ${i % 5}`], 2);
      await sleep(50);
    }
  };
  const answering = answerOn();
  try {
    await interfere(zone);
    await waitFor('the end of the change', isDone);
  } finally {
    stopped = true;
    await answering;
  }
  await prove(zone);
}

const moved = (count: number) =>
  waitFor(`${count} learners`, async () => (await readChange()).learners >= count);
const signal = (part: Part, name: NodeJS.Signals): void => {
  for (const pid of deployment.pids(part)) sendSignal(pid, name);
};

test('a change of learners with one answer, several skills, items and answers of 1970', limit, async () => {
  await answer(tenant, learners, 25);
  await answer(tenant, ['one answer'], 1);
  await changeDuring(async () => undefined);
});

test('another zone, and the first one again, while a change runs', limit, async () => {
  await changeDuring(async (zone) => {
    await moved(5);
    await setTimeZone(deployment, tenant, 'Asia/Tokyo');
    await sleep(3000);
    await setTimeZone(deployment, tenant, zone);
  });
});

test('twenty zones at the same time: stores agree on the last one', limit, async () => {
  const names = Intl.supportedValuesOf('timeZone')
    .filter((_, i) => i % 20 === 0)
    .slice(0, 20);
  await Promise.all(names.map((name) => setTimeZone(deployment, tenant, name)));
  await prove((await caller.get('/api/v1/settings')).json.data.time_zone);
});

test('kill -9 of the pipeline process during a change', limit, async () => {
  await changeDuring(async () => {
    await moved(1);
    signal('pipeline', 'SIGKILL');
    await sleep(4000);
    signal('pipeline', 'SIGKILL');
  });
});

test('two pipeline processes', limit, async (t) => {
  const settings = {
    ...env,
    CLICKHOUSE_URL: gateway.url,
    ROLE: 'pipeline',
    PORT: '',
    FIT_INTERVAL_HOURS: '0',
  };
  const second = await startServiceProcess(t, deployment.orders, settings);
  await changeDuring(() => sleep(2000));
  await second.stop();
});

test('ClickHouse is down while the zone is set: 503, and the zone is set by a repeat', limit, async () => {
  const before = (await caller.get('/api/v1/settings')).json.data.time_zone;
  const zone = nextZone();
  gateway.set('down');
  assert.equal(
    outcomeOf(await caller.send('PUT', '/api/v1/settings', { time_zone: zone })),
    '503 UNAVAILABLE',
  );
  assert.equal((await caller.get('/api/v1/settings')).json.data.time_zone, before);
  gateway.set('deaf', /tenant_settings/);
  assert.equal(
    outcomeOf(await caller.send('PUT', '/api/v1/settings', { time_zone: zone })),
    '503 UNAVAILABLE',
  );
  gateway.set('pass');
  await prove(zone);
});

test('ClickHouse is down during a change', limit, async () => {
  await changeDuring(async () => {
    await moved(1);
    gateway.set('down');
    await sleep(10_000);
    gateway.set('pass');
  });
});

test('Redis restarts during a change', limit, async () => {
  await changeDuring(async () => {
    await moved(1);
    signal('redis', 'SIGTERM');
  });
});

test('an erasure, a retraction and an import during a change', limit, async () => {
  const file = join(dataDir, 'answers.csv');
  const imported = ['learner 3', 'imported'].flatMap((userId) =>
    indices(200).map((i) => `${userId},algebra,${i % 2},item ${i},${drawTime(random)}\n`),
  );
  await writeFile(file, `user_id,skill_id,correct,item_id,ts\n${imported.join('')}`);
  await changeDuring(async () => {
    const erased = await caller.call({ method: 'DELETE', path: '/api/v1/learners/learner%201' });
    countsOf(tenant).delete('learner 1');
    const [row] = await selectRows<{ id: string }>(
      clickhouse,
      `SELECT event_id AS id FROM attempts WHERE tenant = '${tenant}' AND user_id = 'learner 2' ORDER BY learner_seq LIMIT 1 OFFSET 3`,
    );
    assert.equal((await takeBack(caller, 'learner 2', row?.id ?? '')).status, 200);
    countsOf(tenant).set('learner 2', (countsOf(tenant).get('learner 2') ?? 0) - 1);
    const { code, out, err } = await runCommand('import', env, file, '--tenant', tenant);
    assert.equal(code, 0, out + err);
    for (const userId of ['learner 3', 'imported'])
      countsOf(tenant).set(userId, (countsOf(tenant).get(userId) ?? 0) + 200);
    await erasureDone(caller, erased.json.data.status_url);
  });
});

test('a rebuild of an empty Redis continues a change', limit, async () => {
  await stored();
  const zone = nextZone();
  await setTimeZone(deployment, tenant, zone);
  await redis.flushall();
  const { code, out, err } = await runCommand('rebuild', env, '--json');
  assert.equal(code, 0, out + err);
  await prove(zone);
});

test('a tenant without learners', limit, async () => {
  await setTimeZone(deployment, empty, 'Asia/Kathmandu');
  await prove('Asia/Kathmandu', empty);
  assert.equal((await readChange(empty)).learners, 0);
});

test(
  'learners with 49,999 answers change, and those with more than 50,000 keep the previous zone',
  limit,
  async () => {
    await answer(large, ['most'], 49_999);
    await answer(large, ['too many'], 50_001);
    await answer(large, ['few'], 10);
    await stored();
    await setTimeZone(deployment, large, 'America/Havana');
    await waitFor('the end of the change', () => isDone(large));
    await stored();
    const days = await selectRows<{ userId: string; n: number; other: number }>(
      clickhouse,
      `SELECT user_id AS userId, toUInt32(count()) AS n,
      toUInt32(${countMoved('America/Havana')}) AS other
     FROM attempts WHERE tenant = '${large}' GROUP BY userId ORDER BY userId`,
    );
    assert.deepEqual(
      days.map(({ userId, n }) => [userId, n]),
      [
        ['few', 10],
        ['most', 49_999],
        ['too many', 50_001],
      ],
    );
    assert.deepEqual(
      days.map(({ other }) => other > 0),
      [false, false, true],
    );
    assert.equal(computeSum([...countsOf(large).values()]), 100_010);
    assert.deepEqual(namesOf((await audit()).mismatches), []);
  },
);
