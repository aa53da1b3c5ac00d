/** The versions of a model as the API tells them, after two fits of made answers, and the way back to the first. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { allScopes } from '../../src/contracts/access/access.js';
import { selectNumber } from '../../src/warehouse/clickhouse/client.js';
import { fitHere } from '../support/builders/fits.js';
import { type MadeSkill, madeAnswers, storeAnswers } from '../support/builders/made-answers.js';
import { callerOf, type JsonAnswer } from '../support/http/http.js';
import { inBrowser } from '../support/pages/browser.js';
import { openDashboard } from '../support/pages/dashboard.js';
import { clickhouseOf, keysOf, redisOf, sharedService } from '../support/servers/service.js';
import { askUntil } from '../support/wait.js';

const service = await sharedService();
const keys = await keysOf({ after }, service);
const redis = await redisOf({ after }, service.redisUrl);
const clickhouse = clickhouseOf({ after }, service);
const tenant = keys.nameOf('versions');
const caller = callerOf(service, await keys.add({ tenant }));
const operator = callerOf(service, await keys.add({ tenant, scopes: allScopes }));
const outsider = callerOf(service, await keys.add({ tenant: 'elsewhere', scopes: ['operator'] }));

const path = '/api/v1/model/versions';
const get = async (of: string): Promise<JsonAnswer['json']> => {
  const { status, json, text } = await caller.get(of);
  assert.equal(status, 200, text);
  return json.data;
};
const rollBack = (body: object, by = operator): Promise<JsonAnswer> =>
  by.call({ path: '/api/v1/model/rollback', body: JSON.stringify(body) });

const made = (pGuess: number, seed: number): object[] => {
  const parameters = { pInit: 0.1, pLearn: 0.25, pGuess, pSlip: 0.05, pForget: 0 };
  const skill = (skillId: string, learners: number): MadeSkill => ({ skillId, learners, parameters });
  const answers = madeAnswers(tenant, [skill('a', 150), skill('b', 150), skill('few', 8)], 8, seed);
  return answers.map((row) => ({ ...row, user_id: `${(row as { user_id: string }).user_id}-${seed}` }));
};

before(async () => {
  assert.deepEqual(await get(path), { in_force: 0, versions: [], next_cursor: null });
  await storeAnswers(clickhouse, made(0.22, 1));
  assert.equal(await fitHere(service, redis, clickhouse, tenant), 'published');
  // Twice as many learners who guess well.
  await storeAnswers(clickhouse, [...made(0.4, 2), ...made(0.4, 3)]);
  assert.equal(await fitHere(service, redis, clickhouse, tenant), 'published');
});

test('each fit tells what it rested on, what it brought and what the guard let pass', async () => {
  const { in_force, versions, next_cursor } = await get(path);
  assert.deepEqual([in_force, next_cursor, versions.length], [2, null, 2]);
  const [second, first] = versions;
  assert.deepEqual(
    [second, first].map((one) => [one.change, one.version, one.action, one.based_on, one.in_force, one.kept]),
    [
      [2, 2, 'fit', 1, true, true],
      [1, 1, 'fit', 0, false, true],
    ],
  );
  const perFit = 308 * 8;
  assert.deepEqual([first.answers, second.answers], [perFit, 3 * perFit]);
  assert.deepEqual([first.learners, second.learners, first.skills], [150, 450, 3]);
  assert.ok(second.new_log_loss <= second.old_log_loss + 0.001, 'the guard let it pass');
  assert.ok(Date.parse(second.published_at) > Date.parse(first.published_at));
  const { version: _, skills } = await get(`${path}/2`);
  const published = skills.filter((one: { published: boolean }) => one.published).length;
  assert.equal(second.skills_published, published);
  assert.match(
    second.summary,
    new RegExp(
      `^${published} of 3 skills have new parameters; the served probability is new: held-out log loss `,
    ),
  );
});

test('each skill of a version has its parameters, and why they were published or held back', async () => {
  const { version, skills } = await get(`${path}/1`);
  assert.equal(version, 1);
  assert.deepEqual(
    skills.map((one: Record<string, unknown>) => [one.skill_id, one.published, one.parameters_version]),
    [
      ['a', true, 1],
      ['b', true, 1],
      ['few', false, 0],
    ],
  );
  const [a, , few] = skills;
  assert.equal(a.reason, 'held-out log loss is not worse');
  assert.ok(a.new_log_loss < a.old_log_loss && Math.abs(a.p_guess - 0.22) < 0.05, JSON.stringify(a));
  assert.match(few.reason, /^fewer than 20 learners/);
  const pages = [await get(`${path}/1?limit=2`)];
  pages.push(await get(`${path}/1?limit=2&cursor=${pages[0].next_cursor}`));
  assert.deepEqual(
    pages.flatMap((page) => page.skills),
    skills,
  );
  assert.equal(pages[1].next_cursor, null);
  assert.deepEqual(await get(`${path}/0`), { version: 0, skills: [], next_cursor: null });
  for (const unknown of ['3', 'x', '99999999999'])
    assert.equal((await caller.get(`${path}/${unknown}`)).json.error.code, 'NOT_FOUND', unknown);
});

test('a version that is put back is in force for answers, in the list and in ClickHouse', async () => {
  const guess = async (version: number): Promise<number> =>
    (await get(`${path}/${version}`)).skills[0].p_guess;
  const inForce = async (version: number) => {
    const told = await askUntil(
      `version ${version}`,
      () => get('/api/v1/skills/a'),
      ({ model_version }) => model_version === version,
    );
    return told.parameters.p_guess;
  };
  const answer = { user_id: 'learner-1-1', skill_id: 'a', is_correct: true };
  assert.equal((await caller.track(answer)).status, 200);
  assert.notEqual(await guess(1), await guess(2));
  assert.equal(await inForce(2), await guess(2));
  const { status, json } = await rollBack({ version: 1 });
  assert.deepEqual([status, json.data], [200, { version: 1 }]);
  assert.equal(await inForce(1), await guess(1));
  const [newest, ...others] = (await get(`${path}?limit=1`)).versions;
  assert.deepEqual(
    [newest.change, newest.action, newest.based_on, newest.in_force],
    [3, 'rollback', 2, true],
  );
  assert.match(newest.summary, /^Version 1 was put into force again by hand, in place of version 2\.$/);
  assert.deepEqual(others, []);
  const count = 'SELECT toUInt32(count()) FROM model_versions WHERE tenant = {tenant:String}';
  assert.equal(await selectNumber(clickhouse, count, { params: { tenant } }), 3);

  assert.equal((await rollBack({ version: 1 })).status, 200, 'whoever lost the answer may ask again');
  assert.equal(await selectNumber(clickhouse, count, { params: { tenant } }), 3);
  assert.equal((await rollBack({ version: 0, tenant }, outsider)).status, 200);
  assert.equal(await inForce(0), 0.2);
  const all: { change: number; in_force: boolean }[] = [];
  for (let cursor = ''; ; ) {
    const page = await get(`${path}?limit=3${cursor}`);
    all.push(...page.versions);
    if (page.next_cursor === null) break;
    cursor = `&cursor=${page.next_cursor}`;
  }
  assert.deepEqual(
    all.map((one) => [one.change, one.in_force]),
    [
      [4, true],
      [3, false],
      [2, false],
      [1, false],
    ],
  );
});

test('what is no version is not put back, nor by those who may not', async () => {
  assert.deepEqual([(await rollBack({ version: 9 })).json.error.code], ['NOT_FOUND']);
  for (const body of [{}, { version: -1 }, { version: 1, tenant: 'a b' }, { version: 1, tenant: '' }])
    assert.equal((await rollBack(body)).status, 400, JSON.stringify(body));
  assert.equal((await rollBack({ version: 0, tenant: null })).status, 200, 'null equals absence');
  assert.equal((await rollBack({ version: 1 }, caller)).status, 403);
  assert.equal((await get(path)).in_force, 0);
});

test(
  'the dashboard compares two versions and, after a question, goes from one to the other',
  inBrowser,
  async (t) => {
    const { in_force } = await get(path);
    const key = await keys.add({ tenant, scopes: allScopes });
    const { page, show, assertUsable, complaints } = await openDashboard(t, { ...service, key });
    await show('#/model?from=1&to=2&parameter=p_guess&days=365');
    await page.getByRole('img', { name: 'Reliability of predictions' }).waitFor();
    await page.getByRole('img', { name: 'p_guess of each skill' }).waitFor();
    const { skills } = await get(`${path}/2`);
    const { reason } = skills.find((one: { skill_id: string }) => one.skill_id === 'few');
    const link = page.getByRole('link', { name: 'few', exact: true });
    await page.getByRole('row').filter({ has: link }).getByText(reason).waitFor();
    await assertUsable();
    await page
      .getByRole('button', { name: /^Go (back|forward)$/ })
      .first()
      .click();
    await page.getByRole('dialog').getByText(`in place of version ${in_force}`).waitFor();
    await assertUsable();
    await page.getByRole('dialog').getByRole('button', { name: /^Go/ }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    const { in_force: now } = await get(path);
    assert.notEqual(now, in_force);
    await page.getByText(`In force: version ${now}`).waitFor();
    assert.deepEqual(complaints, []);
  },
);
