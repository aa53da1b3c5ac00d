/** The versions of a tenant's model over HTTP and on the dashboard, after two fits, and the return to an earlier one. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { allScopes } from '../../src/contracts/access/access.js';
import { activeModelsKey, modelVersionKey } from '../../src/store/redis/keys.js';
import { selectNumber } from '../../src/warehouse/clickhouse/client.js';
import { fitHere } from '../support/builders/fits.js';
import { type MadeSkill, madeAnswers, storeAnswers } from '../support/builders/made-answers.js';
import { callerOf, event, type JsonAnswer } from '../support/http/http.js';
import { readPages } from '../support/http/read-pages.js';
import { inBrowser } from '../support/pages/browser.js';
import { openDashboard } from '../support/pages/dashboard.js';
import { clickhouseOf, keysOf, redisOf, sharedService } from '../support/servers/service.js';
import { valuesOf } from '../support/values-of.js';
import { askUntil } from '../support/wait.js';

const service = await sharedService();
const keys = await keysOf({ after }, service);
const redis = await redisOf({ after }, service.redisUrl);
const clickhouse = clickhouseOf({ after }, service);
const tenant = keys.nameOf('versions');
const caller = callerOf(service, await keys.add({ tenant }));
const operatorKey = await keys.add({ tenant, scopes: allScopes });
const operator = callerOf(service, operatorKey);

const path = '/api/v1/model/versions';
async function get(path: string): Promise<JsonAnswer['json']> {
  const { status, json, text } = await caller.get(path);
  assert.equal(status, 200, text);
  return json.data;
}
const rollBack = (body: object, by = operator): Promise<JsonAnswer> =>
  by.send('POST', '/api/v1/model/rollback', body);

const answersEach = 8;
const learners = { a: 150, b: 150, few: 8 };
const answersOfFit = answersEach * (150 + 150 + 8);

function makeAnswers(pGuess: number, seed: number): object[] {
  const parameters = { pInit: 0.1, pLearn: 0.25, pGuess, pSlip: 0.05, pForget: 0 };
  const skills = Object.entries(learners).map(
    ([skillId, learners]): MadeSkill => ({ skillId, learners, parameters }),
  );
  return madeAnswers(tenant, skills, answersEach, seed).map((row) => ({
    ...row,
    user_id: `${(row as { user_id: string }).user_id}-${seed}`,
  }));
}

before(async () => {
  assert.deepEqual(await get(path), { in_force: 0, versions: [], next_cursor: null });
  await storeAnswers(clickhouse, makeAnswers(0.22, 1));
  assert.equal(await fitHere(service, redis, clickhouse, tenant), 'published');
  // Twice as many learners who guess well.
  await storeAnswers(clickhouse, [...makeAnswers(0.4, 2), ...makeAnswers(0.4, 3)]);
  assert.equal(await fitHere(service, redis, clickhouse, tenant), 'published');
});

test('GET model/versions lists the fits with their data, losses and a summary', async () => {
  const { in_force, versions, next_cursor } = await get(path);
  assert.deepEqual([in_force, next_cursor], [2, null]);
  assert.deepEqual(
    versions.map((one: Record<string, unknown>) => [
      ...[one.change, one.version, one.action, one.based_on, one.in_force, one.kept],
      ...[one.answers, one.learners, one.skills],
    ]),
    [
      [2, 2, 'fit', 1, true, true, 3 * answersOfFit, 450, 3],
      [1, 1, 'fit', 0, false, true, answersOfFit, 150, 3],
    ],
  );
  const [second, first] = versions;
  assert.ok(second.new_log_loss <= second.old_log_loss + 0.001, 'a fit is not worse than the version before');
  assert.ok(Date.parse(second.published_at) > Date.parse(first.published_at));
  const { skills } = await get(`${path}/2`);
  const published = skills.filter((one: { published: boolean }) => one.published).length;
  assert.equal(second.skills_published, published);
  const summary = `${published} of 3 skills have new parameters; probability model: new, held-out log loss `;
  assert.ok(second.summary.startsWith(summary), second.summary);
});

test('GET model/versions/{version} lists the parameters of each skill and why they were published', async () => {
  const { version, skills } = await get(`${path}/1`);
  assert.equal(version, 1);
  const shown = skills.map((one: JsonAnswer['json']) =>
    [one.skill_id, one.published, one.parameters_version].join(),
  );
  assert.deepEqual(shown, ['a,true,1', 'b,true,1', 'few,false,0']);
  const [a, , few] = skills;
  assert.equal(a.reason, 'held-out log loss is not higher');
  assert.ok(a.new_log_loss < a.old_log_loss && Math.abs(a.p_guess - 0.22) < 0.05, JSON.stringify(a));
  assert.match(few.reason, /^fewer than 20 learners/);
  const pages = await readPages((query) => caller.get(`${path}/1${query}`), 'skills', 2);
  assert.deepEqual(pages, [skills.slice(0, 2), skills.slice(2)]);
  assert.deepEqual(await get(`${path}/0`), { version: 0, skills: [], next_cursor: null });
  for (const unknown of ['3', 'x', '99999999999'])
    assert.equal((await caller.get(`${path}/${unknown}`)).json.error.code, 'NOT_FOUND', unknown);
});

test('POST model/rollback activates an earlier version and records the change once', async () => {
  const publishedGuess = async (version: number): Promise<number> =>
    (await get(`${path}/${version}`)).skills[0].p_guess;
  const servedGuess = async (version: number): Promise<number> => {
    const data = await askUntil(
      `version ${version}`,
      () => get('/api/v1/skills/a'),
      ({ model_version }) => model_version === version,
    );
    return data.parameters.p_guess;
  };
  assert.equal((await caller.track(event({ skill_id: 'a' }))).status, 200);
  assert.notEqual(await publishedGuess(1), await publishedGuess(2));
  assert.equal(await servedGuess(2), await publishedGuess(2));
  const { status, json } = await rollBack({ version: 1 });
  assert.deepEqual([status, json.data], [200, { version: 1 }]);
  assert.equal(await servedGuess(1), await publishedGuess(1));
  assert.equal((await rollBack({ version: 1 })).status, 200, 'a repeated request succeeds');
  const count = 'SELECT toUInt32(count()) FROM model_versions WHERE tenant = {tenant:String}';
  assert.equal(await selectNumber(clickhouse, count, { params: { tenant } }), 3);
  const [newest] = (await get(`${path}?limit=1`)).versions;
  assert.deepEqual(
    [newest.change, newest.action, newest.based_on, newest.in_force, newest.summary],
    [3, 'rollback', 2, true, 'A rollback activated version 1 in place of version 2.'],
  );

  const outsider = callerOf(service, await keys.add({ tenant: 'elsewhere', scopes: ['operator'] }));
  assert.equal((await rollBack({ version: 0, tenant }, outsider)).status, 200);
  assert.equal(await servedGuess(0), 0.2);
  const first = await get(`${path}?limit=3`);
  const second = await get(`${path}?limit=3&cursor=${first.next_cursor}`);
  const changes = [...first.versions, ...second.versions].map((one) => `${one.change} ${one.in_force}`);
  assert.deepEqual([changes, second.next_cursor], [['4 true', '3 false', '2 false', '1 false'], null]);
});

test('POST model/rollback rejects an unknown version with 404 and an invalid body with 400', async () => {
  assert.equal((await rollBack({ version: 9 })).json.error.code, 'NOT_FOUND');
  for (const body of [{}, { version: -1 }, { version: 1, tenant: 'a b' }, { version: 1, tenant: '' }])
    assert.equal((await rollBack(body)).status, 400, JSON.stringify(body));
  assert.equal((await rollBack({ version: 0, tenant: null })).status, 200, 'null means absent');
  assert.equal((await get(path)).in_force, 0);
});

test('The model page compares two versions and activates one after a confirmation', inBrowser, async (t) => {
  const { in_force } = await get(path);
  const { page, show, assertUsable, complaints } = await openDashboard(t, { ...service, key: operatorKey });
  await show('#/model?from=1&to=2&parameter=p_guess&days=365');
  await page.getByRole('img', { name: 'Reliability of predictions' }).waitFor();
  await page.getByText('Not enough data to judge predictions').waitFor();
  await page.getByRole('img', { name: 'p_guess of each skill' }).waitFor();
  const { skills } = await get(`${path}/2`);
  const { reason } = skills.find((one: { skill_id: string }) => one.skill_id === 'few');
  const link = page.getByRole('link', { name: 'few', exact: true });
  await page.getByRole('row').filter({ has: link }).getByText(reason).waitFor();
  await assertUsable();
  const goButtons = page.getByRole('button', { name: /^Roll (back|forward)$/ });
  await goButtons.first().click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText(`instead of version ${in_force}`).waitFor();
  await dialog.getByText(/^\d+ skills? gets? other parameters, of \d+\./).waitFor();
  await assertUsable();
  await dialog.getByRole('button', { name: /^Roll/ }).click();
  await dialog.waitFor({ state: 'detached' });
  const { in_force: now } = await get(path);
  assert.notEqual(now, in_force);
  await page.getByText(`Current parameters: version ${now}`).waitFor();
  assert.deepEqual(complaints, []);
});

test('An unreadable model rejects the answers of its tenant only, with 503', async () => {
  const unreadable = keys.nameOf('unreadable');
  await redis.hset(modelVersionKey(unreadable, 1), { model: '{"format":99}' });
  await redis.hset(activeModelsKey, unreadable, 1);
  const broken = callerOf(service, await keys.add({ tenant: 'unreadable' }));
  const healthy = callerOf(service, await keys.add({ tenant: 'healthy' }));
  // Concurrent answers, so that a worker loads the model for a batch with both tenants.
  const callers = Array.from({ length: 20 }, () => [broken, healthy]).flat();
  const answers = await Promise.all(callers.map((by, i) => by.track(event({ user_id: `learner-${i}` }))));
  const expected = callers.map((by) => (by === broken ? 503 : 200));
  assert.deepEqual(valuesOf(answers, 'status'), expected);
});
