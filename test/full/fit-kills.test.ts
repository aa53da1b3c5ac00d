import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createModelStore } from '../../src/store/models/model-store.js';
import { modelVersionKey } from '../../src/store/redis/keys.js';
import { fit, skills, startFitServers } from '../support/builders/fits.js';
import { madeAnswers, storeAnswers } from '../support/builders/made-answers.js';
import { spawnCommand } from '../support/commands/command.js';
import { redisOf } from '../support/servers/service.js';

test('`npm run fit` leaves the active version complete when it is killed', {
  timeout: 600_000,
}, async (t) => {
  const servers = await startFitServers(t);
  const redis = await redisOf(t, servers.env.REDIS_URL ?? '');
  const models = createModelStore(redis);
  await storeAnswers(servers.clickhouse, madeAnswers('killed', skills, 8, 2));
  for (const afterMs of [500, 1000, 1500, 2000, 2500]) {
    const child = spawnCommand(t, 'fit', servers.env, '--tenant', 'killed');
    await Promise.race([once(child, 'exit'), sleep(afterMs)]);
    child.kill('SIGKILL');
    const active = await models.fetchActiveVersion('killed');
    assert.equal((await models.read('killed', active)).version, active);
  }
  await fit(servers, '--tenant', 'killed');
  const active = await models.fetchActiveVersion('killed');
  assert.ok(active > 0);
  assert.equal((await models.read('killed', active)).skills.get('skill-0')?.source, 'fitted');
  const versions = (await models.listVersions('killed')).map(({ version }) => version);
  assert.equal(versions[0], active);
  const keys = versions.map((version) => modelVersionKey('killed', version));
  assert.deepEqual((await redis.keys('st:{m:killed}:v:*')).sort(), keys.sort());
});
