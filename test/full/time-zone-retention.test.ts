/** Retention that archives answers while a change of the time zone rewrites them. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { dayMs } from '../../src/domain/base/common.js';
import { oldAnswers, startOf, store } from '../support/builders/old-answers.js';
import { auditsOf, namesOf } from '../support/commands/audits.js';
import { runCommand } from '../support/commands/command.js';
import { callerOf } from '../support/http/http.js';
import { startOnBareRedis } from '../support/servers/service.js';
import { askUntil, waitUntilStored } from '../support/wait.js';

const { service, clickhouse, redis, env } = await startOnBareRedis({ after });
const caller = callerOf(service, service.key);
const run = async (name: string, ...args: string[]): Promise<string> => {
  const { code, out, err } = await runCommand(name, env, ...args);
  assert.deepEqual([code, err], [0, ''], out);
  return out;
};

test('retention and a change of the time zone at the same time leave equal stores', {
  timeout: 600_000,
}, async () => {
  const audit = auditsOf(redis, clickhouse);
  const rows = oldAnswers([1, 2, 3, 4, 5, 6]);
  await store(clickhouse, rows);
  await redis.flushall();
  await run('rebuild', '--json');
  await askUntil(
    'the service',
    () => caller.get('/api/v1/settings'),
    ({ status }) => status === 200,
  );
  const zones = ['America/Los_Angeles', 'Asia/Tokyo', 'America/Havana', 'Asia/Kathmandu'];
  for (const [i, time_zone] of zones.entries()) {
    assert.equal((await caller.send('PUT', '/api/v1/settings', { time_zone })).status, 202);
    const changed = askUntil(
      'the change',
      () => caller.get('/api/v1/settings'),
      ({ json }) => json.data.time_zone_change.status === 'done',
    );
    await askUntil(
      'moved learners',
      () => caller.get('/api/v1/settings'),
      ({ json }) => json.data.time_zone_change.learners > 0,
    );
    const days = Math.floor((Date.now() - startOf(i + 2)) / dayMs) - 2;
    assert.match(await run('retain', '--days', `${days}`), /deleted/);
    await changed;
    await waitUntilStored(caller);
    assert.deepEqual(namesOf((await audit()).mismatches), []);
    await run('rebuild', '--verify', '--json');
  }
});
