import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { allScopes } from '../../src/contracts/access/access.js';
import { callerOf, event } from '../support/http/http.js';
import { inBrowser } from '../support/pages/browser.js';
import { openDashboard } from '../support/pages/dashboard.js';
import { clickhousePid, keysOf, startServiceAlone } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const options = { ...inBrowser, timeout: 240_000 };

test(
  'The dashboard shows what Redis knows while ClickHouse hangs, and the rest on "Try again"',
  options,
  async (t) => {
    const service = await startServiceAlone({ after });
    const key = await (await keysOf(t, service)).add({ scopes: allScopes });
    const caller = callerOf(service, key);
    const answers = Array.from({ length: 24 }, (_, i) => event({ user_id: 'ada', is_correct: i % 3 !== 0 }));
    assert.equal((await caller.trackAll(answers)).status, 200);
    await waitFor('rows in ClickHouse', async () => {
      const { json } = await caller.get('/api/v1/learners');
      return json.data.learners.length === 1;
    });
    const { page, show, assertUsable, complaints } = await openDashboard(t, { ...service, key });
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
        await assertUsable();
      }
    } finally {
      process.kill(pid, 'SIGCONT');
    }
    await waitFor('the missing data', async () => {
      const retry = page.getByRole('button', { name: 'Try again' });
      if ((await retry.count()) > 0) await retry.first().click();
      return (await page.getByText('Loading').count()) + (await alert.count()) === 0;
    });
    // Chromium logs each response with status 503.
    const others = complaints.filter((text) => !text.includes('status of 503'));
    assert.deepEqual(others, []);
  },
);
