/** The platform of docs/examples, unchanged. */
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

test('quiz-platform.mjs tracks answers, shows mastery, and flushes on SIGTERM', async (t) => {
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
  const fetchMastery = () => fetch(`${url}/learners/ada%20l.`);
  const mastery = await askUntil('the first answer', fetchMastery, ({ status }) => status === 200);
  assert.deepEqual(await mastery.json(), [{ skill: 'addition', mastery: 0.6927, mastered: false }]);
  assert.equal((await fetch(`${url}/elsewhere`)).status, 404);

  assert.deepEqual(await answer('q2', '41'), { is_correct: false });
  platform.kill('SIGTERM');
  assert.deepEqual(await once(platform, 'close'), [0, null]);
  const { attempts } = await new Skilltrace({ baseUrl, apiKey: key }).attempts('ada l.');
  const items = attempts.map(({ item_id, is_correct }) => `${item_id} ${is_correct}`);
  assert.deepEqual(items, ['q2 false', 'q1 true']);
});
