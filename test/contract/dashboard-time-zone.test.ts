import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, test } from 'node:test';
import { allScopes } from '../../src/contracts/access/access.js';
import { formatDay as formatPlainDay, getCalendar, listOffsets } from '../../src/domain/base/calendar.js';
import { formatDay } from '../../src/pages/dashboard/base/format.js';
import { awayFromMidnightIn } from '../support/builders/day.js';
import { callerOf, event } from '../support/http/http.js';
import { inBrowser } from '../support/pages/browser.js';
import { type Dashboard, openDashboard } from '../support/pages/dashboard.js';
import { keysOf, sharedService } from '../support/servers/service.js';
import { waitUntilStored } from '../support/wait.js';

const service = await sharedService();
const keys = await keysOf({ after }, service);
const zone = 'America/Los_Angeles';
const light = { width: 1280, scheme: 'light' } as const;
const hourMs = 3_600_000;

test(
  'An administrator changes the time zone, and the page uses it without a reload',
  inBrowser,
  async (t) => {
    const key = await keys.add({ tenant: 'moves', scopes: allScopes });
    assert.equal((await callerOf(service, key).track(event())).status, 200);
    const opened = await openDashboard(t, { ...service, key }, light, 'Asia/Tokyo');
    const { page, show, assertUsableEverywhere, complaints } = opened;
    await show('#/operations/settings');
    await page.getByText('Days and times are in the time zone UTC.').waitFor();
    const field = page.getByLabel('New time zone');
    await field.fill('los angelos');
    await field.press('Enter');
    await page.getByRole('alert').getByText(zone).waitFor();
    await assertUsableEverywhere();
    await field.fill(zone);
    await field.press('Enter');
    await page.getByText(`Days and times are in the time zone ${zone}.`).waitFor();
    await page.getByText(/^done .*; 1 learner moved$/).waitFor({ timeout: 60_000 });
    await assertUsableEverywhere();
    assert.deepEqual(
      complaints.filter((text) => !text.includes('status of 400')),
      [],
    );
  },
);

test('A key without the scope admin shows the time zone without a form', inBrowser, async (t) => {
  const key = await keys.add({ scopes: ['read', 'operator'] });
  const { page, show, complaints } = await openDashboard(t, { ...service, key });
  await show('#/operations/settings');
  await page.getByText('Changing the time zone requires a key with the scope admin.').waitFor();
  assert.equal(await page.getByLabel('New time zone').count(), 0);
  assert.deepEqual(complaints, []);
});

/** Widths and steps, in pixels, of bars from left to right. */
const barSteps = `((bars) => bars.slice(1).map((bar, i) => bar.x - bars[i].x).concat(bars.map(({ width }) => width)))(
  [...document.querySelectorAll('svg[aria-label="Answers on each day"] rect')]
    .map((bar) => bar.getBoundingClientRect()).sort((a, b) => a.x - b.x))`;

/** Days and times on the pages of a class and a learner, also in charts. */
async function listTimes({ page, show }: Dashboard): Promise<string[]> {
  const texts = [];
  for (const hash of ['#/class', '#/learner/ada?span=365', '#/learner/ada?span=365&skill=algebra&by=time']) {
    await show(hash);
    texts.push(await page.locator('main').textContent());
  }
  return texts.join(' ').match(/\d{1,2} [A-Z][a-z]{2,3} \d{4}(, \d\d:\d\d)?/g) ?? [];
}

test('Charts and files show local days of the school in every browser', inBrowser, async (t) => {
  await awayFromMidnightIn(zone);
  const key = await keys.add({ tenant: zone, scopes: allScopes });
  const caller = callerOf(service, key);
  assert.equal((await caller.send('PUT', '/api/v1/settings', { time_zone: zone })).status, 202);
  const calendar = getCalendar(zone);
  const now = Date.now();
  const change = listOffsets(calendar).findLast(([start]) => start * 1000 < now - 72 * hourMs)?.[0] ?? 0;
  const day = calendar.toDay(change * 1000);
  const times = [day, day + 1].flatMap((each) =>
    [-0.5, 0.5].map((hours) => new Date(calendar.startOfDay(each) + hours * hourMs).toISOString()),
  );
  const events = times.map((occurred_at) => event({ user_id: 'ada', skill_id: 'algebra', occurred_at }));
  assert.equal((await caller.trackAll(events)).status, 200);
  await waitUntilStored(caller);
  const opened = await openDashboard(t, { ...service, key }, light, 'Asia/Tokyo');
  const { page, evaluate, assertUsable, complaints } = opened;
  const shown = await listTimes(opened);
  const bars = page.getByRole('img', { name: 'Answers on each day' }).locator('title');
  const days = [day - 1, day, day + 1].map((each) => formatDay(formatPlainDay(each)));
  assert.deepEqual(
    await bars.allTextContents(),
    [1, 2, 1].map((count, i) => `${days[i]}: ${count} correct`),
  );
  const [first = 0, second = 0, ...widths] = await evaluate<number[]>(barSteps);
  assert.ok(Math.abs(first - second) < 0.1 && widths.every((width) => width > 0 && width < first));
  const table = page.locator('.table', { has: page.getByRole('region', { name: 'Answers', exact: true }) });
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    table.getByRole('button', { name: 'Download CSV' }).click(),
  ]);
  const file = await readFile(await download.path(), 'utf8');
  const written = [...file.matchAll(/\d{4}-\d\d-\d\dT[^,]+/g)].map(([time]) => time);
  assert.deepEqual(
    written.map((time) => [time.slice(0, 10), Date.parse(time)]),
    times.map((time) => [formatPlainDay(calendar.toDay(Date.parse(time))), Date.parse(time)]).reverse(),
  );
  await assertUsable();
  assert.ok(shown.length > 20);
  const local = await openDashboard(t, { ...service, key }, light, zone);
  assert.deepEqual(await listTimes(local), shown);
  assert.deepEqual(complaints, []);
});
