/** Several API processes on one port: one that hangs is replaced, and any of them tells of all. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { after, test } from 'node:test';
import { waitUntilReady } from '../../src/app/processes/api-processes.js';
import { sendSignal, supervise } from '../../src/embedded/supervisor.js';
import { createLogger } from '../../src/logger.js';
import { callerOf, event } from '../support/http/http.js';
import { exitAfterTests } from '../support/servers/linger.js';
import { childrenOf } from '../support/servers/processes.js';
import { startService } from '../support/servers/service.js';
import { askUntil, waitFor } from '../support/wait.js';

const limitMs = 120_000;
const service = await startService({ after }, { apiProcesses: 2 });
const caller = callerOf(service, service.key);

exitAfterTests();

test('a process that never says that it serves is ended', async (t) => {
  const pids: (number | undefined)[] = [];
  const silent = supervise({
    name: 'silent',
    logger: createLogger('silent', 'test'),
    spawn: () => {
      const stdio = ['ignore', 'ignore', 'ignore', 'ipc'] as const;
      const child = spawn(process.execPath, ['-e', 'process.on("message", () => 0)'], {
        detached: true,
        stdio: [...stdio],
      });
      pids.push(child.pid);
      return child;
    },
    ready: (child, signal) => waitUntilReady(child, signal, 500),
  });
  t.after(() => silent.stop(1000));
  await assert.rejects(silent.ready, /not ready within 0\.5 s/);
  assert.equal(pids.length, 1);
  assert.equal(sendSignal(pids[0] as number, 0), false, 'it is gone');
});

const apiProcesses = (): number[] => childrenOf(process.pid, 'api-process.js');

/** Empty where a process that does not answer had the connection. */
const scrape = (): Promise<string> =>
  caller.raw({ method: 'GET', path: '/metrics' }).then(
    ({ text }) => text,
    () => '',
  );

const figure = (text: string, name: string, process = 'all'): number =>
  Number(new RegExp(`^skilltrace_${name}\\{process="${process}"\\} (\\S+)$`, 'm').exec(text)?.[1]);

test('whichever process is asked, all are told of, each under its name', async () => {
  for (let i = 0; i < 20; i++) assert.equal((await caller.track(event())).status, 200);
  const text = await askUntil('both', scrape, (told) => /process="api-1"/.test(told) && /"api-2"/.test(told));
  assert.equal(figure(text, 'api_processes_answering'), 2);
  assert.equal(figure(text, 'redis_up'), 1);
  assert.equal(figure(text, 'lanes_waiting', 'api-1'), 0);
  const counted = [
    ...text.matchAll(/^skilltrace_answers_total\{outcome="counted",process="api-\d"\} (\d+)$/gm),
  ];
  assert.equal(
    counted.reduce((sum, [, value]) => sum + Number(value), 0),
    20,
  );
});

test('a process that hangs is ended and replaced, and nothing is counted twice', async () => {
  const [hung, other] = apiProcesses();
  assert.ok(hung && other);
  process.kill(hung, 'SIGSTOP');
  await waitFor(
    'another process',
    () => {
      const now = apiProcesses();
      return now.length === 2 && !now.includes(hung);
    },
    limitMs,
  );
  const text = await askUntil(
    'both to serve',
    scrape,
    (told) => figure(told, 'api_processes_answering') === 2,
  );
  assert.equal(figure(text, 'api_processes_hung_total'), 1);
  assert.ok(apiProcesses().includes(other), 'the other one goes on');
  const one = event({ event_id: 'after the hang' });
  for (let i = 0; i < 10; i++) assert.equal((await caller.track(one)).status, 200);
  const { json } = await caller.get(`/api/v1/mastery/${one.user_id}`);
  assert.equal(json.data.skills[0].total_attempts, 1);
});
