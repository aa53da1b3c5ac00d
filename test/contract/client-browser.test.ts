/** The client in a page, as a platform serves it: on the same origin as a proxy that has the key. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Skilltrace } from '../../src/client/index.js';
import { indices } from '../../src/lists.js';
import { inBrowser, openBrowser } from '../support/pages/browser.js';
import { root } from '../support/runner/root.js';
import { type Reply, startFront } from '../support/servers/front.js';
import { sharedService } from '../support/servers/service.js';

const service = await sharedService();

const html = `<!doctype html><title>Quiz</title><link rel="icon" href="data:,">
<script type="module">
  import { Skilltrace } from './client.js';
  const skilltrace = new Skilltrace({ baseUrl: '', queue: { lingerMs: 60000 } });
  async function answer() {
    const ids = [];
    for (let i = 0; i < 50; i++)
      ids.push(await skilltrace.track({ user_id: 'u' + (i % 5), skill_id: 'algebra', is_correct: i >= 25, item_id: 'q' + i }));
    await skilltrace.flush();
    const { skills } = await skilltrace.mastery('u0');
    const goal = await skilltrace.setGoal('u0', { target_score: 1200 });
    const aborted = await skilltrace.mastery('u0', { signal: AbortSignal.abort() }).catch(({ code }) => code);
    const redirected = await skilltrace.skills().catch(({ code, tries }) => code + tries);
    return { ids, skills, goal, aborted, redirected, queued: skilltrace.queued };
  }
  globalThis.told = answer();
</script>`;
const page = { status: 200, headers: { 'Content-Type': 'text/html' }, body: html };
const script = {
  status: 200,
  headers: { 'Content-Type': 'text/javascript' },
  body: readFileSync(join(root, 'dist/client/index.js'), 'utf8'),
};

const redirect = { status: 302, headers: { Location: '/' } };
/** What the proxy answers by itself. */
const own: Readonly<Record<string, Reply>> = { '/': page, '/client.js': script, '/api/v1/skills': redirect };

interface Told {
  readonly ids: readonly string[];
  readonly skills: readonly { readonly total_attempts: number; readonly mastery: number }[];
  readonly goal: { readonly target_score: number };
  readonly aborted: string;
  readonly redirected: string;
  readonly queued: number;
}

test('a page tracks answers, flushes and reads mastery, without a key', inBrowser, async (t) => {
  const front = await startFront(t, service);
  front.decide = ({ path }) => own[path] ?? null;
  const browser = await openBrowser(t);
  await browser.open(front.baseUrl, { width: 800, scheme: 'light' });
  const told = await browser.evaluate<Told | undefined>('globalThis.told');
  assert.deepEqual([...browser.complaints], []);
  assert.ok(told !== undefined);

  const { ids, skills, goal, aborted, redirected, queued } = told;
  assert.deepEqual([aborted, redirected], ['ABORTED', 'BAD_RESPONSE1']);
  assert.deepEqual([queued, goal.target_score], [0, 1200]);
  const client = new Skilltrace({ baseUrl: service.baseUrl, apiKey: service.key });
  // The expected accuracy changes with every second.
  const counted = (all: readonly { total_attempts: number; mastery: number }[]) =>
    all.map(({ total_attempts, mastery }) => ({ total_attempts, mastery }));
  assert.deepEqual(counted(skills), counted((await client.mastery('u0')).skills));
  for (const learner of indices(5)) {
    const { attempts } = await client.attempts(`u${learner}`);
    const its = indices(10)
      .map((i) => learner + 5 * i)
      .reverse();
    assert.deepEqual(
      attempts.map(({ event_id, item_id }) => [event_id, item_id]),
      its.map((i) => [ids[i], `q${i}`]),
    );
  }
  for (const url of browser.requested) assert.match(url, new RegExp(`^(${front.baseUrl}/|data:)`));
});
