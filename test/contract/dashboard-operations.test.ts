import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Page } from 'playwright-core';
import { allScopes } from '../../src/contracts/access/access.js';
import { callerOf } from '../support/http/http.js';
import { inBrowser } from '../support/pages/browser.js';
import { type Dashboard, openDashboard } from '../support/pages/dashboard.js';
import { keysOf, sharedService } from '../support/servers/service.js';

const service = await sharedService();

async function openAsOperator(t: TestContext): Promise<Dashboard> {
  const key = await (await keysOf(t, service)).add({ scopes: allScopes });
  return openDashboard(t, { ...service, key });
}

/** Delays timers and frames, as a busy machine does: the next key press comes before them. */
const delayFrames = (page: Page): Promise<void> =>
  page.evaluate(`{
    const later = setTimeout;
    setTimeout = (run, ms = 0) => later(run, ms + 1000);
    requestAnimationFrame = () => 0;
  }`);

test('The keys page shows a new key once, and revokes a key after confirmation', inBrowser, async (t) => {
  const { page, show, assertUsable, complaints } = await openAsOperator(t);
  await show('#/operations/keys');
  await page.getByRole('button', { name: 'Create key' }).click();
  await assertUsable();
  await page.getByLabel('Requests per minute').fill('7');
  await delayFrames(page);
  await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click();
  const made = await page.getByLabel(/^Key \w+ of /).inputValue();
  const { json } = await callerOf(service, made).get('/api/v1/key');
  const { key_id, scopes, requests_per_minute, tenant } = json.data;
  assert.deepEqual([scopes, requests_per_minute, tenant], [['read'], 7, service.tenant]);
  await page.locator('dialog input:focus').press('Escape');
  assert.equal(await page.locator(':focus').textContent(), 'Create key');
  const revoke = page.getByLabel(`Revoke ${key_id}`);
  await revoke.press('Enter');
  await assertUsable();
  await page.locator('dialog button:focus', { hasText: 'Cancel' }).press('Enter');
  await page.locator('dialog').waitFor({ state: 'detached' });
  assert.equal(await page.locator(':focus').getAttribute('aria-label'), `Revoke ${key_id}`);
  await revoke.click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
  await revoke.waitFor({ state: 'detached' });
  assert.doesNotMatch(await page.content(), new RegExp(made));
  await page.getByLabel('Show revoked keys').check();
  await page.getByRole('row', { name: key_id }).getByText('revoked').waitFor();
  assert.deepEqual(complaints, []);
});

test('The live page updates each second until "Pause", and sums up on request', inBrowser, async (t) => {
  const { page, show, assertUsable, complaints } = await openAsOperator(t);
  await show('#/live');
  await page.getByText(/live, \d\d:\d\d:\d\d UTC/).waitFor();
  await page.getByRole('img', { name: 'Answers and requests per second' }).waitFor();
  // A screen reader would read each update of a status aloud.
  const status = page.getByRole('status');
  assert.equal(await status.textContent(), '');
  await page.getByRole('button', { name: 'Show summary' }).click();
  await status.getByText('Redis up, ClickHouse up').waitFor();
  await page.getByRole('button', { name: /Parked rows/ }).click();
  await page.getByText('Normal: 0.').waitFor();
  await page.getByRole('button', { name: 'Pause' }).click();
  await page.getByText('paused', { exact: true }).waitFor();
  await assertUsable();
  const request = page.waitForRequest((sent) => sent.url().endsWith('/api/v1/live'));
  await page.getByRole('button', { name: 'Resume' }).click();
  await request;
  assert.deepEqual(complaints, []);
});
