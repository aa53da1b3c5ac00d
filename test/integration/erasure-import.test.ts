/** A learner who is erased while an import brings their answers: each line is counted once, before it or after it. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { erasureDone } from '../support/builders/learner-data.js';
import { runCommand } from '../support/commands/command.js';
import { callerOf } from '../support/http/http.js';
import { clickhouseOf, startService } from '../support/servers/service.js';
import { tempDir } from '../support/temp.js';
import { askUntil, waitFor } from '../support/wait.js';

const rows = 20_000;
const learners = 4;
const limitMs = 180_000;

test('an erasure in the middle of an import', { timeout: 600_000 }, async (t) => {
  const service = await startService(t);
  const caller = callerOf(service, service.key);
  const lines = Array.from(
    { length: rows },
    (_, i) => `u${i % learners},s${i % 7},${i % 3 > 0 ? 1 : 0},${i}`,
  );
  const file = join(await tempDir(t), 'answers.csv');
  await writeFile(file, `user_id,skill_id,correct,order\n${lines.join('\n')}\n`);
  const ended = runCommand('import', { DATA_DIR: service.dataDir }, file);

  await waitFor('answers', async () => (await caller.get('/api/v1/mastery/u1')).status === 200, limitMs);
  const begun = await caller.call({ method: 'DELETE', path: '/api/v1/learners/u1' });
  assert.equal(begun.status, 202);
  const { code, err } = await ended;
  assert.equal(code, 0, err);
  const told = await erasureDone(caller, begun.json.data.status_url);
  const erased: number = told.json.data.places.find(
    (one: { place: string }) => one.place === 'attempts',
  ).before;
  assert.ok(erased > 0);
  const left = rows / learners - erased;
  const counts = () =>
    selectRows<Record<string, number>>(
      clickhouse,
      `SELECT user_id AS user, toUInt32(count()) AS rows, toUInt32(max(learner_seq)) AS last,
        toUInt32(uniqExact(learner_seq)) AS numbers, any(d.days) AS days
       FROM attempts JOIN (SELECT user_id, toUInt32(sum(attempts)) AS days FROM learner_skill_daily GROUP BY user_id) AS d
       USING (user_id) GROUP BY user ORDER BY user`,
    );
  const clickhouse = clickhouseOf(t, service);
  const all = (user: string, n: number) => ({ user, rows: n, last: n, numbers: n, days: n });
  const each = rows / learners;
  const wanted = [all('u0', each), all('u1', left), all('u2', each), all('u3', each)].filter(
    (one) => one.rows > 0,
  );
  const found = await askUntil('all rows', counts, (found) => found.length === wanted.length);
  assert.deepEqual(found, wanted);
});
