import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../../src/config.js';
import { hasErrorCode } from '../../src/embedded/private-file.js';
import { everyView, oldAnswers, store } from '../support/builders/old-answers.js';
import { runCommand } from '../support/commands/command.js';
import { callerOf, event } from '../support/http/http.js';
import { allOnce, countOf, counts } from '../support/inspect/warehouse.js';
import { reversed, type Scoped } from '../support/scope.js';
import { clickhouseOf, startService } from '../support/servers/service.js';
import { tempDir } from '../support/temp.js';
import { waitFor } from '../support/wait.js';

/** @returns why a tmpfs cannot be mounted here, or false. Mounting needs Linux and root. */
function noSmallDisks(): string | false {
  if (process.platform !== 'linux') return 'only Linux has tmpfs';
  const words = ['--mount', 'mount', '-t', 'tmpfs', 'none', '/mnt'];
  const { status, stderr } = spawnSync('unshare', words, { encoding: 'utf8' });
  return status === 0 ? false : `a tmpfs cannot be mounted here: ${stderr.trim()}`;
}

/** Mounts a tmpfs on the folder until the end of the test. */
function mountSmallDisk(scope: Scoped, path: string, megabytes: number) {
  mkdirSync(path, { recursive: true });
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'none', path]);
  scope.after(() => execFileSync('umount', ['-l', path]));
  const filler = join(path, 'filler');
  return {
    /** Uses every byte until `empty`. */
    fill: (): void => {
      const file = openSync(filler, 'a');
      for (const bytes of [1 << 20, 4096]) while (writes(file, bytes));
      closeSync(file);
    },
    empty: (): void => rmSync(filler),
  };
}

function writes(file: number, bytes: number): boolean {
  try {
    return writeSync(file, Buffer.alloc(bytes)) === bytes;
  } catch (error) {
    if (hasErrorCode(error, 'ENOSPC')) return false;
    throw error;
  }
}

const options = { skip: noSmallDisks(), timeout: 600_000 };
/** The embedded servers write several megabytes before the first answer. */
const megabytes = 150;

/** @param server the embedded server with a small disk; null: the whole data folder is on the disk */
async function startOnSmallDisk(t: TestContext, server: 'clickhouse' | null, change: Partial<Config> = {}) {
  const scope = reversed(t);
  const dataDir = await tempDir(scope);
  const disk = mountSmallDisk(scope, server === null ? dataDir : join(dataDir, server), megabytes);
  const service = await startService(scope, { dataDir, ...change });
  const caller = callerOf(service, service.key);
  const clickhouse = clickhouseOf(scope, service);
  let confirmed = 0;
  let sent = 0;
  let batch: object[] = [];
  /** Sends fifty answers, again after a rejection. @returns the status */
  const post = async (): Promise<number> => {
    if (batch.length === 0)
      batch = Array.from({ length: 50 }, () => event({ user_id: `u-${sent % 7}`, event_id: `e-${sent++}` }));
    const { status, headers } = await caller.trackAll(batch);
    if (status === 503) assert.equal(headers['retry-after'], '1');
    if (status === 200) {
      confirmed += batch.length;
      batch = [];
    }
    return status;
  };
  const assertCountedOnce = async (): Promise<void> => {
    await waitFor('all rows', async () => {
      const found = await counts(clickhouse).catch(() => null);
      return found?.rows === confirmed && found.skill === confirmed && found.learner === confirmed;
    });
    assert.deepEqual(await counts(clickhouse), allOnce(confirmed));
    let total = 0;
    for (let i = 0; i < 7; i++) {
      const { json } = await caller.get(`/api/v1/mastery/u-${i}`);
      total += json.data.skills[0].total_attempts;
    }
    assert.equal(total, confirmed);
  };
  return { disk, dataDir, caller, clickhouse, post, assertCountedOnce };
}

for (const embeddedRedisFsync of ['everysec', 'always'] as const)
  test(`track-answers returns 503 while the disk is full (${embeddedRedisFsync})`, options, async (t) => {
    const { disk, caller, post, assertCountedOnce } = await startOnSmallDisk(t, null, {
      embeddedRedisFsync,
    });
    const fetchReadiness = async () => (await caller.raw({ method: 'GET', path: '/readyz' })).status;
    assert.equal(await post(), 200);
    await waitFor('a full disk', async () => {
      disk.fill();
      return (await post()) === 503;
    });
    for (let i = 0; i < 3; i++) {
      disk.fill();
      await sleep(1000);
      assert.equal(await post(), 503, 'an answer that may be lost was confirmed');
    }
    assert.equal(await fetchReadiness(), 503);
    disk.empty();
    await waitFor('an accepted answer', async () => (await post()) === 200);
    await waitFor('readiness', async () => (await fetchReadiness()) === 200);
    for (let i = 0; i < 5; i++) await post();
    await assertCountedOnce();
  });

test("track-answers accepts answers while ClickHouse's disk is full", options, async (t) => {
  const { disk, caller, post, assertCountedOnce } = await startOnSmallDisk(t, 'clickhouse');
  await post();
  disk.fill();
  for (let i = 0; i < 8; i++) {
    assert.equal(await post(), 200);
    await sleep(1000);
    disk.fill();
  }
  const { json } = await caller.get('/api/v1/health');
  const { outbox_length, parked } = json.data.checks.pipeline;
  assert.ok(outbox_length > 0, 'the outbox is empty');
  assert.equal(parked, 0, 'rows without disk space were parked');
  disk.empty();
  await post();
  await assertCountedOnce();
});

test('`npm run retain` drops no answers while the disk is full', options, async (t) => {
  const { disk, dataDir, clickhouse } = await startOnSmallDisk(t, 'clickhouse');
  const rows = oldAnswers([1, 2]);
  await store(clickhouse, rows);
  const before = await everyView(clickhouse);
  const retain = () => runCommand('retain', { DATA_DIR: dataDir }, '--days', '100');
  disk.fill();
  const full = await retain();
  assert.deepEqual([full.code, full.out], [1, '']);
  assert.match(full.err, /NOT_ENOUGH_SPACE|[Nn]o space left|not enough space/);
  assert.equal(await countOf(clickhouse, 'attempts'), rows.length);
  assert.deepEqual(await everyView(clickhouse), before);
  disk.empty();
  const done = await retain();
  assert.deepEqual([done.code, done.err], [0, '']);
  assert.equal(await countOf(clickhouse, 'attempts'), 0);
  assert.deepEqual(await everyView(clickhouse), before);
});

test('The service reports a full disk at startup in one line', options, async (t) => {
  const scope = reversed(t);
  const path = await tempDir(scope);
  const disk = mountSmallDisk(scope, path, 1);
  disk.fill();
  await assert.rejects(startService(scope, { dataDir: path }), {
    name: 'StartError',
    message: /DATA_DIR: cannot write .*: ENOSPC/,
  });
});
