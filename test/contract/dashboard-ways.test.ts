/** Ways through the dashboard: addresses of any kind, the keyboard alone, and what is looked at after a reload. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { callerOf, event } from '../support/http/http.js';
import { inBrowser } from '../support/pages/browser.js';
import { openDashboard } from '../support/pages/dashboard.js';
import { sharedService } from '../support/servers/service.js';

const service = await sharedService();
const caller = callerOf(service, service.key);
const list = `#/class?ids=${encodeURIComponent('first\nsecond')}`;

async function answer(userId: string, count: number): Promise<void> {
  for (let n = 0; n < count; n++) {
    const { status } = await caller.track(
      event({ user_id: userId, skill_id: 'inference', is_correct: true }),
    );
    assert.equal(status, 200);
  }
}

const long = 'x'.repeat(50_000);
/** What a cut, typed or hostile address shows. */
const strange: Readonly<Record<string, RegExp>> = {
  '#/constructor': /There is no such page/,
  '#/__proto__': /There is no such page/,
  '#/learner//': /Learners with answers/,
  '#/learner/%E0%A4%A': /No answer of a learner with exactly this id/,
  [`#/learner/${long}`]: /No learner has an id this long/,
  '#/class?ids=': /Give a list/,
  [`#/class?ids=${long}`]: /Show all learners/,
  '#/class?cursor=abc': /next_cursor of an earlier page\.\s*Show all learners/,
  [`#/class?prefix=${long}`]: /too long/,
  '#/skills/nobody-answered': /neither set nor answered/,
  '#/operations/constructor': /There is no such part/,
};

test('no address, however made, breaks the page', inBrowser, async (t) => {
  const { page, show, complaints } = await openDashboard(t, service);
  for (const [hash, shown] of Object.entries(strange)) {
    await show(hash);
    await page.getByRole('main').filter({ hasText: shown }).waitFor({ timeout: 5000 });
  }
  // The browser's own lines on refused requests.
  assert.deepEqual(
    complaints.filter((text) => !text.startsWith('error: Failed to load resource')),
    [],
  );
  assert.doesNotMatch((await page.getByRole('main').textContent()) ?? '', /The log has it/);
});

test('a page is reached by keyboard, and what is looked at stays after a reload', inBrowser, async (t) => {
  await answer('first', 3);
  await answer('second', 5);
  const { page, show, assertUsable, complaints } = await openDashboard(t, service);
  await show(list);
  await page.getByRole('link', { name: 'Skills' }).press('Enter');
  await page.locator('main[aria-label=Skills]:focus').waitFor();
  await page.goBack();
  await page.locator('main[aria-label=Class]:focus').waitFor();
  /** Names of the learners, once they are in order of their answers. */
  const inOrder = async (order: 'ascending' | 'descending'): Promise<string[]> => {
    const head = page.getByRole('columnheader', { name: 'Answers' });
    await head.and(page.locator(`[aria-sort=${order}]`)).waitFor();
    return page.getByRole('row').getByRole('link').allTextContents();
  };
  await page.getByRole('button', { name: 'Answers', exact: true }).press('Enter');
  assert.deepEqual(await inOrder('descending'), ['second', 'first']);
  await page.getByRole('button', { name: 'Answers', exact: true }).press('Enter');
  assert.deepEqual(await inOrder('ascending'), ['first', 'second']);
  await page.reload();
  assert.deepEqual(await inOrder('ascending'), ['first', 'second']);
  await page.getByText('What the columns mean').press('Enter');
  await page.getByText('Skills that the learner has mastered').waitFor();
  await assertUsable();
  await page.getByRole('button', { name: 'Change the list' }).press('Enter');
  await page.locator('dialog textarea:focus').press('Escape');
  await page.locator('dialog').waitFor({ state: 'detached' });
  assert.equal(await page.locator(':focus').textContent(), 'Change the list');
  assert.deepEqual(complaints, []);
});

test('long names stay within a phone', inBrowser, async (t) => {
  const name = 'Rindfleischetikettierungsüberwachungsaufgabenübertragungsgesetz'.repeat(2);
  const path = '/api/v1/skills/long-named';
  const { status } = await caller.call({ method: 'PUT', path, body: JSON.stringify({ name }) });
  assert.equal(status, 200);
  const userId = 'W'.repeat(128);
  for (let n = 0; n < 8; n++)
    await caller.track(event({ user_id: userId, skill_id: 'long-named', is_correct: false }));
  const { page, show, assertUsable, complaints } = await openDashboard(t, service, {
    width: 390,
    scheme: 'dark',
  });
  for (const hash of [`#/learner/${userId}?skill=long-named`, `#/class?ids=${userId}`, '#/model']) {
    await show(hash);
    await assertUsable();
  }
  await show(`#/learner/${userId}`);
  await page.getByText(`Focus on ${name}`).waitFor();
  assert.deepEqual(complaints, []);
});

test('a question takes the focus, to what is undone if need be, and gives it back', inBrowser, async (t) => {
  const { page, show, complaints } = await openDashboard(t, service);
  await show('#/operations');
  const revoke = page.getByRole('button', { name: /^Revoke / }).first();
  const name = await revoke.getAttribute('aria-label');
  await revoke.press('Enter');
  await page.getByRole('dialog').waitFor();
  await page.locator('dialog button:focus', { hasText: 'Cancel' }).press('Enter');
  await page.locator('dialog').waitFor({ state: 'detached' });
  assert.equal(await page.locator(':focus').getAttribute('aria-label'), name);
  assert.deepEqual(complaints, []);
});

test('what failed while the service was away is asked for again at one click', inBrowser, async (t) => {
  await answer('first', 1);
  const { page, show } = await openDashboard(t, service);
  await page.route('**/api/v1/**', (route) => route.abort());
  await show('#/skills');
  const again = page.getByRole('button', { name: 'Try again' });
  await again.waitFor();
  assert.equal(await again.count(), 1);
  await page.unroute('**/api/v1/**');
  await again.click();
  await page.getByRole('img', { name: 'Right against predicted' }).waitFor();
  assert.equal(await page.getByRole('alert').count(), 0);
});
