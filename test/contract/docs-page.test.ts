/** The API reference at /docs. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { webhookTypes } from '../../src/contracts/webhooks/webhook-events.js';
import { callerOf } from '../support/http/http.js';
import { apiRoutes } from '../support/http/route-table.js';
import { inBrowser, type Look, type OpenPage, openBrowser } from '../support/pages/browser.js';
import { sharedService } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const service = await sharedService();
const caller = callerOf(service, null);

const waitForTrue = (page: OpenPage, expression: string): Promise<unknown> =>
  waitFor(expression, () => page.evaluate<boolean>(expression));

/** Opens the page and waits until it shows all calls and webhooks. */
async function openDocs(t: TestContext, look: Look): Promise<OpenPage> {
  const page = await openBrowser(t);
  await page.open(`${service.baseUrl}/docs`, look);
  const count = apiRoutes.length + webhookTypes.length;
  await waitForTrue(page, `document.querySelectorAll('.opblock').length === ${count}`);
  return page;
}

function assertSelfContained({ requested, complaints }: OpenPage): void {
  // Chromium's advice on fields of Swagger UI.
  const own = complaints.filter((text) => !text.includes('[DOM] Input elements should have autocomplete'));
  assert.deepEqual(own, []);
  for (const url of requested) assert.match(url, new RegExp(`^(${service.baseUrl}/|data:)`));
}

test('The page /docs shows every call and webhook, and sends a call with a key', inBrowser, async (t) => {
  const opened = await openDocs(t, { width: 1280, scheme: 'light' });
  const { page } = opened;
  await page.click('.btn.authorize');
  await page.locator('.auth-container input').first().fill(service.key);
  await page.locator('.auth-btn-wrapper .authorize').first().click();
  await page.click('.auth-btn-wrapper .btn-done');
  const call = '#operations-track-trackAnswer';
  for (const button of ['.opblock-summary-control', '.try-out__btn', '.btn.execute'])
    await page.click(`${call} ${button}`);
  const status = page.locator(`${call} .live-responses-table tr.response .response-col_status`).first();
  assert.match((await status.textContent()) ?? '', /^200/);
  const mastery = await callerOf(service, service.key).get('/api/v1/mastery/ada');
  assert.equal(mastery.json.data.skills[0].total_attempts, 1);
  assertSelfContained(opened);
});

test('The page /docs fits a phone, and is dark if the reader prefers that', inBrowser, async (t) => {
  const opened = await openDocs(t, { width: 390, scheme: 'dark' });
  await opened.page.click('#operations-goals-setGoal .opblock-summary-control');
  await opened.page.locator('#operations-goals-setGoal .responses-table').first().waitFor();
  assert.ok((await opened.evaluate<number>('document.documentElement.scrollWidth')) <= 390);
  const color = await opened.evaluate<string>('getComputedStyle(document.documentElement).backgroundColor');
  assert.ok(Number(/\d+/.exec(color)?.[0]) < 64, color);
  assertSelfContained(opened);
});

test('GET /docs allows no foreign script or frame, and serves its files with the hash in the name forever', async () => {
  const { headers, text } = await caller.raw({ method: 'GET', path: '/docs' });
  const policy = headers['content-security-policy'] ?? '';
  assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self';.*frame-ancestors 'none'/);
  assert.doesNotMatch(policy, /unsafe|\*|http/);
  for (const [file] of text.matchAll(/(?<=")docs\/[^"]+/g)) {
    const { status, headers } = await caller.raw({ method: 'GET', path: `/${file}` });
    assert.deepEqual([status, headers['content-encoding']], [200, 'gzip']);
    assert.match(headers['cache-control'] ?? '', /immutable/);
  }
  assert.equal((await caller.raw({ method: 'GET', path: '/docs/index.html' })).status, 404);
});

test('A file of /docs is complete, also for HEAD and for a GET with a body', async () => {
  const { text } = await caller.raw({ method: 'GET', path: '/docs' });
  const path = `/${/docs\/page\.\w+\.css/.exec(text)?.[0]}`;
  const whole = await fetch(service.baseUrl + path);
  assert.match(await whole.text(), /swagger-ui/);
  const bytes = Number(whole.headers.get('content-length'));
  assert.equal((await caller.head(path)).headers['content-length'], `${bytes}`);
  const withBody = await caller.raw({ method: 'GET', path, headers: { 'Content-Length': '5' } });
  // exchange.ts adds two bytes after the end of gzip.
  assert.deepEqual([withBody.status, withBody.headers['content-length']], [200, `${bytes + 2}`]);
});

test('GET / redirects browsers to the dashboard, and responds 404 to other clients', async () => {
  const html = { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };
  for (const method of ['GET', 'HEAD']) {
    const response = await fetch(`${service.baseUrl}/`, { method, headers: html, redirect: 'manual' });
    assert.deepEqual([response.status, response.headers.get('location')], [302, '/dashboard']);
    const other = await fetch(`${service.baseUrl}/`, { method, headers: { Accept: '*/*' } });
    assert.equal(other.status, 404);
  }
});
