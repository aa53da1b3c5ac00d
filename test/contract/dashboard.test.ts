/** The dashboard in a browser: who gets in, what it fetches, and every page with data and without. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { callerOf } from '../support/http/http.js';
import { inBrowser, openBrowser } from '../support/pages/browser.js';
import { linkOf, openDashboard } from '../support/pages/dashboard.js';
import { keysOf, sharedService } from '../support/servers/service.js';

const service = await sharedService();

test('all that a page loads is small, its own, and allows nothing else', async () => {
  const folder = new URL('.', import.meta.resolve('#bundle/dashboard/index.html'));
  const page = readFileSync(new URL('index.html', folder), 'utf8');
  const files = readdirSync(folder).filter((name) => page.includes(name.replace('.gz', '')));
  assert.equal(files.length, 2);
  const bytes = files.reduce((sum, name) => sum + readFileSync(new URL(name, folder)).length, page.length);
  assert.ok(bytes < 200_000, `${bytes} bytes`);
  const { headers } = await callerOf(service, null).raw({ method: 'GET', path: '/dashboard' });
  const policy = headers['content-security-policy'] ?? '';
  assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self';/);
  assert.doesNotMatch(policy, /unsafe|\*|http/);
});

test('the key of a link opens it, leaves the address, and is forgotten by Leave', inBrowser, async (t) => {
  const { page, evaluate, complaints, requested } = await openDashboard(t, service);
  assert.doesNotMatch(page.url(), /key/);
  const kept = 'JSON.stringify([sessionStorage, localStorage, document.cookie, history.state])';
  assert.match(await evaluate<string>(kept), new RegExp(service.key));
  assert.doesNotMatch(await evaluate<string>('JSON.stringify([localStorage, document.cookie])'), /key-/);
  await page.getByRole('button', { name: 'Leave' }).click();
  await page.getByLabel('API key').waitFor();
  assert.doesNotMatch(await evaluate<string>(kept), new RegExp(service.key));
  for (const url of requested) assert.match(url, new RegExp(`^(${service.baseUrl}/|data:)`));
  assert.deepEqual(complaints, []);
});

test('a wrong key is refused in words, and the right one is asked for', inBrowser, async (t) => {
  const { page, open, complaints } = await openBrowser(t);
  await open(linkOf(service, 'no-such-key'), { width: 390, scheme: 'dark' });
  await page.getByRole('alert').filter({ hasText: 'This key is not known' }).waitFor();
  await page.getByLabel('API key').fill(service.key);
  await page.getByRole('button', { name: 'Open' }).click();
  await page.getByRole('heading', { level: 1, name: 'Class' }).waitFor();
  // The browser's own line on the 401.
  assert.deepEqual(
    complaints.filter((text) => !text.includes('status of 401')),
    [],
  );
});

test('a key sees the pages that its scopes reach, and others say what they need', inBrowser, async (t) => {
  const keys = await keysOf(t, service);
  const reader = await keys.add({ scopes: ['read'] });
  const { page, show } = await openDashboard(t, { ...service, key: reader });
  const shown = await page.getByRole('navigation').getByRole('link').allTextContents();
  assert.deepEqual(shown, ['Class', 'Learner', 'Skills', 'Model']);
  await show('#/operations');
  await page.getByText('needs a key with the scope').waitFor();
});
