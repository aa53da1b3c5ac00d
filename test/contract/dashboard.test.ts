/** Access to the dashboard, its addresses, keyboard, and retries, in a browser. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { computeSum, indices } from '../../src/lists.js';
import { callerOf, event } from '../support/http/http.js';
import { inBrowser, openBrowser } from '../support/pages/browser.js';
import { linkOf, openDashboard } from '../support/pages/dashboard.js';
import { keysOf, sharedService } from '../support/servers/service.js';

const service = await sharedService();
const caller = callerOf(service, service.key);

async function answer(userId: string, count: number): Promise<void> {
  const events = indices(count).map(() => event({ user_id: userId, skill_id: 'inference' }));
  assert.equal((await caller.trackAll(events)).status, 200);
}

/** Chromium logs each failed request. */
const withoutFailedRequests = (complaints: readonly string[]): string[] =>
  complaints.filter((text) => !text.startsWith('error: Failed to load resource'));

test('GET /dashboard loads at most 60 kB of scripts first, and allows only those of the service', async () => {
  const folder = new URL('.', import.meta.resolve('#bundle/dashboard/index.html'));
  const page = readFileSync(new URL('index.html', folder), 'utf8');
  const read = (name: string): Buffer => readFileSync(new URL(name, folder));
  const scripts = readdirSync(folder).filter((name) => name.endsWith('.js.gz'));
  const [entry = '', ...others] = scripts.filter((name) => page.includes(name.replace('.gz', '')));
  assert.deepEqual(others, []);
  const sizeOf = (names: readonly string[]) => computeSum(names.map((name) => read(name).length));
  const staticImports = /(?:from|import)"\.\/([^"]+)"/g;
  const first = [...gunzipSync(read(entry)).toString().matchAll(staticImports)].map(
    ([, file]) => `${file}.gz`,
  );
  assert.ok(sizeOf([entry, ...first]) < 60_000, `${sizeOf([entry, ...first])} bytes`);
  assert.ok(sizeOf(scripts) < 200_000, `${sizeOf(scripts)} bytes`);
  const { headers } = await callerOf(service, null).raw({ method: 'GET', path: '/dashboard' });
  const policy = headers['content-security-policy'] ?? '';
  assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self';/);
  assert.doesNotMatch(policy, /unsafe|\*|http/);
});

test('The dashboard keeps the key of its link in the session until "Sign out"', inBrowser, async (t) => {
  const { page, evaluate, complaints, requested } = await openDashboard(t, service);
  assert.doesNotMatch(page.url(), /key/);
  const stored = 'JSON.stringify([sessionStorage, localStorage, document.cookie, history.state])';
  assert.match(await evaluate<string>(stored), new RegExp(service.key));
  assert.doesNotMatch(await evaluate<string>('JSON.stringify([localStorage, document.cookie])'), /key-/);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('API key').waitFor();
  assert.doesNotMatch(await evaluate<string>(stored), new RegExp(service.key));
  for (const url of requested) assert.match(url, new RegExp(`^(${service.baseUrl}/|data:)`));
  assert.deepEqual(complaints, []);
});

test('The dashboard rejects an unknown key and asks for another one', inBrowser, async (t) => {
  const { page, open, complaints } = await openBrowser(t);
  await open(linkOf(service, 'no-such-key'), { width: 390, scheme: 'dark' });
  await page.getByRole('alert').filter({ hasText: 'Unknown or revoked key' }).waitFor();
  await page.getByLabel('API key').fill(service.key);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { level: 1, name: 'Today' }).waitFor();
  assert.deepEqual(withoutFailedRequests(complaints), []);
});

test('The dashboard offers the pages of its key, and names missing scopes', inBrowser, async (t) => {
  const keys = await keysOf(t, service);
  const reader = await openDashboard(t, { ...service, key: await keys.add({ scopes: ['read'] }) });
  const links = reader.page.getByRole('navigation').getByRole('link');
  assert.deepEqual(await links.allTextContents(), ['Today', 'Class', 'Learner', 'Skills', 'Model']);
  await reader.show('#/operations');
  await reader.page.getByText('needs a key with the scope').waitFor();
  const admin = await openDashboard(t, { ...service, key: await keys.add({ scopes: ['read', 'admin'] }) });
  await admin.show('#/operations/parked');
  await admin.page.getByText('Parked rows need a key with the scope operator').waitFor();
  await admin.show('#/model');
  await admin.page.getByText('Changing the version requires a key with the scope operator').waitFor();
});

const long = 'x'.repeat(50_000);
/** Texts for addresses that are cut, mistyped or hostile. */
const strangeAddresses: Readonly<Record<string, RegExp>> = {
  '#/constructor': /Page not found/,
  '#/__proto__': /Page not found/,
  '#/learner//': /Learners with answers/,
  '#/learner/%E0%A4%A': /No answers recorded for this learner id/,
  '#/learner/First': /No answers recorded for this learner id/,
  '#/learner/first?skill=other': /This learner has no answers on the skill/,
  [`#/learner/${long}`]: /Learner ids have at most 128 characters/,
  '#/class?group=unknown': /No group has this group_id/,
  '#/class?ids=': /Paste learner ids/,
  [`#/class?ids=${long}`]: /Show all learners/,
  '#/class?cursor=abc': /next_cursor of a previous page\.\s*Show all learners/,
  [`#/class?prefix=${long}`]: /too long/,
  '#/skills/nobody-answered': /no answers and no configuration/,
  '#/operations/constructor': /Page not found/,
};

test('The dashboard explains every invalid address', inBrowser, async (t) => {
  await answer('first', 1);
  const { page, show, complaints } = await openDashboard(t, service);
  const main = page.getByRole('main');
  for (const [hash, shown] of Object.entries(strangeAddresses)) {
    await show(hash);
    await main.filter({ hasText: shown }).waitFor();
  }
  assert.deepEqual(withoutFailedRequests(complaints), []);
  assert.doesNotMatch((await main.textContent()) ?? '', /Search the log/);
});

test('The dashboard works by keyboard, and keeps list and order after a reload', inBrowser, async (t) => {
  await answer('third', 3);
  await answer('second', 5);
  const { page, show, assertUsable, complaints } = await openDashboard(t, service);
  await show(`#/class?ids=${encodeURIComponent('third\nsecond')}`);
  await page.getByRole('link', { name: 'Skills' }).press('Enter');
  await page.locator('main[aria-label=Skills]:focus').waitFor();
  await page.goBack();
  await page.locator('main[aria-label=Class]:focus').waitFor();
  const sort = page.getByRole('button', { name: 'Answers', exact: true });
  const assertOrder = async (order: string, learners: readonly string[]): Promise<void> => {
    const head = page.getByRole('columnheader', { name: 'Answers' });
    await head.and(page.locator(`[aria-sort=${order}]`)).waitFor();
    assert.deepEqual(await page.locator('tbody a.name').allTextContents(), learners);
  };
  await sort.press('Enter');
  await assertOrder('descending', ['second', 'third']);
  await sort.press('Enter');
  await assertOrder('ascending', ['third', 'second']);
  await page.reload();
  await assertOrder('ascending', ['third', 'second']);
  await page.getByText('Column descriptions').press('Enter');
  await page.getByText('Number of mastered skills').waitFor();
  await assertUsable();
  await page.getByRole('button', { name: 'Edit learner ids' }).press('Enter');
  await page.locator('dialog textarea:focus').press('Escape');
  await page.locator('dialog').waitFor({ state: 'detached' });
  assert.equal(await page.locator(':focus').textContent(), 'Edit learner ids');
  assert.deepEqual(complaints, []);
});
