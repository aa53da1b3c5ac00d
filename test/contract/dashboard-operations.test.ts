/** What operators do in the dashboard, in a browser: keys, live figures, the versions of the model. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Page } from 'playwright-core';
import { callerOf } from '../support/http/http.js';
import { inBrowser } from '../support/pages/browser.js';
import { openDashboard } from '../support/pages/dashboard.js';
import { keysOf, sharedService } from '../support/servers/service.js';

const service = await sharedService();

const operatorKey = async (t: TestContext): Promise<string> =>
  (await keysOf(t, service)).add({ scopes: ['read', 'write', 'admin', 'operator'] });

/** From now on nothing happens with the next frame: whoever types fast, or has a busy machine, is before it. */
const holdFrames = (page: Page): Promise<void> =>
  page.evaluate(`{
    const later = setTimeout;
    setTimeout = (run, ms = 0) => later(run, ms + 1000);
    requestAnimationFrame = () => 0;
  }`);

test('a key is made, shown once, and revoked after a question', inBrowser, async (t) => {
  const key = await operatorKey(t);
  const { page, show, assertUsable, complaints } = await openDashboard(t, { ...service, key });
  await show('#/operations/keys');
  await page.getByRole('button', { name: 'New key' }).click();
  await assertUsable();
  await page.getByLabel('Requests a minute').fill('7');
  await holdFrames(page);
  await page.getByRole('button', { name: 'Make the key' }).click();
  const made = await page.getByLabel(/^Key \w+ of /).inputValue();
  const { json } = await callerOf(service, made).get('/api/v1/key');
  const { key_id, ...own } = json.data;
  assert.deepEqual([own.scopes, own.requests_per_minute, own.tenant], [['read'], 7, service.tenant]);
  await page.locator('dialog input:focus').press('Escape');
  assert.equal(await page.locator(':focus').textContent(), 'New key');
  await page.getByLabel(`Revoke ${key_id}`).click();
  await assertUsable();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
  await page.getByLabel(`Revoke ${key_id}`).waitFor({ state: 'detached' });
  assert.doesNotMatch(await page.content(), new RegExp(made));
  await page.getByLabel('Revoked ones, too').check();
  await page.getByRole('row', { name: key_id }).getByText('revoked').waitFor();
  assert.deepEqual(complaints, []);
});

test(
  'live figures come each second, are summed up when asked, and rest while paused',
  inBrowser,
  async (t) => {
    const { page, show, assertUsable, complaints } = await openDashboard(t, {
      ...service,
      key: await operatorKey(t),
    });
    await show('#/live');
    await page.getByText(/live, \d\d:\d\d:\d\d UTC/).waitFor();
    await page.getByRole('img', { name: 'Answers and requests a second' }).waitFor();
    // Nothing is read out by itself.
    assert.equal(await page.getByRole('status').textContent(), '');
    await page.getByRole('button', { name: 'Sum up' }).click();
    await page.getByRole('status').getByText('Redis up, ClickHouse up').waitFor();
    await page.getByRole('button', { name: /Parked rows/ }).click();
    await page.getByText('Normal: 0.').waitFor();
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByText('paused', { exact: true }).waitFor();
    await assertUsable();
    const again = page.waitForRequest((request) => request.url().endsWith('/api/v1/live'));
    await page.getByRole('button', { name: 'Go on' }).click();
    await again;
    assert.deepEqual(complaints, []);
  },
);

test('what there is nothing of says what to do, on a phone as well', inBrowser, async (t) => {
  const look = { width: 360, scheme: 'dark' } as const;
  const opened = await openDashboard(t, { ...service, key: await operatorKey(t) }, look);
  const nothing = {
    '#/model': 'There are no two fitted versions yet.',
    '#/operations/webhooks': 'No endpoint yet',
    '#/operations/erasures': 'No learner was erased.',
    '#/operations/nowhere': 'There is no such part.',
    '#/operations/versions': 'Partitions',
  };
  for (const [hash, text] of Object.entries(nothing)) {
    await opened.show(hash);
    await opened.page.getByText(text).waitFor();
    await opened.assertUsable();
  }
  assert.deepEqual(opened.complaints, []);
});

test('a part that the key does not reach says which scope it takes', inBrowser, async (t) => {
  const key = await (await keysOf(t, service)).add({ scopes: ['read', 'admin'] });
  const { page, show } = await openDashboard(t, { ...service, key });
  await show('#/operations/parked');
  await page.getByText('Parked rows need a key with the scope operator').waitFor();
  await show('#/model');
  await page.getByText('To go back to another takes a key with the scope operator').waitFor();
});
