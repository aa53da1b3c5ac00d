/** Catalogues in Redis, and the models that are served with them. One Redis for the file, one tenant per test. */
import assert from 'node:assert/strict';
import { after, beforeEach, type TestContext, test } from 'node:test';
import { loadSkillsFile } from '../../src/app/startup/skills-file.js';
import { encodeModel } from '../../src/contracts/models/stored-model.js';
import { defaultSkillSetting, type SkillSetting } from '../../src/domain/catalogue/catalogue.js';
import {
  resolveSkillModel,
  type TenantModel,
  unfittedModel,
} from '../../src/domain/catalogue/tenant-model.js';
import { indices } from '../../src/lists.js';
import { createLogger } from '../../src/logger.js';
import {
  readCatalogue as readMarked,
  type SkillWrite,
  writeSkills,
} from '../../src/store/catalogue/catalogue-store.js';
import { countCommonSkills, createRegisteredSkills } from '../../src/store/catalogue/registered-skills.js';
import { createServedModels } from '../../src/store/catalogue/served-models.js';
import { publishModel } from '../../src/store/models/model-store.js';
import type { RedisClient } from '../../src/store/redis/connection/client.js';
import {
  catalogueJournalKey,
  catalogueKey,
  catalogueRevisionsKey,
  registeredSkillsKey,
} from '../../src/store/redis/keys.js';
import { openDeployment } from '../../src/store/redis/server/deployment.js';
import { seeded } from '../support/builders/random.js';
import { startTestRedis } from '../support/servers/embedded.js';
import { redisOf, startBareRedis } from '../support/servers/service.js';
import { askUntil, waitFor } from '../support/wait.js';

const now = 1_800_000_000_000;
const parameters = { pInit: 0.4, pLearn: 0.05, pGuess: 0.25, pSlip: 0.1, pForget: 0.02 };
const maxSkills = 2000;
const limits = { knownSkills: maxSkills };
const logger = createLogger('silent', 'test');

const redis = await redisOf({ after }, await startTestRedis({ after }));
await openDeployment(redis, async () => false);

let tests = 0;
let tenant = '';
beforeEach(() => {
  tests += 1;
  tenant = `school-${tests}`;
});

const readCatalogue = async (of = tenant) => (await readMarked(redis, of)).catalogue;

const unavailable = { code: 'UNAVAILABLE' };

const write = (
  skillId: string,
  setting: Partial<SkillSetting> = {},
  ifRevision: SkillWrite['ifRevision'] = null,
): SkillWrite => ({ skillId, setting: { ...defaultSkillSetting, ...setting }, ifRevision });
const removal = (skillId: string): SkillWrite => ({ ...write(skillId), setting: null });

const put = (...writes: SkillWrite[]) => writeSkills(redis, tenant, writes, now, limits);

const statusesOf = (results: readonly { readonly status: string }[]) => results.map(({ status }) => status);

function createModels(
  t: TestContext,
  client: RedisClient = redis,
  error: (facts: Readonly<Record<string, unknown>>) => void = ({ err }) => assert.ifError(err),
) {
  const models = createServedModels(async () => client, { error }, { pollMs: 50 });
  t.after(() => models.close());
  return models;
}

test('writeSkills stores each entry with the next revision and appends it to the journal', async () => {
  const first = { name: 'Linear\tequations', section: 'math', weight: 2.5, parameters } as const;
  const results = await put(write('a\\b', first), write('__proto__'), write('a\\b', { section: 'rw' }));
  const written = results.map(
    (result) => 'entry' in result && `${result.entry.revision} ${result.entry.section}`,
  );
  assert.deepEqual(written, ['1 math', '2 null', '3 rw']);
  const { revision, entries } = await readCatalogue();
  assert.equal(revision, 3);
  const stored = { ...defaultSkillSetting, updatedAt: now };
  assert.deepEqual(Object.fromEntries(entries), {
    'a\\b': { ...stored, section: 'rw', revision: 3 },
    ['__proto__']: { ...stored, revision: 2 },
  });
  assert.equal(await countCommonSkills(redis, tenant), 2);
  const rows = (await redis.xrange(catalogueJournalKey, '-', '+')).map(([, fields]) => fields);
  const skill = `${now}\t${tenant}`;
  assert.deepEqual(rows, [
    ['k', 'skill', 'r', `1\t${skill}\ta\\\\b\tLinear\\tequations\tmath\t2.5\t0.4\t0.05\t0.25\t0.1\t0.02`],
    ['k', 'skill', 'r', `2\t${skill}\t__proto__\t\\N\t\t1\t\\N\t\\N\t\\N\t\\N\t\\N`],
    ['k', 'skill', 'r', `3\t${skill}\ta\\\\b\t\\N\trw\t1\t\\N\t\\N\t\\N\t\\N\t\\N`],
  ]);
  assert.deepEqual((await readCatalogue('other')).entries, new Map());
});

test('writeSkills compares the expected revision of each entry separately', async () => {
  await put(write('a'));
  const results = await put(
    write('a', {}, ['0']),
    write('b', {}, ['0']),
    write('c', {}, ['1']),
    write('a', { name: '"revision":7' }, ['7', '1']),
    write('a', {}, ['7', '1']),
  );
  assert.deepEqual(statusesOf(results), ['mismatch', 'written', 'mismatch', 'written', 'mismatch']);
  assert.equal((await readCatalogue()).revision, 3);
  assert.equal(await countCommonSkills(redis, tenant), 2, 'the rejected skill c was registered');
});

test('writeSkills never stores an earlier update time than before, even if the clock moves back', async () => {
  const timeAt = async (clock: number): Promise<unknown> => {
    const [result] = await writeSkills(redis, tenant, [write('a')], clock, limits);
    return result?.status === 'written' && result.entry.updatedAt;
  };
  assert.deepEqual([await timeAt(now), await timeAt(now - 5000), await timeAt(now + 1)], [now, now, now + 1]);
});

test('writeSkills rejects new skills above the tenant limit and writes into a full journal', async () => {
  const many = indices(maxSkills).map((i) => write(`skill-${i}`));
  assert.ok((await put(...many)).every(({ status }) => status === 'written'));
  const results = await put(write('one more'), write('skill-7', { section: 'rw' }));
  assert.deepEqual(statusesOf(results), ['full', 'written']);
  assert.equal(await redis.hlen(catalogueKey(tenant)), maxSkills);
  const file = new Map([[tenant, new Map(['skill-7', 'x', 'y', 'z'].map((id) => [id, {}]))]]);
  const message = `SKILLS_FILE: tenant ${tenant} .* "x" and 2 more; allowed: 2,000 .*MAX_SKILLS_PER_TENANT`;
  await assert.rejects(loadSkillsFile(file, redis, maxSkills, logger), new RegExp(`^StartError: ${message}`));
  assert.equal(await countCommonSkills(redis, tenant), maxSkills);
  const journal = (await redis.xlen(catalogueJournalKey)) + 1;
  const writes = [write('a'), write('b')];
  await assert.rejects(writeSkills(redis, 'crowded', writes, now, { ...limits, journal }), unavailable);
  assert.equal((await readCatalogue('crowded')).entries.size, 1);
  assert.equal(await countCommonSkills(redis, 'crowded'), 1);
});

test('loadSkillsFile changes each skill once when several processes load the same file', async () => {
  const ids = indices(700).map((i) => `skill-${i}`);
  await put(...ids.slice(0, 10).map((id) => write(id, { name: 'Set earlier' })));
  const file = new Map([[tenant, new Map(ids.map((id) => [id, { section: 'math' as const }]))]]);
  await Promise.all([1, 2, 3].map(() => loadSkillsFile(file, redis, maxSkills, logger)));
  const { revision, entries } = await readCatalogue();
  assert.equal(revision, 710);
  assert.ok([...entries.values()].every(({ section }) => section === 'math'));
  assert.equal(entries.get('skill-9')?.name, 'Set earlier');
});

test('loadSkillsFile registers skills that a killed process had only stored', async () => {
  const file = new Map([[tenant, new Map(['a', 'b'].map((id) => [id, { section: 'math' as const }]))]]);
  await loadSkillsFile(file, redis, maxSkills, logger);
  await redis.zrem(registeredSkillsKey(tenant), 'b');
  await loadSkillsFile(file, redis, maxSkills, logger);
  assert.equal(await countCommonSkills(redis, tenant), 2);
  assert.equal((await readCatalogue()).revision, 2, 'an unchanged entry was written again');
});

test('RegisteredSkills keeps a skill that is configured again during its removal', async () => {
  await put(write('a'), removal('a'), write('a'));
  await createRegisteredSkills(redis).unregister(tenant, 'a');
  assert.equal(await countCommonSkills(redis, tenant), 1);
  await put(removal('a'));
  await createRegisteredSkills(redis).unregister(tenant, 'a');
  assert.equal(await countCommonSkills(redis, tenant), 0);
});

test('ServedModels reads changes to the same catalogue as a complete read', async (t) => {
  const models = createModels(t);
  const random = seeded(7);
  const randomWrite = () => {
    const changed = write(`skill-${Math.floor(random() * 300)}`, { weight: 1 + random() });
    return random() < 0.3 ? removal(changed.skillId) : changed;
  };
  for (const writes of [1, 5, 0, 400, 1000, 1, 1001, 2]) {
    await put(...indices(writes).map(randomWrite));
    const { catalogue } = await models.get(tenant);
    const complete = await readCatalogue();
    assert.deepEqual(catalogue.entries, complete.entries);
    assert.equal(catalogue.revision, complete.revision);
    for (const section of ['math', 'rw'] as const) {
      const { weight, ...counts } = catalogue.totals[section];
      assert.deepEqual(counts, { skills: complete.entries.size / 2, placed: 0 });
      assert.ok(Math.abs(weight - complete.totals[section].weight) < 1e-9);
    }
  }
});

test('ServedModels returns the same object until the model or the catalogue changes', async (t) => {
  const models = createModels(t);
  const identical = async (): Promise<TenantModel> => {
    const all = await Promise.all(indices(10).map(() => models.get(tenant)));
    const first = await models.get(tenant);
    assert.ok(all.every((model) => model === first));
    return first;
  };
  assert.equal((await identical()).catalogue.revision, 0);
  for (let revision = 1; revision <= 10; revision++) {
    await put(write('a', { weight: revision, parameters }));
    const model = await identical();
    assert.equal(model.catalogue.revision, revision);
    assert.equal(model.catalogue.entries.get('a')?.weight, revision);
    const { parameters: served, version } = resolveSkillModel(model, 'a');
    assert.deepEqual([served, version], [parameters, revision]);
  }
  const model = encodeModel({ ...unfittedModel, version: 1 });
  const texts = { model, report: '{}', items: null };
  assert.ok(await publishModel(redis, { tenant, version: 1, basedOn: 0, publishedAt: now, ...texts }));
  await waitFor('the published model', async () => (await models.get(tenant)).version === 1);
  assert.equal((await identical()).catalogue.revision, 10);
});

test('ServedModels never returns an older catalogue than at the time of the call', async (t) => {
  const models = createModels(t);
  const reads: Promise<void>[] = [];
  const readAfter = async (revision: number): Promise<void> => {
    const { catalogue } = await models.get(tenant);
    assert.ok(catalogue.revision >= revision, `${catalogue.revision} is older than ${revision}`);
    assert.equal(catalogue.entries.get('a')?.weight ?? 0, catalogue.revision);
  };
  for (let revision = 1; revision <= 40; revision++) {
    const written = put(write('a', { weight: revision }));
    for (let i = 0; i < 3; i++) reads.push(readAfter(revision - 1));
    await written;
    reads.push(readAfter(revision), readAfter(revision));
  }
  await Promise.all(reads);
});

test('ServedModels is unavailable without Redis and reads again after the restart', async (t) => {
  const server = await startBareRedis(t);
  const client = await redisOf(t, server.url);
  const models = createModels(t, client);
  await openDeployment(client, async () => false);
  await writeSkills(client, tenant, [write('a')], now, limits);
  assert.equal((await models.get(tenant)).catalogue.revision, 1);
  await server.kill();
  for (let i = 0; i < 3; i++) await assert.rejects(models.get(tenant), unavailable);
  await server.start();
  const found = await askUntil(
    'a served model',
    () => models.get(tenant).catch(() => null),
    (model) => model !== null,
  );
  assert.deepEqual(found?.catalogue.entries, new Map());
  // Redis came back empty: new entries would get revisions that ClickHouse already has.
  await assert.rejects(writeSkills(client, tenant, [write('a')], now, limits), unavailable);
});

test('ServedModels notices a Redis that lost its last changes and reached the same revision again', async (t) => {
  const models = createModels(t);
  await put(write('a', { weight: 1 }));
  assert.equal((await models.get(tenant)).catalogue.entries.get('a')?.weight, 1);
  await redis.del(catalogueKey(tenant), catalogueRevisionsKey);
  await writeSkills(redis, tenant, [write('a', { weight: 2 })], now + 1, limits);
  assert.equal((await models.get(tenant)).catalogue.entries.get('a')?.weight, 2);
});

test('ServedModels rejects an entry of a newer version, for its tenant only', async (t) => {
  await redis.hset(catalogueKey(tenant), 'a', '{"v":2}');
  await assert.rejects(readCatalogue(), /unsupported format/);
  const logged: unknown[][] = [];
  const models = createModels(t, redis, (facts) => logged.push([`${facts.err}`, facts.tenant, facts.mark]));
  await put(write('b'));
  for (let i = 0; i < 3; i++) await assert.rejects(models.get(tenant), unavailable);
  await put(write('c'));
  await assert.rejects(models.get(tenant), unavailable);
  const reason = 'Error: unsupported format of a stored skill';
  assert.deepEqual(logged, [
    [reason, tenant, `1 ${now}`],
    [reason, tenant, `2 ${now}`],
  ]);
  assert.equal((await models.get('other')).catalogue.revision, 0);
  await put(write('a'));
  assert.equal((await models.get(tenant)).catalogue.entries.size, 3, 'the repaired catalogue is not read');
});
