/** The client in a page on the same origin as a proxy that adds the key. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Skilltrace } from '../../src/client/index.js';
import { inBrowser, openBrowser } from '../support/pages/browser.js';
import { root } from '../support/runner/root.js';
import { type Reply, startFront } from '../support/servers/front.js';
import { sharedService } from '../support/servers/service.js';

const service = await sharedService();

const html = `<!doctype html><title>Quiz</title><link rel="icon" href="data:,">
<script type="module">
  import { Skilltrace } from './client.js';
  const skilltrace = new Skilltrace({ baseUrl: '', queue: { lingerMs: 60000 } });
  async function run() {
    const ids = [];
    for (let i = 0; i < 20; i++)
      ids.push(await skilltrace.track({ user_id: 'u' + (i % 2), skill_id: 'algebra', is_correct: i >= 10, item_id: 'q' + i }));
    await skilltrace.flush();
    const { skills: [{ total_attempts }] } = await skilltrace.mastery('u0');
    const { target_score } = await skilltrace.setGoal('u0', { target_score: 1200 });
    const aborted = await skilltrace.mastery('u0', { signal: AbortSignal.abort() }).catch(({ code }) => code);
    const redirected = await skilltrace.skills().catch(({ code, tries }) => code + tries);
    return { ids, total_attempts, target_score, aborted, redirected, queued: skilltrace.queued };
  }
  globalThis.result = run();
</script>`;
const client = readFileSync(join(root, 'dist/client/index.js'), 'utf8');
/** Responses of the proxy itself. */
const replies: Readonly<Record<string, Reply>> = {
  '/': { status: 200, headers: { 'Content-Type': 'text/html' }, body: html },
  '/client.js': { status: 200, headers: { 'Content-Type': 'text/javascript' }, body: client },
  '/api/v1/skills': { status: 302, headers: { Location: '/' } },
};

test('Skilltrace works in a page without a key, and requests no other origin', inBrowser, async (t) => {
  const front = await startFront(t, service);
  front.decide = ({ path }) => replies[path] ?? null;
  const browser = await openBrowser(t);
  await browser.open(front.baseUrl, { width: 800, scheme: 'light' });
  const { ids, ...result } = await browser.evaluate<{ ids: string[] }>('globalThis.result');
  assert.deepEqual([...browser.complaints], []);
  assert.deepEqual(result, {
    ...{ total_attempts: 10, target_score: 1200, queued: 0 },
    ...{ aborted: 'ABORTED', redirected: 'BAD_RESPONSE1' },
  });
  const { attempts } = await new Skilltrace({ baseUrl: service.baseUrl, apiKey: service.key }).attempts('u1');
  assert.deepEqual(
    attempts.map(({ event_id, item_id }) => [event_id, item_id]),
    [19, 17, 15, 13, 11, 9, 7, 5, 3, 1].map((i) => [ids[i], `q${i}`]),
  );
  for (const url of browser.requested) assert.match(url, new RegExp(`^(${front.baseUrl}/|data:)`));
});
