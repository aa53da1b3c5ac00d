import assert from 'node:assert/strict';
import { test } from 'node:test';
import { callerOf, event } from '../support/http/http.js';
import { inBrowser } from '../support/pages/browser.js';
import { openDashboard } from '../support/pages/dashboard.js';
import { sharedService } from '../support/servers/service.js';
import { askUntil, waitFor, waitUntilStored } from '../support/wait.js';

const service = await sharedService();
const caller = callerOf(service, service.key);
const skillId = '<img src=x onerror=alert(1)> الجبر';

async function answer(userId: string): Promise<void> {
  const results = [true, true, false, true];
  const events = results.map((is_correct) => event({ user_id: userId, skill_id: skillId, is_correct }));
  assert.equal((await caller.trackAll(events)).status, 200);
}

test('The learner page names the other skills of an answer', inBrowser, async (t) => {
  const userId = 'several-skills';
  await caller.send('PUT', '/api/v1/skills/ratios', { name: 'Ratios & rates' });
  const answers = [['fractions'], ['fractions', 'ratios'], ['fractions', '<b>']];
  const events = answers.map((skill_ids) => event({ user_id: userId, skill_id: null, skill_ids }));
  assert.equal((await caller.trackAll(events)).status, 200);
  await waitUntilStored(caller);
  const { page, show, assertUsable, complaints } = await openDashboard(t, service);
  await show(`#/learner/${userId}?skill=fractions`);
  await page.getByText('3 answers on 3 skills').waitFor();
  await page.getByText('2 answers together with Ratios & rates, <b>.').waitFor();
  const table = page.getByRole('region', { name: 'Answers', exact: true });
  const cells = table.locator('tr > :nth-child(4)');
  assert.deepEqual(await cells.allTextContents(), ['Together with', '<b>', 'Ratios & rates', '']);
  await assertUsable();
  assert.deepEqual(complaints, []);
});

test(
  'The learner page finds a learner by prefix, shows names as text, and explains mastery',
  inBrowser,
  async (t) => {
    const userId = '<script>alert(1)</script> שלום';
    await answer(userId);
    await askUntil(
      'the learner in the list',
      () => caller.get('/api/v1/learners?prefix=%3Cscript'),
      ({ json }) => json.data?.learners?.length === 1,
    );
    const look = { width: 390, scheme: 'dark' } as const;
    const { page, show, assertUsable, complaints } = await openDashboard(t, service, look);
    const dialogs: string[] = [];
    page.on('dialog', (dialog) => {
      dialogs.push(dialog.message());
      return dialog.dismiss();
    });
    await show('#/learner');
    const search = page.getByRole('combobox', { name: 'Find a learner' });
    await search.fill('<scr');
    await page.getByRole('option').waitFor();
    await search.press('ArrowDown');
    await search.press('Enter');
    await page.getByRole('heading', { level: 1, name: userId }).waitFor();
    await waitFor('the title', async () => (await page.title()).includes(userId));
    await page.getByText('Not enough data: 4 answers').waitFor();
    await page.getByRole('link', { name: skillId, exact: true }).first().click();
    await page.getByText('Mastery changes by cause: last 4 answers').waitFor();
    const answers = page.getByRole('region', { name: 'Answers', exact: true }).getByRole('row');
    // The head and four answers.
    await answers.nth(4).waitFor();
    const texts = await answers.getByText(/correct/).allTextContents();
    assert.deepEqual(texts, ['● correct', '✕ incorrect', '● correct', '● correct']);
    await assertUsable();
    const address = decodeURIComponent((await page.evaluate('location.hash')) as string);
    assert.match(address, /\?skill=<img/);
    assert.deepEqual([dialogs, await page.locator('main script, main img').count()], [[], 0]);
    assert.deepEqual(complaints, []);
  },
);

test('The learner page sets and removes a goal, and forecasts a plan', inBrowser, async (t) => {
  const userId = 'with-a-goal';
  await answer(userId);
  const { page, show, assertUsable, complaints } = await openDashboard(t, service);
  await show(`#/learner/${userId}`);
  await page.getByLabel('Target score').fill('1380');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('heading', { name: 'Goal: 1380', exact: true }).waitFor();
  const goals = `/api/v1/goals/${userId}`;
  assert.equal((await caller.get(goals)).json.data.target_score, 1380);

  await page.getByRole('slider', { name: 'Answers per day' }).fill('40');
  const plan = { answers_per_day: 40, days: 90, confidence_level: 0.8 };
  const path = `/api/v1/predictions/${userId}/what-if`;
  const { json } = await caller.send('POST', path, plan);
  const { low, high } = json.data.confidence_intervals.total;
  await page.getByText(`${json.data.predicted_total_in_90_days} in 90 days (${low} to ${high})`).waitFor();
  await assertUsable();

  await page.getByText('Change or remove the goal').click();
  await page.getByRole('button', { name: 'Remove' }).click();
  await page.getByText('No goal set').waitFor();
  assert.equal((await caller.get(goals)).status, 404);
  assert.deepEqual(complaints, []);
});
