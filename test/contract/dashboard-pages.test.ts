/** Every page of the dashboard in a browser: with learners of all kinds, with none, and on a phone. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, test } from 'node:test';
import { allScopes } from '../../src/contracts/access/access.js';
import { indices } from '../../src/lists.js';
import { callerOf } from '../support/http/http.js';
import { inBrowser } from '../support/pages/browser.js';
import { type Dashboard, openDashboard } from '../support/pages/dashboard.js';
import { keysOf, sharedService } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const service = await sharedService();
const marked = '<script>alert(1)</script>';
const arabic = 'ليلى';
const answers: Readonly<Record<string, number>> = { ada: 40, few: 4, [marked]: 24, [arabic]: 24 };
const skills = ['linear-equations', 'inference', 'a/b & "c"'];

const keys = await keysOf({ after }, service);
const school = { ...service, key: await keys.add({ scopes: allScopes }) };
const nobody = { ...service, key: await keys.add({ tenant: 'nobody', scopes: allScopes }) };

/** Posted by the first test that needs it; there when ClickHouse has it. */
let posted: Promise<void> | undefined;

async function post(): Promise<void> {
  const events = Object.entries(answers).flatMap(([user_id, count]) =>
    indices(count).map((i) => ({
      ...{ user_id, skill_id: skills[i % skills.length], item_id: `q${i % 10}`, is_correct: i % 4 !== 0 },
      ...{ time_spent_seconds: 20 + i, confidence_score: 1 + (i % 5), event_id: `e${i}` },
    })),
  );
  const caller = callerOf(service, school.key);
  assert.equal((await caller.trackAll(events)).status, 200);
  await waitFor('rows in ClickHouse', async () => {
    const { json } = await caller.get('/api/v1/learners');
    return json.data.learners.length === Object.keys(answers).length && json.data.source_lag_seconds === 0;
  });
}

const opened = (...[t, whose, look]: Parameters<typeof openDashboard>): Promise<Dashboard> => {
  posted ??= post();
  return posted.then(() => openDashboard(t, whose, look));
};

/** Addresses, and what stands there of the learners. */
const pages: Readonly<Record<string, RegExp>> = {
  '#/class': /ada/,
  '#/class?view=map': /Expected correct/,
  '#/learner/ada': /40 answers/,
  '#/learner/ada?skill=inference': /inference/,
  '#/learner/few': /4 answers/,
  '#/skills': /linear-equations/,
  '#/skills/a%2Fb%20%26%20%22c%22': /a\/b & "c"/,
  '#/model': /Reliability/,
  '#/live': /Answers a second/,
  '#/operations': /API keys/,
  '#/operations/webhooks': /ebhooks/,
  '#/operations/erasures': /rasures/,
  '#/operations/parked': /arked/,
  '#/operations/audit': /udit/,
  '#/operations/versions': /ersion/,
};

const shownText = async ({ page }: Dashboard): Promise<string> =>
  (await page.locator('main').textContent()) ?? '';

for (const look of [
  { width: 1280, scheme: 'light' },
  { width: 360, scheme: 'dark' },
] as const)
  test(`each page shows what there is, ${look.width} pixels wide, ${look.scheme}`, inBrowser, async (t) => {
    const dashboard = await opened(t, school, look);
    for (const [hash, shown] of Object.entries(pages)) {
      await dashboard.show(hash);
      assert.match(await shownText(dashboard), shown, hash);
      await (look.width === 360 ? dashboard.assertFits() : dashboard.assertUsable());
    }
    assert.deepEqual(dashboard.complaints, []);
  });

test('each page says what to do where there is nothing yet', inBrowser, async (t) => {
  const dashboard = await opened(t, nobody);
  for (const hash of ['#/class', '#/learner', '#/skills', '#/model', '#/operations/erasures']) {
    await dashboard.show(hash);
    assert.equal(await dashboard.page.getByRole('alert').count(), 0, hash);
    await dashboard.assertUsable();
  }
  await dashboard.show('#/class');
  assert.match(await shownText(dashboard), /npm run demo/);
  await dashboard.page.goto(`${service.baseUrl}/dashboard#/learner/no-such-learner`);
  await dashboard.page.getByText('No answer of a learner with exactly this id').first().waitFor();
});

test('names are text: markup is not run, and another direction stays with its name', inBrowser, async (t) => {
  const dashboard = await opened(t, school);
  const { page } = dashboard;
  let asked = false;
  page.on('dialog', (dialog) => {
    asked = true;
    return dialog.dismiss();
  });
  for (const name of [marked, arabic]) {
    await dashboard.show('#/class');
    await page.getByRole('link', { name, exact: true }).first().click();
    await page.getByRole('heading', { level: 1, name, exact: true }).waitFor();
    await page.getByText('24 answers').first().waitFor();
    assert.ok((await page.title()).includes(name));
  }
  assert.deepEqual([asked, await page.locator('main script').count()], [false, 0]);
  assert.deepEqual(dashboard.complaints, []);
});

test('a table is downloaded as CSV', inBrowser, async (t) => {
  const dashboard = await opened(t, school);
  await dashboard.show('#/class');
  const [download] = await Promise.all([
    dashboard.page.waitForEvent('download'),
    dashboard.page.getByRole('button', { name: 'CSV' }).first().click(),
  ]);
  assert.match(download.suggestedFilename(), /\.csv$/);
  const [head = '', ...rows] = (await readFile(await download.path(), 'utf8')).trim().split('\n');
  assert.match(head, /Learner/);
  assert.equal(rows.length, Object.keys(answers).length);
  assert.ok(rows.some((row) => row.startsWith(arabic)));
});

test('a learner is found by the beginning of the id', inBrowser, async (t) => {
  const dashboard = await opened(t, school);
  await dashboard.show('#/learner');
  const box = dashboard.page.getByRole('combobox').or(dashboard.page.getByRole('searchbox')).first();
  await box.fill('ad');
  await dashboard.page
    .getByRole('option', { name: /ada/ })
    .or(dashboard.page.getByRole('link', { name: /ada/ }))
    .first()
    .click();
  await dashboard.page.getByRole('heading', { level: 1, name: 'ada' }).waitFor();
});
