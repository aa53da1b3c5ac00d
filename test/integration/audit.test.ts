/** `npm run audit` and the scheduled audit, on a service that answers, imports and erases at the same time. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import type { Mismatch } from '../../src/services/audit/audit-report.js';
import { createErasureStore } from '../../src/store/corrections/erasures.js';
import { createOutbox } from '../../src/store/outbox/outbox.js';
import { defaultPartitions } from '../../src/store/redis/server/deployment.js';
import { startCrowd } from '../support/builders/crowd.js';
import { auditsOf, namesOf } from '../support/commands/audits.js';
import { runCommand } from '../support/commands/command.js';
import { callerOf, event } from '../support/http/http.js';
import { clickhouseOf, keysOf, redisOf, startService } from '../support/servers/service.js';
import { tempDir } from '../support/temp.js';
import { waitFor } from '../support/wait.js';

const service = await startService({ after }, { auditIntervalHours: 24 });
const redis = await redisOf({ after }, service.redisUrl);
const clickhouse = clickhouseOf({ after }, service);
const caller = callerOf(service, service.key);
const audit = (...args: string[]) => runCommand('audit', { DATA_DIR: service.dataDir }, ...args);

test('The service audits at its start and reports the result at /metrics', async () => {
  await waitFor('an audit', async () => (await redis.exists('st:audit')) === 1);
  const { text } = await caller.raw({ method: 'GET', path: '/metrics' });
  assert.match(text, /^skilltrace_audit_mismatches\{kind="missing",process="all"\} 0$/m);
  assert.match(text, /^skilltrace_audit_last_time_seconds\{process="all"\} \d{10}/m);
  assert.match(text, /^skilltrace_audit_duration_seconds\{/m);
  assert.match(text, /^skilltrace_audit_not_compared\{process="all"\} 0$/m);
});

test('npm run audit reports agreement, differences and a query that finds them', async () => {
  await caller.trackAll([1, 2, 3].map(() => event({ user_id: 'ada' })));
  const outbox = createOutbox(redis, defaultPartitions);
  await waitFor('an empty outbox', async () => (await outbox.facts()).outboxLength === 0);
  const sound = await audit();
  assert.deepEqual([sound.code, sound.err], [0, '']);
  assert.match(sound.out, /accepted answers +3\n.*\n +stored in ClickHouse +3\n[\s\S]*no mismatch\n$/);
  await clickhouse.command({ query: 'DELETE FROM attempts WHERE learner_seq = 2' });
  const lost = await audit('--days', '2');
  assert.equal(lost.code, 1, lost.err);
  assert.match(lost.out, /default +\d{4}-\d\d-\d\d +missing, partition \d+ +3 +2\n/);
  const json = await audit('--json');
  assert.equal(json.code, 1);
  assert.match(json.out, /^\{.*\}\n$/);
  const { mismatches, not_compared, accepted, stored } = JSON.parse(json.out);
  assert.deepEqual([accepted, stored, not_compared], [3, 2, []]);
  const [missing] = mismatches as { look: string }[];
  const result = await clickhouse.query({ query: missing?.look ?? '', format: 'JSONEachRow' });
  assert.deepEqual(await result.json(), [{ user_id: 'ada', newest: 3, stored: 2 }]);
});

test('npm run audit ends with code 2 and one line if ClickHouse is down or an option is invalid', async () => {
  const settings = { DATA_DIR: service.dataDir, REDIS_URL: service.redisUrl };
  const down = await runCommand('audit', { ...settings, CLICKHOUSE_URL: 'http://u:p@127.0.0.1:1/x' });
  assert.deepEqual([down.code, down.out], [2, '']);
  const problem = 'ClickHouse is unavailable: connection refused (ECONNREFUSED)';
  assert.equal(down.err, `${problem}. Run the command again when ClickHouse responds\n`);
  const wrong = await audit('--days', '0');
  assert.equal(wrong.code, 2);
  assert.match(wrong.err, /--days "0" must be an integer from 1 to 36500/);
});

test('Audits find no difference while answers, batches, imports and erasures are in flight', async (t) => {
  const erased = Array.from({ length: 6 }, (_, i) => `erased-${i}`);
  const lines = Array.from({ length: 600 }, (_, i) => `i${i % 90},s${i % 7},${i % 4 === 0 ? 0 : 1},${i}`);
  const file = join(await tempDir(t), 'log.csv.gz');
  writeFileSync(file, gzipSync(`user_id,skill_id,correct,order\n${lines.join('\n')}\n`));
  const runAudit = auditsOf(redis, clickhouse);
  const { totals: before } = await runAudit();
  // The tenant `default` keeps the damage of an earlier test.
  const findOwn = (mismatches: readonly Mismatch[]) =>
    namesOf(mismatches.filter(({ tenant }) => tenant !== 'default'));
  const keys = await keysOf(t, service);
  const busy = callerOf(service, await keys.add({ tenant: 'busy' }));
  const crowd = startCrowd(busy, ['c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7', 'c8']);
  let isRunning = true;
  let batched = 0;
  const batches = (async () => {
    for (let n = 0; isRunning; n++) {
      const events = erased.map((user_id, i) =>
        event({ user_id, skill_id: `s${n % 2}`, is_correct: (n + i) % 3 > 0 }),
      );
      const { status, text } = await busy.trackAll(events);
      assert.equal(status, 200, text);
      batched += events.length;
      await sleep(50);
    }
  })();
  const { open } = createErasureStore(redis, defaultPartitions);
  const erasures = (async () => {
    for (const userId of erased) {
      const erase = () => busy.call({ method: 'DELETE', path: `/api/v1/learners/${userId}` });
      await waitFor('an answer to erase', async () => (await erase()).status === 202);
    }
    await waitFor('the erasures', async () => (await open()).length === 0);
  })();
  const importing = runCommand('import', { DATA_DIR: service.dataDir }, file, '--tenant', 'imported');
  let isOver = false;
  const work = Promise.all([importing, erasures]).finally(() => {
    isOver = true;
  });
  for (let audits = 0; !isOver || audits < 3; audits++)
    assert.deepEqual(findOwn((await runAudit()).mismatches), []);
  const [imported] = await work;
  assert.equal(imported.code, 0, imported.err);
  isRunning = false;
  await batches;
  await crowd.stop();
  const { totals, mismatches, notCompared } = await runAudit();
  const answers = crowd.confirmed.length + batched + lines.length;
  assert.equal(totals.accepted - before.accepted, answers);
  assert.equal(totals.stored + totals.waiting - before.stored, answers - totals.removed);
  assert.ok(totals.removed > 0, 'the erasures removed no answers');
  assert.deepEqual([findOwn(mismatches), notCompared], [[], []]);
});
