/** `npm run bench -- --url` on a running service. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { loadDeployment } from '../../bench/deployment/main.js';
import type { DeploymentResults } from '../../bench/deployment/results.js';
import type { ListedLearner } from '../../src/client/types.js';
import { endOf, runMain } from '../support/commands/command.js';
import { callerOf } from '../support/http/http.js';
import { chromium } from '../support/pages/browser.js';
import { assertLegible } from '../support/pages/legible.js';
import { listen } from '../support/servers/ports.js';
import { type Service, sharedService } from '../support/servers/service.js';
import { tempDir } from '../support/temp.js';
import { waitFor } from '../support/wait.js';

/** A light load. */
const light = '--connections 4 --learners 40 --skills 5 --warm-up 0 --duration 1'.split(' ');

const urlOptions = ({ key }: Service, baseUrl: string): string[] => ['--url', baseUrl, '--key', key];

const runLoad = (service: Service, ...options: string[]) =>
  runMain(loadDeployment, {}, [...urlOptions(service, service.baseUrl), ...light, ...options]);

async function listLearners(service: Service, prefix: string | null): Promise<string[]> {
  const query = prefix === null ? '' : `&prefix=${prefix}`;
  const { json } = await callerOf(service, service.key).get(`/api/v1/learners?limit=1000${query}`);
  return json.data.learners.map(({ user_id }: ListedLearner) => user_id);
}

const readJson = (file: string): DeploymentResults => JSON.parse(readFileSync(file, 'utf8'));

test('bench --url measures all scenarios, verifies each answer and erases its learners', async (t) => {
  const service = await sharedService();
  const folder = await tempDir(t);
  const [json, report] = [join(folder, 'load.json'), join(folder, 'load.html')];
  const { code, out, err } = await runLoad(
    service,
    ...'--rate 60 --batch 10 --distribution zipf --items 3 --generators 2 --verify --clean-up'.split(' '),
    ...['--analyst-url', service.clickhouseUrl, '--json', json, '--report', report],
  );
  assert.equal(code, 0, err);
  assert.match(out, /single +60 +0 /);
  const { operations, capacity, verified, cleaned_learners } = readJson(json);
  const names = ['single', 'batch', 'mixed', 'class', 'burst'];
  for (const name of [...names, 'mixed_answer', 'class_mastery', 'class_predictions']) {
    const { requests = 0, errors, p50_ms = 0, p99_ms = 0, max_ms = 0 } = operations[name] ?? {};
    assert.ok(requests > 0 && errors === 0, name);
    assert.ok(p50_ms > 0 && p50_ms <= p99_ms && p99_ms <= max_ms, name);
  }
  for (const name of names) assert.equal(operations[name]?.requests, 60, name);
  assert.equal(capacity, null);
  // Each learner's first answer, 60 single ones, 60 batches of 10, 60 in the burst, and those of the mix.
  const sent = 40 + 60 + 600 + 60 + (operations.mixed_answer?.requests ?? 0);
  assert.deepEqual(verified, {
    ...{ acknowledged: sent, uncertain: 0, found: sent, differences: 0, rows: sent, duplicates: 0 },
  });
  assert.equal(cleaned_learners, 40);
  assert.deepEqual(await listLearners(service, 'bench-'), []);
  if (chromium !== null) await assertLegible(t, report, /^Load test of http/);
});

test('bench --url refuses a tenant with other learners unless it is confirmed, and never erases them', async () => {
  const service = await sharedService();
  const caller = callerOf(service, service.key);
  const others = ['ada', 'bench-press'];
  for (const user_id of others) await caller.track({ user_id, skill_id: 'sums', is_correct: true });
  await waitFor('the learners', async () => (await listLearners(service, null)).length === 2);
  const refused = await runLoad(service, '--only', 'single', '--rate', '5');
  assert.deepEqual([refused.code, refused.out], [1, '']);
  assert.match(
    refused.err,
    /^Tenant \S+ has learners that no load test created \("ada"\).*--yes-this-tenant\n$/,
  );
  assert.deepEqual(await listLearners(service, null), others);
  const allowed = await runLoad(service, ...'--only single --rate 5 --yes-this-tenant --clean-up'.split(' '));
  assert.equal(allowed.code, 0, allowed.err);
  assert.deepEqual(await listLearners(service, null), others);
});

test('bench --url exits with 1 and one line if a limit is missed', async () => {
  const service = await sharedService();
  const limits = 'p99<0.001ms,errors<0.1%,rate>1';
  const { code, err } = await runLoad(service, '--only', 'single', '--rate', '20', '--assert', limits);
  assert.equal(code, 1);
  assert.match(err, /^skilltrace: single: p99 is [\d.,]+ ms, not p99<0\.001ms\n$/);
});

test('bench --url checks its files, the analyst account and the service before the load', async (t) => {
  const service = await sharedService();
  const file = join(await tempDir(t), 'missing', 'load');
  for (const name of ['--json', '--report']) {
    const { code, err } = await runLoad(service, name, file);
    assert.equal(code, 1);
    assert.match(err, /^Cannot write \S+load: ENOENT.*\n$/);
  }
  for (const url of ['nonsense', 'http://127.0.0.1:1']) {
    const { code, err } = await runLoad(service, '--verify', '--analyst-url', url);
    assert.equal(code, 1);
    assert.match(err, /^--analyst-url: .+\n$/);
  }
  const other = createServer((_, response) => response.end('{"success":true}'));
  const url = `http://127.0.0.1:${await listen(t, other)}`;
  const { err } = await runMain(loadDeployment, {}, ['--url', url, '--key', 'k']);
  assert.match(err, /is not a Skilltrace service; check --url\n$/);
  assert.deepEqual(await listLearners(service, 'bench-'), []);
});

/** Forwards requests. Drops the response to every fifth single answer after the service has counted it. */
async function startLossyProxy(t: TestContext, target: string): Promise<string> {
  let singles = 0;
  const server = createServer(async (incoming, outgoing) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const { method = 'GET', url = '', headers } = incoming;
    const key = `${headers['x-api-key']}`;
    const body = method === 'POST' ? { body: Buffer.concat(chunks) } : {};
    const response = await fetch(target + url, {
      ...{ method, headers: { 'X-API-Key': key, 'Content-Type': 'application/json' } },
      ...body,
    });
    const text = await response.text();
    if (url.endsWith('/track-answer') && ++singles % 5 === 0) outgoing.destroy();
    // Without a length, Node sends the response in chunks.
    else
      outgoing
        .writeHead(response.status, { 'Content-Type': 'application/json' })
        .write(text, () => outgoing.end());
  });
  return `http://127.0.0.1:${await listen(t, server)}`;
}

test('Answers with lost responses are repeated and counted once', async (t) => {
  const service = await sharedService();
  const baseUrl = await startLossyProxy(t, service.baseUrl);
  const json = join(await tempDir(t), 'load.json');
  const options = [...light, ...'--only single --rate 50 --verify --json'.split(' '), json];
  const { code, err } = await runMain(loadDeployment, {}, [...urlOptions(service, baseUrl), ...options]);
  assert.equal(code, 0, err);
  const { operations, verified } = readJson(json);
  assert.deepEqual([operations.single?.requests, operations.single?.errors], [50, 10]);
  const sent = 40 + 50;
  assert.deepEqual([verified?.acknowledged, verified?.found, verified?.differences], [sent, sent, 0]);
  // Without ids the benchmark cannot repeat answers, and cannot know whether they were counted.
  const unsure = await runMain(loadDeployment, {}, [
    ...urlOptions(service, baseUrl),
    ...options,
    '--no-event-ids',
  ]);
  assert.equal(unsure.code, 0, unsure.err);
  const { acknowledged, uncertain, found } = readJson(json).verified ?? {};
  assert.deepEqual([acknowledged, uncertain, found], [sent - 10, 10, sent]);
});

const entry = new URL('../../bench/main.js', import.meta.url).href;

function spawnLoad(t: TestContext, service: Service, ...options: string[]) {
  const script = `import(${JSON.stringify(entry)}).then(({ main }) => main(process.argv.slice(1)))`;
  const args = [...urlOptions(service, service.baseUrl), ...light, ...options];
  const child = spawn(process.execPath, ['-e', script, '--', ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  t.after(() => child.kill('SIGKILL'));
  return child;
}

test('bench --clean-up erases its learners after Ctrl-C, and those of a killed run in the next one', async (t) => {
  const service = await sharedService();
  const endless = '--only single --rate 20 --duration 300 --clean-up'.split(' ');
  const hasLearners = async () => (await listLearners(service, 'bench-')).length === 40;
  const stopped = spawnLoad(t, service, ...endless);
  const ended = endOf(stopped);
  await waitFor('the learners', hasLearners);
  stopped.kill('SIGINT');
  assert.equal((await ended).code, 130);
  assert.deepEqual(await listLearners(service, 'bench-'), []);
  const killed = spawnLoad(t, service, ...endless);
  await waitFor('the learners', hasLearners);
  killed.kill('SIGKILL');
  await once(killed, 'exit');
  const json = join(await tempDir(t), 'load.json');
  const next = await runLoad(service, ...'--only single --rate 5 --clean-up --json'.split(' '), json);
  assert.equal(next.code, 0, next.err);
  assert.equal(readJson(json).cleaned_learners, 80);
  assert.deepEqual(await listLearners(service, 'bench-'), []);
});
