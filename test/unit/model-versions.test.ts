/** Reading and activating versions of a model. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Call } from '../../src/contracts/access/call.js';
import { createLogger } from '../../src/logger.js';
import { activateVersion, readVersion, type VersionPorts } from '../../src/services/models/model-versions.js';

async function reasonOf(change: object): Promise<string> {
  const parts = {
    skill_id: 's',
    published: true,
    reason: '',
    old_log_loss: 0.5,
    new_log_loss: 0.5,
    ...change,
  };
  const changes = { listSkills: async () => [parts] };
  const call = { tenant: 'school', query: {} } as Call<object>;
  const page = JSON.parse(await readVersion({ changes } as unknown as VersionPorts, call, '1'));
  return page.skills[0].reason;
}

test('readVersion explains for each skill why its parameters were published', async () => {
  assert.equal(await reasonOf({}), 'held-out log loss is not higher');
  assert.equal(await reasonOf({ new_log_loss: 0.5005 }), 'held-out log loss is higher by at most 0.001');
  assert.match(await reasonOf({ new_log_loss: 0.56 }), /^too few answers to evaluate the skill/);
  assert.equal(await reasonOf({ old_log_loss: null }), 'no held-out answers to compare');
  assert.equal(await reasonOf({ published: false }), 'no answers on this skill in the fit');
  assert.equal(await reasonOf({ published: false, reason: 'set manually' }), 'set manually');
});

test('activateVersion does not wait for a ClickHouse that hangs', async (t) => {
  // Its timeout does not keep the process alive.
  const timer = setTimeout(() => undefined, 60_000);
  t.after(() => clearTimeout(timer));
  const parts = {
    models: { activate: async () => 'used' },
    history: { fetchLastChanges: () => new Promise(() => undefined) },
    logger: createLogger('silent', 'test'),
  };
  assert.equal(await activateVersion(parts as unknown as VersionPorts, 'school', 1, 2, 1), 'used');
});
