/** The one table of the engine that takes two minutes: it tries to start a program, clickhouse-library-bridge. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  analystAccount,
  serviceAccount,
  startClickHouse,
  temporaryFolder,
} from '../support/clickhouse-child.js';

test('system.models tells an analyst no password', { timeout: 600_000 }, async (t) => {
  const folder = await temporaryFolder();
  const server = await startClickHouse(join(folder.path, 'data'));
  t.after(async () => {
    await server.stop();
    await folder.remove();
  });
  const headers = { 'X-ClickHouse-User': analystAccount.name, 'X-ClickHouse-Key': analystAccount.password };
  const body = 'SELECT * FROM system.models';
  const text = await (await server.fetch('/', { method: 'POST', body, headers })).text();
  for (const { password } of [serviceAccount, analystAccount]) assert.ok(!text.includes(password), text);
});
