/** Every page of the dashboard, with answers and without, in a browser. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, test } from 'node:test';
import { allScopes } from '../../src/contracts/access/access.js';
import { indices } from '../../src/lists.js';
import { callerOf } from '../support/http/http.js';
import { inBrowser } from '../support/pages/browser.js';
import { openDashboard } from '../support/pages/dashboard.js';
import { keysOf, sharedService } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const service = await sharedService();
const keys = await keysOf({ after }, service);
const arabic = 'ليلى';
/** The longest possible id. */
const wide = 'W'.repeat(128);
const answers: Readonly<Record<string, number>> = { ada: 40, few: 4, [arabic]: 24, [wide]: 24 };
const skills = ['linear-equations', 'inference', 'a/b & "c"'];

/** Address of each page, and a text on it. */
const pages: Readonly<Record<string, RegExp>> = {
  '#/class': /ada/,
  '#/class?view=map': /Expected accuracy/,
  '#/learner/ada': /40 answers/,
  '#/learner/ada?skill=inference': /Rindfleisch/,
  '#/learner/few': /4 answers/,
  [`#/learner/${arabic}`]: /24 answers/,
  [`#/learner/${wide}?skill=inference`]: /W{128}/,
  '#/skills': /linear-equations/,
  '#/skills/a%2Fb%20%26%20%22c%22': /a\/b & "c"/,
  '#/model': /Reliability/,
  '#/live': /Answers per second/,
  '#/operations': /API keys/,
  '#/operations/settings': /Time zone/,
  '#/operations/webhooks': /ebhooks/,
  '#/operations/erasures': /rasures/,
  '#/operations/parked': /arked/,
  '#/operations/audit': /udit/,
  '#/operations/versions': /ersion/,
};

test(
  'Every page of the dashboard shows its data, is accessible, fits a phone, and downloads CSV',
  inBrowser,
  async (t) => {
    const key = await keys.add({ scopes: allScopes });
    const caller = callerOf(service, key);
    const events = Object.entries(answers).flatMap(([user_id, count]) =>
      indices(count).map((i) => ({
        ...{ user_id, skill_id: skills[i % skills.length], item_id: `q${i % 10}`, is_correct: i % 4 !== 0 },
        ...{ time_spent_seconds: 20 + i, confidence_score: 1 + (i % 5), event_id: `e${i}` },
      })),
    );
    assert.equal((await caller.trackAll(events)).status, 200);
    const name = 'Rindfleischetikettierungsüberwachungsaufgabenübertragungsgesetz'.repeat(2);
    const named = await caller.send('PUT', '/api/v1/skills/inference', { name });
    assert.equal(named.status, 200);
    await waitFor('rows in ClickHouse', async () => {
      const { json } = await caller.get('/api/v1/learners');
      return json.data.learners.length === Object.keys(answers).length && json.data.source_lag_seconds === 0;
    });

    const { page, show, assertUsable, assertFits, complaints } = await openDashboard(t, { ...service, key });
    for (const [hash, text] of Object.entries(pages)) {
      await show(hash);
      assert.match((await page.locator('main').textContent()) ?? '', text, hash);
      await assertUsable();
      await page.setViewportSize({ width: 360, height: 900 });
      await assertFits();
      await page.setViewportSize({ width: 1280, height: 900 });
    }
    await show('#/class');
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'CSV' }).first().click(),
    ]);
    assert.match(download.suggestedFilename(), /\.csv$/);
    const [head = '', ...rows] = (await readFile(await download.path(), 'utf8')).trim().split('\n');
    assert.match(head, /Learner/);
    assert.equal(rows.length, Object.keys(answers).length);
    assert.ok(rows.some((row) => row.startsWith(arabic)));
    assert.deepEqual(complaints, []);
  },
);

test('Every page of the dashboard without data says what to do next', inBrowser, async (t) => {
  const key = await keys.add({ tenant: 'nobody', scopes: allScopes });
  const look = { width: 360, scheme: 'dark' } as const;
  const { page, show, assertUsable, complaints } = await openDashboard(t, { ...service, key }, look);
  const texts = {
    '#/today': 'No classes saved yet',
    '#/class': 'npm run demo',
    '#/learner': 'Learners with answers',
    '#/skills': 'npm run demo',
    '#/model': 'There are fewer than two fitted versions.',
    '#/operations/webhooks': 'No webhooks yet',
    '#/operations/erasures': 'No erasures yet.',
    '#/operations/versions': 'Partitions',
  };
  for (const [hash, text] of Object.entries(texts)) {
    await show(hash);
    await page.getByText(text).first().waitFor();
    assert.equal(await page.getByRole('alert').count(), 0, hash);
    await assertUsable();
  }
  assert.deepEqual(complaints, []);
});
