/** The page Today and the class views, with a saved class, in a browser. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { computeSum, indices } from '../../src/lists.js';
import { callerOf, event } from '../support/http/http.js';
import { inBrowser } from '../support/pages/browser.js';
import { openDashboard } from '../support/pages/dashboard.js';
import { keysOf, sharedService } from '../support/servers/service.js';
import { waitFor, waitUntilStored } from '../support/wait.js';

const service = await sharedService();
const caller = callerOf(service, service.key);
const dayMs = 86_400_000;
const markup = '<script>alert(1)</script>';
const skills = ['ratios', 'commas', `${markup} skill`];
const learners = [...indices(29).map((i) => `learner-${i + 10}`), `${markup} id`];
/** The last twelve learners are weak, and stopped ten days ago. */
const isWeak = (learner: number): boolean => learner >= 18;

const daysAgo = (days: number): string => new Date(Date.now() - days * dayMs).toISOString();

async function put(path: string, body: object): Promise<void> {
  assert.equal((await caller.send('PUT', `/api/v1${path}`, body)).status, 200);
}

/** A class of 30 with answers on three skills over 40 days. */
async function saveClass(groupId: string): Promise<void> {
  for (const [learner, user_id] of learners.entries()) {
    const events = indices(24).map((i) =>
      event({
        ...{ user_id, skill_id: skills[i % 3], item_id: `q${i % 5}` },
        is_correct: !isWeak(learner) && (i + learner) % 4 !== 0,
        occurred_at: daysAgo((isWeak(learner) ? 10 : 1) + 1.2 * (24 - i)),
      }),
    );
    assert.equal((await caller.trackAll(events)).status, 200);
    await put(`/learners/${encodeURIComponent(user_id)}/profile`, {
      display_name: `Name ${learner} ${markup}`,
    });
  }
  await put(`/goals/learner-10`, { target_score: 1590, target_date: daysAgo(-20).slice(0, 10) });
  await put(`/skills/ratios`, { name: 'Ratios' });
  await put(`/groups/${groupId}`, { name: `8a ${markup}`, user_ids: [...learners, 'without-answers'] });
  await put('/groups/other', { name: '9b', user_ids: [] });
  await waitUntilStored(caller);
}

const saved = saveClass('class-8a');
const weakest = `Name 29 ${markup}`;

test(
  'Today names the learners and skills of a class that need the teacher, on one screen',
  inBrowser,
  async (t) => {
    await saved;
    const { page, show, evaluate, complaints } = await openDashboard(t, service);
    const menu = page.getByRole('navigation').getByRole('link', { name: 'Today' });
    await menu.click();
    await page.getByLabel('Class', { exact: true }).fill(`8a ${markup}`);
    await page.getByRole('heading', { level: 1, name: `Today: 8a ${markup}` }).waitFor();
    assert.match(page.url(), /today\?group=class-8a/);
    const { json } = await caller.get('/api/v1/groups/class-8a/summary');
    const { attention, reteach, learners: count } = json.data;
    assert.ok(attention.length > 1 && reteach.length > 0);
    await page
      .getByText(/no answers for 1[12] days/)
      .first()
      .waitFor();
    for (const { display_name, text } of attention)
      await page
        .getByRole('listitem')
        .filter({ hasText: display_name })
        .filter({ hasText: text })
        .first()
        .waitFor();
    for (const { skill_name } of reteach)
      await page.getByRole('link', { name: skill_name, exact: true }).waitFor();
    const tiles = await page.locator('.stat-value').allTextContents();
    assert.equal(tiles[0], `${count}`);
    const assessed = computeSum(tiles.slice(2, 6).map(Number));
    assert.equal(assessed, json.data.with_answers);
    assert.ok((await evaluate<number>('document.documentElement.scrollHeight')) <= 900);
    await page.getByRole('link', { name: weakest }).first().click();
    await page.getByRole('heading', { level: 1 }).filter({ hasText: markup }).waitFor();
    // The menu opens the class again.
    await menu.click();
    await page.getByRole('heading', { level: 1, name: '8a' }).waitFor();
    await page.getByLabel('Period').selectOption('7');
    await page.getByText('all learners, last 7 days').waitFor();
    await show('#/today?group=unknown');
    await page.getByText('No group has this group_id').waitFor();
    assert.equal(await page.locator('main script').count(), 0);
    assert.deepEqual(
      complaints.filter((text) => !text.includes('status of 404')),
      [],
    );
  },
);

test('Today and Class open the class that was chosen last on either page', inBrowser, async (t) => {
  await saved;
  const { page, show } = await openDashboard(t, service);
  const menu = page.getByRole('navigation');
  const choose = (name: string) => page.getByRole('combobox', { name: 'Class' }).fill(name);
  const waitForTitle = (name: string) => page.getByRole('heading', { level: 1, name }).waitFor();
  await show('#/today?group=class-8a');
  await choose('9b');
  await waitForTitle('Today: 9b');
  await menu.getByRole('link', { name: 'Class' }).click();
  await waitForTitle('9b');
  await choose(`8a ${markup}`);
  await waitForTitle('8a');
  await menu.getByRole('link', { name: 'Today' }).click();
  await waitForTitle('Today: 8a');
  await menu.getByRole('link', { name: 'Skills' }).click();
  await menu.getByRole('link', { name: 'Class' }).click();
  await waitForTitle('8a');
});

test(
  'The skills of a class are ranked by need, with the weakest learners of a skill first',
  inBrowser,
  async (t) => {
    await saved;
    const { page, show, complaints } = await openDashboard(t, service);
    await show('#/class?group=class-8a&view=skills');
    const { json } = await caller.get('/api/v1/groups/class-8a/skills');
    const ranked: { name: string; struggling: number; learners: number }[] = json.data.skills;
    const rows = page.getByRole('region', { name: 'Skills of the class' }).locator('tbody tr');
    assert.deepEqual(
      await rows.locator('td:first-child').allTextContents(),
      ranked.map(({ name }) => name),
    );
    const [first] = ranked;
    await page.getByText(`${first?.struggling} of ${first?.learners} learners struggle`).waitFor();
    await page.getByRole('button', { name: 'Ratios' }).press('Enter');
    await page.locator('h2:focus', { hasText: 'Ratios' }).waitFor();
    const learnersOfSkill = page.getByRole('region', { name: 'Learners of Ratios' }).locator('tbody a');
    await learnersOfSkill.nth(29).waitFor();
    const names = await learnersOfSkill.allTextContents();
    assert.deepEqual(
      new Set(names.slice(0, 12)),
      new Set(indices(12).map((i) => `Name ${18 + i} ${markup}`)),
    );
    assert.match((await learnersOfSkill.first().getAttribute('href')) ?? '', /skill=ratios$/);
    await page.getByText('1 learner without answers on this skill').waitFor();
    const marked = page.getByRole('region', { name: 'Learners of Ratios' }).getByText('struggles');
    const { struggling } = ranked.find(({ name }) => name === 'Ratios') ?? {};
    assert.equal(await marked.count(), struggling);
    const period = page.getByLabel('Period');
    await period.focus();
    await period.selectOption('7');
    await page.getByText('compared with the 7 days before').waitFor();
    await page.locator('select:focus').waitFor();
    await show(`#/class?ids=learner-10&view=skills`);
    await page.getByText('need a saved class').waitFor();
    assert.deepEqual(complaints, []);
  },
);

test('"Back" returns to the scroll position, the filter and the order of the class', inBrowser, async (t) => {
  await saved;
  const { page, show, evaluate } = await openDashboard(t, service);
  await show('#/class?group=class-8a');
  await page.getByLabel('Filter Learners of the class').fill('Name 2');
  await page.getByRole('button', { name: 'Answers', exact: true }).click();
  const names = page.locator('tbody a.name');
  const shown = await names.allTextContents();
  assert.equal(shown.length, 11);
  await names.nth(9).scrollIntoViewIfNeeded();
  const before = await evaluate<number>('scrollY');
  assert.ok(before > 0);
  await names.nth(9).click();
  await page.getByRole('heading', { level: 1 }).filter({ hasNotText: '8a' }).waitFor();
  assert.equal(await evaluate('scrollY'), 0);
  await page.goBack();
  await waitFor('the position', async () => Math.abs((await evaluate<number>('scrollY')) - before) < 2);
  assert.deepEqual(await names.allTextContents(), shown);
  assert.equal(await page.getByLabel('Filter Learners of the class').inputValue(), 'Name 2');
});

test('The heat map has means, names and a link to each learner and skill', inBrowser, async (t) => {
  await saved;
  const { page, show } = await openDashboard(t, service);
  await show('#/class?group=class-8a&view=map');
  const labels = await page.locator('.heat text').allTextContents();
  assert.ok(labels.includes('Mean of skills'));
  assert.ok(labels.some((label) => label.startsWith('Name 29')));
  const { json } = await caller.send('POST', '/api/v1/mastery', { user_ids: learners });
  const ratios: number[] = json.data.results.map(
    (one: { data: { expected_accuracy: { ratios: number } } }) => one.data.expected_accuracy.ratios,
  );
  const mean = computeSum(ratios) / ratios.length;
  assert.ok(labels.includes(`${Math.round(100 * mean)}`));
  const map = page.getByRole('application');
  await map.press('ArrowDown');
  await map.press('ArrowLeft');
  await page.getByText(/mean of skills \d/).waitFor();
  await map.press('ArrowRight');
  const href = await page.locator('a.heat-cell').getAttribute('href');
  assert.match(href ?? '', /^#\/learner\/.*\?skill=/);
  await map.press('Enter');
  await page.waitForURL(/#\/learner\/.*\?skill=/);
  await page.goBack();
  await page.getByText('Show as table').click();
  await page
    .getByRole('region', { name: 'Expected accuracy in the class' })
    .getByRole('link')
    .first()
    .waitFor();
});

test('A class is saved from a list of ids, renamed and deleted with the keyboard', inBrowser, async (t) => {
  await saved;
  const { page, show, complaints } = await openDashboard(t, service);
  await show(`#/class?ids=${encodeURIComponent('learner-10\nlearner-11')}`);
  await page.getByRole('button', { name: 'Save as class' }).press('Enter');
  await page.getByLabel('Name').fill('New class');
  await page.getByLabel('Name').press('Enter');
  await page.getByRole('heading', { level: 1, name: 'New class' }).waitFor();
  const list = async () =>
    (await caller.get('/api/v1/groups')).json.data.groups
      .filter(({ group_id }: { group_id: string }) => group_id.startsWith('new-class'))
      .map(({ name, kind, members }: { name: string; kind: string; members: number }) => [
        name,
        kind,
        members,
      ]);
  assert.deepEqual(await list(), [['New class', 'class', 2]]);
  await page.getByRole('button', { name: 'Edit class' }).press('Enter');
  await page.getByLabel('Name').fill('Club');
  await page.getByLabel('Kind').fill('club');
  await page.getByLabel('Learner ids').fill('learner-12');
  await page.getByRole('button', { name: 'Save' }).press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Club' }).waitFor();
  assert.deepEqual(await list(), [['Club', 'club', 1]]);
  await page.getByRole('button', { name: 'Edit class' }).press('Enter');
  await page.getByRole('button', { name: 'Delete…' }).press('Enter');
  await page.getByRole('button', { name: 'Delete class' }).press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Class' }).waitFor();
  assert.deepEqual(await list(), []);
  assert.deepEqual(complaints, []);
});

test('A key without the scope write can read a class, and not change it', inBrowser, async (t) => {
  await saved;
  const keys = await keysOf(t, service);
  const reader = { ...service, key: await keys.add({ scopes: ['read'] }) };
  const { page, show } = await openDashboard(t, reader);
  await show('#/class?group=class-8a');
  await page.getByRole('heading', { level: 1, name: '8a' }).waitFor();
  assert.equal(await page.getByRole('button', { name: /Edit class|Save as class/ }).count(), 0);
});

test('Today and the class views pass axe on a phone and a desktop, and fit a page of paper', {
  ...inBrowser,
  timeout: 240_000,
}, async (t) => {
  await saved;
  const { page, show, assertFits, assertUsableEverywhere, complaints } = await openDashboard(t, service);
  const hashes = ['today?', 'class?', 'class?view=skills&', 'class?view=map&'].map(
    (at) => `#/${at}group=class-8a`,
  );
  for (const hash of hashes) {
    await page.emulateMedia({ media: 'screen' });
    await show(hash);
    await assertUsableEverywhere();
    // A4 in CSS pixels.
    await page.setViewportSize({ width: 718, height: 1000 });
    await page.emulateMedia({ media: 'print' });
    if (!hash.includes('map')) await assertFits();
  }
  await page.emulateMedia({ media: 'screen' });
  await show('#/class?group=class-8a');
  await page.setViewportSize({ width: 360, height: 900 });
  const cut = await page.locator('.members .scroll').evaluate((part) => part.scrollWidth - part.clientWidth);
  assert.ok(cut <= 0, `the table is ${cut} pixels wider than a phone`);
  await page
    .locator('.members td', { hasText: /^\d+ %/ })
    .first()
    .waitFor();
  await show('#/class?group=class-8a&view=skills');
  await page
    .getByRole('region', { name: 'Skills of the class' })
    .locator('td', { hasText: / to / })
    .first()
    .waitFor();
  const menuCut = await page.getByRole('navigation').evaluate((part) => part.scrollWidth - part.clientWidth);
  assert.ok(menuCut <= 0, `the menu is ${menuCut} pixels wider than a phone`);
  assert.deepEqual(complaints, []);
});
