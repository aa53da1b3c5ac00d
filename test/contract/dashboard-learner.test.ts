import assert from 'node:assert/strict';
import { test } from 'node:test';
import { indices } from '../../src/lists.js';
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

/** Long texts, and markup in each text that users can set. */
async function createLongReport(userId: string): Promise<void> {
  const skillIds = indices(12).map((i) => `long-${i}`);
  const markup = '<script>alert(1)</script>';
  for (const id of skillIds)
    await caller.send('PUT', `/api/v1/skills/${id}`, { name: `${markup}${id}${'W'.repeat(90)}` });
  const events = indices(60).map((i) =>
    event({ user_id: userId, skill_id: skillIds[i % 12], is_correct: i % 12 < i / 6, event_id: `r${i}` }),
  );
  assert.equal((await caller.trackAll(events)).status, 200);
  const attributes = Object.fromEntries(indices(10).map((i) => [`${markup}${i}`, 'x'.repeat(128)]));
  const profile = { display_name: `${markup} ${'N'.repeat(100)}`, attributes };
  assert.equal((await caller.send('PUT', `/api/v1/learners/${userId}/profile`, profile)).status, 200);
  const group = { name: `8b ${markup}`, user_ids: [userId] };
  assert.equal((await caller.send('PUT', '/api/v1/groups/8b', group)).status, 200);
  await waitUntilStored(caller);
}

test(
  'The learner page leads with outlook, next step and last answers, and prints one page',
  inBrowser,
  async (t) => {
    const userId = 'printed';
    await createLongReport(userId);
    const { page, show, assertUsableEverywhere, complaints } = await openDashboard(t, service);
    await show(`#/learner/${userId}`);
    await page.getByRole('heading', { level: 1, name: '<script>alert(1)</script> NNN' }).waitFor();
    assert.equal(
      await page.getByRole('link', { name: '8b <script>' }).getAttribute('href'),
      '#/class?group=8b',
    );
    const { json } = await caller.get(`/api/v1/predictions/${userId}`);
    const { share } = json.data.expected_accuracy;
    await page.getByText(`about ${Math.round(100 * share)} of 100 answers should be correct`).waitFor();
    const skillId = json.data.recommendation_codes.find(
      (one: { skill_id: string | null }) => one.skill_id,
    ).skill_id;
    const summary = page.getByRole('region', { name: 'Summary' });
    const step = summary.getByRole('link').first();
    assert.equal(await step.getAttribute('href'), `#/learner/${userId}?skill=${skillId}`);
    await page.getByText(/\d+ of 20 correct/).waitFor();
    const answers = page.locator('.strip').getByRole('listitem');
    const texts = await answers.allTextContents();
    const expected = indices(20).map((i) => ((40 + i) % 12 < (40 + i) / 6 ? '● correct' : '✕ incorrect'));
    assert.deepEqual(
      texts.map((text) => text.split(',')[0]),
      expected,
    );
    await assertUsableEverywhere();
    const margin = { top: '10mm', bottom: '10mm', left: '10mm', right: '10mm' };
    const pdf = await page.pdf({ format: 'A4', margin });
    assert.equal(pdf.toString('latin1').match(/\/Type\s*\/Page\b/g)?.length, 1);
    await page.emulateMedia({ media: 'print' });
    await page.getByText(/Report of \d/).waitFor();
    const printed = (await page.evaluate('document.body.innerText')) as string;
    assert.doesNotMatch(printed, /UTC|80 % range|answers per day|xxx|Id /);
    assert.equal(await page.getByRole('heading', { name: 'Forecast', exact: true }).isVisible(), false);
    assert.deepEqual([await page.locator('main script, main img').count(), complaints], [0, []]);
  },
);

test('The learner page finds learners by name in the last class', inBrowser, async (t) => {
  const users = { 'name-1': 'Linh <b>', 'name-2': 'Lina', 'name-3': 'Zoe' };
  for (const [userId, display_name] of Object.entries(users)) {
    await answer(userId);
    await caller.send('PUT', `/api/v1/learners/${userId}/profile`, { display_name });
  }
  const group = { name: 'Class <i>', user_ids: Object.keys(users) };
  assert.equal((await caller.send('PUT', '/api/v1/groups/named', group)).status, 200);
  const { page, show, assertUsable, complaints } = await openDashboard(t, service);
  await show('#/class?group=named');
  await page.getByRole('heading', { level: 1, name: 'Class <i>' }).waitFor();
  await show('#/learner');
  const search = page.getByRole('combobox', { name: 'or by name in Class <i>' });
  const options = page.getByRole('listbox', { name: 'Matching learners' }).getByRole('option');
  await search.fill('lin');
  await options.nth(1).waitFor();
  assert.deepEqual(await options.allTextContents(), ['Linh <b> (name-1)Class <i>', 'Lina (name-2)Class <i>']);
  await assertUsable();
  await search.press('Enter');
  assert.equal(await page.evaluate('location.hash'), '#/learner');
  await search.fill('LINH');
  await page.getByRole('button', { name: 'Open', exact: true }).click();
  await page.getByRole('heading', { level: 1, name: 'Linh <b>' }).waitFor();
  assert.equal(await page.evaluate('location.hash'), '#/learner/name-1');
  await search.fill('name-3');
  await search.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Zoe' }).waitFor();
  assert.deepEqual(complaints, []);
});

test('Skills with many fast answers are not among the strongest', inBrowser, async (t) => {
  const userId = 'fast';
  const answers = ['fast-skill', 'slow-skill', 'weak-1', 'weak-2'].flatMap((skill_id) =>
    indices(10).map((i) =>
      event({
        ...{ user_id: userId, skill_id, event_id: `${skill_id}${i}` },
        ...{
          is_correct: !skill_id.startsWith('weak'),
          time_spent_seconds: skill_id === 'fast-skill' ? 1 : 40,
        },
      }),
    ),
  );
  assert.equal((await caller.trackAll(answers)).status, 200);
  const { page, show, complaints } = await openDashboard(t, service);
  await show(`#/learner/${userId}`);
  const strongest = page.locator('.extremes > div').nth(1);
  await strongest.getByRole('link', { name: 'slow-skill' }).waitFor();
  assert.equal(await strongest.getByRole('link').count(), 1);
  assert.deepEqual(complaints, []);
});
