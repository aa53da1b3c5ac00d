/** The reference page in a browser: all calls are there, nothing comes from elsewhere, and a call can be tried. */
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

async function openDocs(t: TestContext, look: Look): Promise<OpenPage> {
  const page = await openBrowser(t);
  await page.open(`${service.baseUrl}/docs`, look);
  const shown = apiRoutes.length + webhookTypes.length;
  await isTrue(page, `document.querySelectorAll('.opblock').length === ${shown}`);
  return page;
}

const isTrue = (page: OpenPage, expression: string): Promise<unknown> =>
  waitFor(expression, () => page.evaluate<boolean>(expression));

function assertClosed({ requested, complaints }: OpenPage): void {
  // Advice on the fields for Basic, which are Swagger UI's.
  assert.deepEqual(
    complaints.filter((text) => !text.includes('[DOM] Input elements should have autocomplete')),
    [],
  );
  for (const url of requested) assert.match(url, new RegExp(`^(${service.baseUrl}/|data:)`));
}

test('shows every call, and one that is tried with a key is answered', inBrowser, async (t) => {
  const page = await openDocs(t, { width: 1280, scheme: 'light' });
  const { page: shown } = page;
  await shown.click('.btn.authorize');
  await shown.locator('.auth-container input').first().fill(service.key);
  await shown.locator('.auth-btn-wrapper .authorize').first().click();
  await shown.click('.auth-btn-wrapper .btn-done');
  const call = '#operations-track-trackAnswer';
  for (const button of ['.opblock-summary-control', '.try-out__btn', '.btn.execute'])
    await shown.click(`${call} ${button}`);
  const status = `document.querySelector('${call} .live-responses-table tr.response .response-col_status')`;
  await isTrue(page, `${status} !== null`);
  assert.equal(await page.evaluate(`${status}.firstChild.textContent`), '200');
  const told = await callerOf(service, service.key).get('/api/v1/mastery/ada');
  assert.equal(told.json.data.skills[0].total_attempts, 1);
  assertClosed(page);
});

test('fits a phone, and is dark where that is preferred', inBrowser, async (t) => {
  const page = await openDocs(t, { width: 390, scheme: 'dark' });
  await page.page.click('#operations-goals-setGoal .opblock-summary-control');
  await isTrue(page, `document.querySelector('#operations-goals-setGoal .responses-table') !== null`);
  assert.ok((await page.evaluate<number>('document.documentElement.scrollWidth')) <= 390);
  const [red = 255] =
    (await page.evaluate<string>('getComputedStyle(document.documentElement).backgroundColor'))
      .match(/\d+/g)
      ?.map(Number) ?? [];
  assert.ok(red < 64);
  assertClosed(page);
});

test('the page allows no script, frame or request from elsewhere, and names its files by their content', async () => {
  const { headers, text } = await caller.raw({ method: 'GET', path: '/docs' });
  assert.match(
    headers['content-security-policy'] ?? '',
    /^default-src 'none'; script-src 'self'; style-src 'self';/,
  );
  assert.doesNotMatch(headers['content-security-policy'] ?? '', /unsafe|\*|http/);
  assert.match(headers['content-security-policy'] ?? '', /frame-ancestors 'none'/);
  for (const [file] of text.matchAll(/(?<=")docs\/[^"]+/g)) {
    const { status, headers } = await caller.raw({ method: 'GET', path: `/${file}` });
    assert.deepEqual([status, headers['content-encoding']], [200, 'gzip']);
    assert.match(headers['cache-control'] ?? '', /immutable/);
  }
  const { status } = await caller.raw({ method: 'GET', path: '/docs/index.html' });
  assert.equal(status, 404);
});

test('a file is sent whole, also where a body comes with the request, which ends the connection', async () => {
  const { text } = await caller.raw({ method: 'GET', path: '/docs' });
  const path = `/${/docs\/page\.\w+\.css/.exec(text)?.[0]}`;
  const whole = await fetch(service.baseUrl + path);
  assert.match(await whole.text(), /swagger-ui/);
  const bytes = Number(whole.headers.get('content-length'));
  assert.equal((await caller.head(path)).headers['content-length'], `${bytes}`);
  const stray = await caller.raw({ method: 'GET', path, headers: { 'Content-Length': '5' } });
  // Two bytes behind the end of gzip, see exchange.ts.
  assert.deepEqual([stray.status, stray.headers['content-length']], [200, `${bytes + 2}`]);
});

test('the root leads browsers to the page, and nobody else', async () => {
  const html = { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };
  for (const method of ['GET', 'HEAD']) {
    const answer = await fetch(`${service.baseUrl}/`, { method, headers: html, redirect: 'manual' });
    assert.deepEqual([answer.status, answer.headers.get('location')], [302, '/dashboard']);
    const other = await fetch(`${service.baseUrl}/`, { method, headers: { Accept: '*/*' } });
    assert.equal(other.status, 404);
  }
});
