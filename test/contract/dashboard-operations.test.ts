import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Page } from 'playwright-core';
import { allScopes } from '../../src/contracts/access/access.js';
import { findFreePort } from '../../src/embedded/free-port.js';
import { callerOf, event } from '../support/http/http.js';
import { inBrowser } from '../support/pages/browser.js';
import { type Dashboard, openDashboard } from '../support/pages/dashboard.js';
import { keysOf, sharedService, startService } from '../support/servers/service.js';
import { waitUntilNoAudit } from '../support/wait.js';

const service = await sharedService();
const script = '<script>alert(1)</script>';

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
  await page.getByText(/live, \d\d:\d\d:\d\d$/).waitFor();
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

test('The keys page sets a name and a note, which stay text', inBrowser, async (t) => {
  const { page, show, assertUsableEverywhere, complaints } = await openAsOperator(t);
  await show(`#/operations/keys?tenant=${service.tenant}`);
  await page.getByRole('button', { name: 'Create key' }).click();
  await page.getByLabel('Name', { exact: true }).fill(script);
  await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click();
  await page.getByRole('button', { name: 'Done' }).click();
  const row = page.getByRole('row', { name: script });
  await row.getByRole('button', { name: /^Edit/ }).click();
  await page.getByLabel('Note for the owners').fill('Owner: platform team');
  await assertUsableEverywhere();
  await page.getByRole('button', { name: 'Save' }).click();
  await row.getByText('Owner: platform team').waitFor();
  await assertUsableEverywhere();
  await show('#/operations/activity');
  await page.getByRole('cell', { name: 'key changed' }).first().waitFor();
  await assertUsableEverywhere();
  assert.deepEqual(complaints, []);
});

test('The webhooks page creates, changes, rotates and deletes a webhook', inBrowser, async (t) => {
  const { page, show, assertUsableEverywhere, complaints } = await openAsOperator(t);
  await show('#/operations/webhooks');
  await page.getByRole('button', { name: 'Create webhook' }).click();
  await page.getByLabel('URL').fill('https://hooks.example.org/a');
  await page.getByLabel('Description').fill(script);
  await page.getByLabel('All, including types of later versions').uncheck();
  await page.getByLabel('goal.reached').uncheck();
  await assertUsableEverywhere();
  await page.getByRole('button', { name: 'Save' }).click();
  assert.match(await page.getByLabel('Signing secret').inputValue(), /^whsec_/);
  await page.getByRole('button', { name: 'Done' }).click();
  const row = page.getByRole('row', { name: script });
  assert.doesNotMatch((await row.textContent()) ?? '', /goal\.reached/);
  await assertUsableEverywhere();
  await row.getByRole('button', { name: /^Edit/ }).click();
  await page.getByLabel('URL').fill('https://hooks.example.org/b');
  await page.getByRole('button', { name: 'Save' }).click();
  await row.getByText('https://hooks.example.org/b').waitFor();
  await row.getByRole('button', { name: /^Disable/ }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Disable' }).click();
  await row.getByText('manually').waitFor();
  await row.getByRole('button', { name: /^Rotate secret/ }).click();
  await assertUsableEverywhere();
  await page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click();
  assert.match(await page.getByLabel('Signing secret').inputValue(), /^whsec_/);
  await page.getByRole('button', { name: 'Done' }).click();
  await row.getByRole('button', { name: /^Delete/ }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await page.getByText('No webhooks yet.').waitFor();
  assert.deepEqual(complaints, []);
});

test(
  'The erasures page erases a learner whose id is typed twice, and shows the proof',
  inBrowser,
  async (t) => {
    const { page, show, assertUsableEverywhere, complaints } = await openAsOperator(t);
    const userId = `${script} to erase`;
    assert.equal((await callerOf(service, service.key).track(event({ user_id: userId }))).status, 200);
    await show('#/operations/erasures');
    await page.getByRole('button', { name: 'Erase a learner' }).click();
    await page.getByLabel('Learner id', { exact: true }).fill(userId);
    const erase = page.getByRole('button', { name: 'Erase permanently' });
    await page.getByLabel('Type the learner id again').fill('another');
    assert.ok(await erase.isDisabled());
    await page.getByLabel('Type the learner id again').fill(userId);
    await assertUsableEverywhere();
    await erase.click();
    await page
      .getByRole('status')
      .getByText(/^Erasure \S+ is started\./)
      .waitFor();
    await page.getByRole('cell', { name: 'done', exact: true }).waitFor({ timeout: 60_000 });
    await page.getByRole('button', { name: /^Proof/ }).click();
    await page.getByRole('cell', { name: 'attempts', exact: true }).waitFor();
    assert.doesNotMatch(await page.content(), /to erase/);
    await assertUsableEverywhere();
    assert.deepEqual(complaints, []);
  },
);

test('The audit page runs an audit and shows its result', inBrowser, async (t) => {
  const key = await (await keysOf(t, service)).add({ scopes: allScopes });
  await waitUntilNoAudit(callerOf(service, key));
  const { page, show, assertUsableEverywhere, complaints } = await openDashboard(t, { ...service, key });
  await show('#/operations/audit');
  const run = page.getByRole('button', { name: 'Run now' });
  await run.click();
  await page.getByRole('status').getByText('An audit is running.').waitFor();
  await page.locator('button:enabled', { hasText: 'Run now' }).waitFor({ timeout: 60_000 });
  // Other test files damage rows of the shared servers, so a table of mismatches may follow.
  await page.getByText('Mismatches').first().waitFor();
  await assertUsableEverywhere();
  assert.deepEqual(complaints, []);
});

test(
  'The live page turns grey when the service stops, and recovers; the history survives',
  inBrowser,
  async (t) => {
    const own = await startService(t, { port: await findFreePort() });
    const key = await (await keysOf(t, own)).add({ scopes: allScopes });
    const { page, show, assertUsableEverywhere } = await openDashboard(t, { ...own, key });
    await show('#/live');
    await page.getByText(/live, \d\d:\d\d:\d\d$/).waitFor();
    await assertUsableEverywhere();
    await own.stop();
    await page.getByText(/^Last update \d+ s ago$/).waitFor();
    assert.equal(await page.locator('.stale').count(), 1);
    await assertUsableEverywhere();
    const { dataDir, port, clickhouseUrl } = own;
    const again = await startService(t, { dataDir, port, clickhouseUrl });
    await page.getByText(/live, \d\d:\d\d:\d\d$/).waitFor({ timeout: 60_000 });
    assert.equal(await page.locator('.stale').count(), 0);
    for (const hours of ['1', '6', '24']) {
      await page.getByLabel('Charts').selectOption(hours);
      await page.getByRole('img', { name: 'Answers and requests per second' }).waitFor();
    }
    await page.getByRole('heading', { name: 'Traffic per key' }).waitFor();
    await assertUsableEverywhere();
    assert.equal(again.port, port);
  },
);
