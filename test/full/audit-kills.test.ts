import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { startCrowd } from '../support/builders/crowd.js';
import { auditsOf, namesOf } from '../support/commands/audits.js';
import { callerOf } from '../support/http/http.js';
import { roundsOf } from '../support/runner/long-form.js';
import { clickhouseOf, clickhousePid, redisOf, startServiceAlone } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const learners = Array.from({ length: 12 }, (_, i) => `c${i}`);

test('An audit reports no mismatch while ClickHouse is killed', { timeout: 600_000 }, async (t) => {
  const service = await startServiceAlone(t);
  const audit = auditsOf(await redisOf(t, service.redisUrl), clickhouseOf(t, service));
  /** @returns whether it compared everything; an audit fails while ClickHouse is down */
  const runAudit = async (): Promise<boolean> => {
    const report = await audit().catch(() => null);
    if (report !== null) assert.deepEqual(namesOf(report.mismatches), []);
    return report?.notCompared.length === 0;
  };
  const crowd = startCrowd(callerOf(service, service.key), learners);
  for (let kills = 0; kills < roundsOf(4); kills++) {
    await sleep(1500);
    process.kill(clickhousePid(service), 'SIGKILL');
    await runAudit();
    await waitFor('a complete audit', runAudit, 300_000);
  }
  await crowd.stop();
  assert.deepEqual(namesOf((await audit()).mismatches), []);
});
