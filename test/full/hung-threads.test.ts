import assert from 'node:assert/strict';
import { test } from 'node:test';
import { callerOf, event } from '../support/http/http.js';
import { endlessWord } from '../support/servers/endless.js';
import { launchService } from '../support/servers/service-process.js';
import { dataFolder } from '../support/temp.js';
import { waitFor } from '../support/wait.js';

const key = 'test-key';

test('The service replaces worker threads that never return from a task', { timeout: 600_000 }, async (t) => {
  const folder = await dataFolder();
  const service = await launchService(t, {
    DATA_DIR: folder.path,
    API_KEYS: `${key}:default:1000000000`,
    NODE_OPTIONS: `--import=${new URL('../support/servers/endless.js', import.meta.url).href}`,
  });
  t.after(folder.remove);
  const caller = callerOf(service, key);

  await t.test('track-answer returns 503 for a hung batch and counts the queued answers once', async () => {
    const hanging = caller.track(event({ user_id: endlessWord, event_id: 'hangs' }));
    const queued = Array.from({ length: 20 }, (_, i) => event({ user_id: 'ada', event_id: `queued-${i}` }));
    const responses = await Promise.all(queued.map((one) => caller.track(one)));
    const { status, json, headers } = await hanging;
    assert.deepEqual([status, json.error.code], [503, 'UNAVAILABLE']);
    assert.match(headers['retry-after'] ?? '', /^\d+$/);
    for (const response of responses) assert.ok([200, 409, 503].includes(response.status), response.text);
    for (const one of queued)
      await waitFor('an accepted answer', async () => (await caller.track(one)).status === 200);
    const { json: mastery } = await caller.get('/api/v1/mastery/ada');
    assert.equal(mastery.data.skills[0].total_attempts, 20);
  });

  await t.test('predictions returns 503 for a hung forecast and recovers', async () => {
    const hanging = caller.get(`/api/v1/predictions/${endlessWord}`);
    const concurrent = caller.get('/api/v1/predictions/ada');
    assert.equal((await hanging).status, 503);
    assert.ok([200, 503].includes((await concurrent).status));
    const isServed = async () => (await caller.get('/api/v1/predictions/ada')).status === 200;
    await waitFor('a forecast', isServed);
  });

  await service.stop();
});
