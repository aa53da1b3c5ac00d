/** Cold copies of an embedded deployment, put back: as a whole, and with a Redis that is older than ClickHouse. */
import assert from 'node:assert/strict';
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readLastRows } from '../../src/store/outbox/outbox.js';
import { countNewerRows } from '../../src/warehouse/reads/stored-state.js';
import { callerOf, event } from '../support/http/http.js';
import { storedOnce } from '../support/inspect/warehouse.js';
import { clickhouseOf, redisOf, type Service, startService } from '../support/servers/service.js';
import { tempDir } from '../support/temp.js';

test('a copy of the stopped folder goes on elsewhere; an older Redis is told of', {
  timeout: 600_000,
}, async (t) => {
  const dir = await tempDir(t);
  const [first, copy] = [join(dir, 'first'), join(dir, 'copy')];
  const post = async (service: Service, number: number): Promise<void> => {
    const answer = event({ user_id: 'ada', event_id: `e-${number}` });
    assert.equal((await callerOf(service, service.key).track(answer)).status, 200);
  };
  const stored = (service: Service, rows: number) => storedOnce(clickhouseOf(t, service), rows);
  const look = async (service: Service) => readLastRows(await redisOf(t, service.redisUrl), 16);
  const unknown = async (service: Service, seen = look(service)): Promise<number> =>
    countNewerRows(clickhouseOf(t, service), await seen);

  const before = await startService(t, { dataDir: first });
  await post(before, 1);
  await stored(before, 1);
  assert.ok(await before.stop());
  cpSync(first, copy, { recursive: true });

  const restored = await startService(t, { dataDir: copy });
  const repeated = await callerOf(restored, restored.key).track(event({ user_id: 'ada', event_id: 'e-1' }));
  assert.equal(repeated.headers['idempotent-replayed'], 'true');
  assert.equal(await unknown(restored), 0);
  await post(restored, 2);
  await stored(restored, 2);
  assert.ok(await restored.stop());

  rmSync(join(copy, 'redis'), { recursive: true });
  cpSync(join(first, 'redis'), join(copy, 'redis'), { recursive: true });
  const older = await startService(t, { dataDir: copy });
  const seen = look(older);
  assert.equal(await unknown(older, seen), 1, 'the second answer is in ClickHouse only');
  await post(older, 3);
  await stored(older, 3);
  assert.equal(await unknown(older), 0, 'younger answers hide it');
  assert.equal(await unknown(older, seen), 1, 'but not from who looked before they came');
  assert.ok(await older.stop());
});
