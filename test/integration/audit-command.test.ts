/** `npm run audit`, the scheduled audits, and the figures of the last one. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { createOutbox } from '../../src/store/outbox/outbox.js';
import { defaultPartitions } from '../../src/store/redis/server/deployment.js';
import { runCommand } from '../support/commands/command.js';
import { callerOf, event } from '../support/http/http.js';
import { clickhouseOf, redisOf, startService } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const long = { timeout: 600_000 };

const service = await startService({ after }, { auditIntervalHours: 24 });

const audit = (...args: string[]) => runCommand('audit', { DATA_DIR: service.dataDir }, ...args);

test('an audit is made at the start, and every process tells what it found', long, async (t) => {
  const redis = await redisOf(t, service.redisUrl);
  await waitFor('an audit', async () => (await redis.exists('st:audit')) === 1);
  const { text } = await callerOf(service, service.key).raw({ method: 'GET', path: '/metrics' });
  assert.match(text, /^skilltrace_audit_mismatches\{kind="missing",process="all"\} 0$/m);
  assert.match(text, /^skilltrace_audit_last_time_seconds\{process="all"\} \d{10}/m);
  assert.match(text, /^skilltrace_audit_duration_seconds\{/m);
  assert.match(text, /^skilltrace_audit_not_compared\{process="all"\} 0$/m);
});

test(
  'the command tells what agrees, what does not and where to look, and ends with 0, 1 or 2',
  long,
  async (t) => {
    const clickhouse = clickhouseOf(t, service);
    const caller = callerOf(service, service.key);
    await caller.trackAll([1, 2, 3].map(() => event({ user_id: 'ada' })));
    const outbox = createOutbox(await redisOf(t, service.redisUrl), defaultPartitions);
    await waitFor('an empty outbox', async () => (await outbox.facts()).outboxLength === 0);
    const sound = await audit();
    assert.equal(sound.code, 0, sound.err);
    assert.match(sound.out, /accepted answers +3\n.*\n +stored in ClickHouse +3\n[\s\S]*all agrees\n$/);
    assert.equal(sound.err, '');
    await clickhouse.command({ query: 'DELETE FROM attempts WHERE learner_seq = 2' });
    const lost = await audit('--days', '2');
    assert.equal(lost.code, 1, lost.err);
    assert.match(lost.out, /default +\d{4}-\d\d-\d\d +missing, partition \d+ +3 +2\n/);
    const json = await audit('--json');
    assert.equal(json.code, 1);
    assert.match(json.out, /^\{.*\}\n$/);
    const { mismatches, not_compared: notCompared, accepted, stored } = JSON.parse(json.out);
    assert.deepEqual([accepted, stored, notCompared], [3, 2, []]);
    const [missing] = mismatches as { kind: string; look: string }[];
    const rows = await (await clickhouse.query({ query: missing?.look ?? '', format: 'JSONEachRow' })).json();
    assert.deepEqual(rows, [{ user_id: 'ada', newest: 3, stored: 2 }], 'the query leads to the gap');
  },
);

test('a server that is away, or an argument that is none, ends with 2 and one line', long, async () => {
  const settings = { DATA_DIR: service.dataDir, REDIS_URL: service.redisUrl };
  const away = { ...settings, CLICKHOUSE_URL: 'http://u:p@127.0.0.1:1/x' };
  const { code, out, err } = await runCommand('audit', away);
  assert.deepEqual([code, out], [2, ''], err);
  assert.match(
    err,
    /^ClickHouse does not answer: connection refused \(ECONNREFUSED\); run the command again when it does\n$/,
  );
  const wrong = await audit('--days', '0');
  assert.equal(wrong.code, 2);
  assert.match(wrong.err, /--days "0": an integer from 1 to 36500 is needed/);
});
