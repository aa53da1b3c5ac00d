/** The dashboard while ClickHouse hangs: what Redis knows is shown, the rest says what is away, and comes back when asked again. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { allScopes } from '../../src/contracts/access/access.js';
import { callerOf, event } from '../support/http/http.js';
import { inBrowser } from '../support/pages/browser.js';
import { openDashboard } from '../support/pages/dashboard.js';
import { clickhousePid, keysOf, startServiceAlone } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const options = { ...inBrowser, timeout: 240_000 };

test('a page shows what it can, says what is away, and has the rest later', options, async (t) => {
  const service = await startServiceAlone({ after });
  const key = await (await keysOf(t, service)).add({ scopes: allScopes });
  const caller = callerOf(service, key);
  const answers = Array.from({ length: 24 }, (_, i) => event({ user_id: 'ada', is_correct: i % 3 !== 0 }));
  assert.equal((await caller.trackAll(answers)).status, 200);
  await waitFor('rows in ClickHouse', async () => {
    const { json } = await caller.get('/api/v1/learners');
    return json.data.learners.length === 1;
  });
  const dashboard = await openDashboard(t, { ...service, key });
  const { page, show } = dashboard;
  const alert = page.getByRole('alert');
  const pid = clickhousePid(service);
  process.kill(pid, 'SIGSTOP');
  try {
    await show('#/learner/ada');
    await page.getByText('24 answers').first().waitFor();
    await page.getByRole('link', { name: 'algebra' }).waitFor();
    await show('#/class?ids=ada');
    await page.getByRole('link', { name: 'ada' }).first().waitFor();
    for (const hash of ['#/skills', '#/model', '#/operations/erasures']) {
      await show(hash);
      await alert.first().waitFor();
      await dashboard.assertUsable();
    }
  } finally {
    process.kill(pid, 'SIGCONT');
  }
  await waitFor('what was away', async () => {
    const again = page.getByRole('button', { name: 'Try again' });
    if ((await again.count()) > 0) await again.first().click();
    return (await page.getByText('Loading').count()) + (await alert.count()) === 0;
  });
  // The browser's own lines on answers of 503.
  const own = dashboard.complaints.filter((text) => !text.includes('status of 503'));
  assert.deepEqual(own, []);
});
