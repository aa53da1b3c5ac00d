/** The audit: silent while answers keep coming, and certain of every row that is lost or there twice. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { startCrowd } from '../support/builders/crowd.js';
import { auditsOf, namesOf } from '../support/commands/audits.js';
import { runCommand } from '../support/commands/command.js';
import { type Caller, callerOf, event } from '../support/http/http.js';
import { clickhouseOf, keysOf, redisOf, type Service, startService } from '../support/servers/service.js';
import { tempDir } from '../support/temp.js';

const long = { timeout: 600_000 };
const importedRows = 1500;
const names = (count: number, prefix: string): string[] =>
  Array.from({ length: count }, (_, i) => `${prefix}${i}`);

/** Batches from a tenant of its own, until it is told to stop. @returns answers that were counted */
function startBatches(caller: Caller): () => Promise<number> {
  let stopped = false;
  let counted = 0;
  const running = (async () => {
    for (let n = 0; !stopped; n++) {
      const events = names(40, 'b').map((user_id, i) =>
        event({ user_id, skill_id: `s${i % 5}`, is_correct: i % 3 > 0, event_id: `${n}/${i}` }),
      );
      const { status, text } = await caller.trackAll(events);
      assert.equal(status, 200, text);
      counted += events.length;
      await sleep(50);
    }
  })();
  running.catch(() => undefined);
  return async () => {
    stopped = true;
    await running;
    return counted;
  };
}

async function importRows(t: TestContext, { dataDir }: Service, rows: number): Promise<void> {
  const file = join(await tempDir(t), 'log.csv.gz');
  const lines = Array.from({ length: rows }, (_, i) => `i${i % 90},s${i % 7},${i % 4 === 0 ? 0 : 1},${i}`);
  writeFileSync(file, gzipSync(`user_id,skill_id,correct,order\n${lines.join('\n')}\n`));
  const ended = await runCommand('import', { DATA_DIR: dataDir }, file, '--tenant', 'imported');
  assert.equal(ended.code, 0, ended.err);
}

test(
  'audits that run while answers, batches and imports arrive and are drained find nothing',
  long,
  async (t) => {
    const service = await startService(t);
    const [redis, clickhouse] = [await redisOf(t, service.redisUrl), clickhouseOf(t, service)];
    const audit = auditsOf(redis, clickhouse);
    const crowd = startCrowd(callerOf(service, service.key), names(12, 'c'));
    const keys = await keysOf(t, service);
    const batches = startBatches(callerOf(service, await keys.add({ tenant: 'batches' })));
    const importing = importRows(t, service, importedRows);
    let audits = 0;
    const isOver = importing.then(() => true);
    while (!(await Promise.race([isOver, sleep(10, false)])) || audits < 5) {
      const { mismatches, notCompared } = await audit();
      assert.deepEqual([namesOf(mismatches), notCompared], [[], []]);
      audits++;
    }
    const batched = await batches();
    await crowd.stop();
    const { totals, mismatches } = await audit();
    const answers = crowd.confirmed.length + batched + importedRows;
    assert.deepEqual(
      [totals.accepted, totals.stored + totals.waiting, namesOf(mismatches)],
      [answers, answers, []],
    );
    t.diagnostic(`${audits} audits beside ${answers} answers`);
  },
);
