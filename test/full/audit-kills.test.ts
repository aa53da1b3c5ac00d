/** Audits while ClickHouse is killed: what cannot be compared is told as that, and nothing is told as lost. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { startCrowd } from '../support/builders/crowd.js';
import { auditsOf, namesOf } from '../support/commands/audits.js';
import { callerOf } from '../support/http/http.js';
import { clickhouseOf, clickhousePid, redisOf, startServiceAlone } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const long = { timeout: 600_000 };
const learners = Array.from({ length: 12 }, (_, i) => `c${i}`);

test('audits of a service whose ClickHouse is killed again and again find nothing', long, async (t) => {
  const service = await startServiceAlone(t);
  const [redis, clickhouse] = [await redisOf(t, service.redisUrl), clickhouseOf(t, service)];
  const audit = auditsOf(redis, clickhouse);
  const crowd = startCrowd(callerOf(service, service.key), learners);
  let compared = 0;
  let away = 0;
  for (let kills = 0; kills < 4; kills++) {
    await sleep(1500);
    process.kill(clickhousePid(service), 'SIGKILL');
    const told = await audit().catch(() => null);
    if (told === null) away++;
    else assert.deepEqual(namesOf(told.mismatches), []);
    await waitFor(
      'an audit',
      async () => {
        const report = await audit().catch(() => null);
        if (report !== null) assert.deepEqual(namesOf(report.mismatches), []);
        if (report?.notCompared.length === 0) compared++;
        return report?.notCompared.length === 0;
      },
      300_000,
    );
  }
  await crowd.stop();
  assert.deepEqual(namesOf((await audit()).mismatches), []);
  t.diagnostic(`${compared} audits compared all, ${away} found ClickHouse away`);
});
