/** The platform of docs/examples, run as it stands there. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { Skilltrace } from '../../src/client/index.js';
import { root } from '../support/runner/root.js';
import { sharedService } from '../support/servers/service.js';
import { askUntil } from '../support/wait.js';

const { baseUrl, key } = await sharedService();

test('a platform posts answers, shows mastery, and sends the rest when it is told to end', async (t) => {
  const platform = spawn(process.execPath, [join(root, 'docs/examples/quiz-platform.mjs')], {
    env: { PATH: process.env.PATH, SKILLTRACE_URL: baseUrl, SKILLTRACE_KEY: key, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => platform.kill('SIGKILL'));
  const [line] = await once(createInterface(platform.stdout), 'line');
  const url = `http://127.0.0.1:${/\d+/.exec(line)?.[0]}`;
  const answer = async (question: string, text: string): Promise<unknown> => {
    const body = JSON.stringify({ learner: 'ada l.', question, text, seconds: 4 });
    return (await fetch(`${url}/answers`, { method: 'POST', body })).json();
  };
  assert.deepEqual(await answer('q1', '5'), { is_correct: true });
  const shown = await askUntil(
    'the first answer',
    () => fetch(`${url}/learners/ada%20l.`),
    ({ status }) => status === 200,
  );
  assert.deepEqual(await shown.json(), [{ skill: 'addition', mastery: 0.6927, mastered: false }]);
  assert.equal((await fetch(`${url}/elsewhere`)).status, 404);

  assert.deepEqual(await answer('q2', '41'), { is_correct: false });
  platform.kill('SIGTERM');
  assert.deepEqual(await once(platform, 'close'), [0, null]);
  const { attempts } = await new Skilltrace({ baseUrl, apiKey: key }).attempts('ada l.');
  assert.deepEqual(
    attempts.map(({ item_id, is_correct }) => [item_id, is_correct]),
    [
      ['q2', false],
      ['q1', true],
    ],
  );
});
