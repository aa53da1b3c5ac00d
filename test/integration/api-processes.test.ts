/** Several API processes on one port. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { after, test } from 'node:test';
import { waitUntilReady } from '../../src/app/processes/api-processes.js';
import { sendSignal, supervise } from '../../src/embedded/supervisor.js';
import { computeSum } from '../../src/lists.js';
import { createLogger } from '../../src/logger.js';
import { callerOf, event } from '../support/http/http.js';
import { childrenOf } from '../support/servers/processes.js';
import { startService } from '../support/servers/service.js';
import { askUntil, waitFor } from '../support/wait.js';

const service = await startService({ after }, { apiProcesses: 2 });
const caller = callerOf(service, service.key);

test('An API process that never reports ready fails the start and is killed', async (t) => {
  const pids: (number | undefined)[] = [];
  const silent = supervise({
    name: 'silent',
    logger: createLogger('silent', 'test'),
    spawn: () => {
      const script = 'process.on("message", () => 0)';
      const stdio = ['ignore', 'ignore', 'ignore', 'ipc'] as ['ignore', 'ignore', 'ignore', 'ipc'];
      const child = spawn(process.execPath, ['-e', script], { detached: true, stdio });
      pids.push(child.pid);
      return child;
    },
    ready: (child, signal) => waitUntilReady(child, signal, 500),
  });
  t.after(() => silent.stop(1000));
  await assert.rejects(silent.ready, /not ready within 0\.5 s/);
  assert.equal(pids.length, 1);
  assert.equal(sendSignal(pids[0] as number, 0), false, 'the process still runs');
});

const findApiProcesses = (): number[] => childrenOf(process.pid, 'api-process.js');

/** Empty if the connection belongs to a process that hangs. */
const scrape = async (): Promise<string> =>
  (await caller.raw({ method: 'GET', path: '/metrics' }).catch(() => null))?.text ?? '';

const metric = (text: string, name: string, process = 'all'): number =>
  Number(new RegExp(`^skilltrace_${name}\\{process="${process}"\\} (\\S+)$`, 'm').exec(text)?.[1]);

const scrapeBoth = (): Promise<string> =>
  askUntil('both processes', scrape, (text) => metric(text, 'api_processes_answering') === 2);

test('/metrics of one API process includes all API processes', async () => {
  for (let i = 0; i < 20; i++) assert.equal((await caller.track(event())).status, 200);
  const text = await scrapeBoth();
  assert.equal(metric(text, 'redis_up'), 1);
  for (const name of ['api-1', 'api-2']) assert.equal(metric(text, 'lanes_waiting', name), 0);
  const counts = text.matchAll(/^skilltrace_answers_total\{outcome="counted",process="api-\d"\} (\d+)$/gm);
  assert.equal(computeSum([...counts].map(([, value]) => Number(value))), 20);
});

test('An API process that hangs is killed and replaced, and no answer is counted twice', async () => {
  const [hung, other] = findApiProcesses();
  assert.ok(hung && other);
  process.kill(hung, 'SIGSTOP');
  await waitFor('another process', () => {
    const pids = findApiProcesses();
    return pids.length === 2 && !pids.includes(hung);
  });
  const text = await scrapeBoth();
  assert.equal(metric(text, 'api_processes_hung_total'), 1);
  assert.ok(findApiProcesses().includes(other), 'the other process was replaced');
  const repeated = event({ event_id: 'repeated' });
  for (let i = 0; i < 10; i++) assert.equal((await caller.track(repeated)).status, 200);
  const { json } = await caller.get(`/api/v1/mastery/${repeated.user_id}`);
  assert.equal(json.data.skills[0].total_attempts, 1);
});

test('The service ends its API processes when it stops', async () => {
  assert.equal(await service.stop(), true);
  assert.deepEqual(findApiProcesses(), []);
});
