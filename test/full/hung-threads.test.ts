/** Worker threads that do not come back from a task: they are replaced, and nobody waits for them for ever. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { callerOf, event } from '../support/http/http.js';
import { endlessWord } from '../support/servers/endless.js';
import { dataFolder } from '../support/servers/service.js';
import { launchService } from '../support/servers/service-process.js';
import { waitFor } from '../support/wait.js';

const key = 'test-key';
/** A thread gets 15 s; the rest is for a machine that stands still. */
const limitMs = 120_000;

async function launch(t: TestContext) {
  const folder = await dataFolder();
  const service = await launchService(t, {
    DATA_DIR: folder.path,
    API_KEYS: `${key}:default:1000000000`,
    NODE_OPTIONS: `--import=${new URL('../support/servers/endless.js', import.meta.url).href}`,
  });
  t.after(folder.remove);
  return { service, caller: callerOf(service, key) };
}

test('threads that hang are replaced', { timeout: 600_000 }, async (t) => {
  const { service, caller } = await launch(t);
  const user = { user_id: 'in-between' };

  await t.test(
    'one that counts answers: 503 for its batch, and those that wait are counted once',
    async () => {
      assert.equal((await caller.track(event({ ...user, event_id: 'before' }))).status, 200);
      const hanging = caller.track(event({ user_id: endlessWord, event_id: 'hangs' }));
      const waiting = Array.from({ length: 20 }, (_, i) => event({ ...user, event_id: `waits-${i}` }));
      const answers = await Promise.all(waiting.map((one) => caller.track(one)));
      const { status, json, headers } = await hanging;
      assert.deepEqual([status, json.error.code], [503, 'UNAVAILABLE']);
      assert.match(headers['retry-after'] ?? '', /^\d+$/);
      for (const answer of answers) assert.ok([200, 409, 503].includes(answer.status), answer.text);
      for (const one of waiting) {
        await waitFor('an answer', async () => (await caller.track(one)).status === 200, limitMs);
      }
      const { json: mastery } = await caller.get('/api/v1/mastery/in-between');
      assert.equal(mastery.data.skills[0].total_attempts, 21);
    },
  );

  await t.test('one that computes forecasts: 503 for all that it had at hand', async () => {
    const hanging = caller.get(`/api/v1/predictions/${endlessWord}`);
    const beside = caller.get('/api/v1/predictions/in-between');
    assert.equal((await hanging).status, 503);
    assert.ok([200, 503].includes((await beside).status));
    const served = async () => (await caller.get('/api/v1/predictions/in-between')).status === 200;
    await waitFor('forecasts', served, limitMs);
  });

  await service.stop();
});
