/** Catalogues in Redis, and the models that are served with them. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { loadSkillsFile } from '../../src/app/startup/skills-file.js';
import { encodeModel } from '../../src/contracts/models/stored-model.js';
import { defaultSkillSetting, type SkillSetting } from '../../src/domain/catalogue/catalogue.js';
import {
  resolveSkillModel,
  type TenantModel,
  unfittedModel,
} from '../../src/domain/catalogue/tenant-model.js';
import { ApiError } from '../../src/errors.js';
import { createLogger } from '../../src/logger.js';
import {
  readCatalogue as readMarked,
  type SkillWrite,
  writeSkills,
} from '../../src/store/catalogue/catalogue-store.js';
import { countCommonSkills, createRegisteredSkills } from '../../src/store/catalogue/registered-skills.js';
import { createServedModels, type ServedModels } from '../../src/store/catalogue/served-models.js';
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

const tenant = 'school';
const now = 1_800_000_000_000;
const parameters = { pInit: 0.4, pLearn: 0.05, pGuess: 0.25, pSlip: 0.1, pForget: 0.02 };

async function connect(t: TestContext): Promise<RedisClient> {
  const client = await redisOf(t, await startTestRedis(t));
  await openDeployment(client, async () => false);
  return client;
}

const readCatalogue = async (client: RedisClient, of: string) => (await readMarked(client, of)).catalogue;

const isUnavailable = (error: unknown): boolean => error instanceof ApiError && error.code === 'UNAVAILABLE';

const write = (
  skillId: string,
  setting: Partial<SkillSetting> = {},
  ifRevision: SkillWrite['ifRevision'] = null,
): SkillWrite => ({ skillId, setting: { ...defaultSkillSetting, ...setting }, ifRevision });

const maxSkills = 2000;
const bounds = { knownSkills: maxSkills };
const put = (client: RedisClient, ...writes: SkillWrite[]) =>
  writeSkills(client, tenant, writes, now, bounds);

function modelsOf(
  t: TestContext,
  client: RedisClient,
  error: (facts: Readonly<Record<string, unknown>>) => void = ({ err }) => assert.ifError(err),
): ServedModels {
  const models = createServedModels(async () => client, { error }, { pollMs: 50 });
  t.after(() => models.close());
  return models;
}

test('what is written is what is read, with revisions in order and a journal beside it', async (t) => {
  const client = await connect(t);
  const first = { name: 'Linear\tequations', section: 'math', weight: 2.5, parameters } as const;
  const results = await put(
    client,
    write('a\\b', first),
    write('__proto__'),
    write('a\\b', { section: 'rw' }),
  );
  assert.deepEqual(
    results.map((result) => ('entry' in result ? [result.entry.revision, result.entry.section] : result)),
    [
      [1, 'math'],
      [2, null],
      [3, 'rw'],
    ],
  );
  const { revision, entries } = await readCatalogue(client, tenant);
  assert.equal(revision, 3);
  assert.deepEqual(entries.get('a\\b'), {
    ...defaultSkillSetting,
    section: 'rw',
    revision: 3,
    updatedAt: now,
  });
  assert.deepEqual(entries.get('__proto__'), { ...defaultSkillSetting, revision: 2, updatedAt: now });
  assert.equal(await countCommonSkills(client, tenant), 2);
  const rows = (await client.xrange(catalogueJournalKey, '-', '+')).map(([, fields]) => fields);
  assert.deepEqual(rows, [
    [
      'k',
      'skill',
      'r',
      `1\t${now}\tschool\ta\\\\b\tLinear\\tequations\tmath\t2.5\t0.4\t0.05\t0.25\t0.1\t0.02`,
    ],
    ['k', 'skill', 'r', `2\t${now}\tschool\t__proto__\t\\N\t\t1\t\\N\t\\N\t\\N\t\\N\t\\N`],
    ['k', 'skill', 'r', `3\t${now}\tschool\ta\\\\b\t\\N\trw\t1\t\\N\t\\N\t\\N\t\\N\t\\N`],
  ]);
  assert.deepEqual((await readCatalogue(client, 'other')).entries, new Map());
});

test('each write of many is compared for itself', async (t) => {
  const client = await connect(t);
  await put(client, write('a'));
  const name = '"revision":7';
  const results = await put(
    client,
    write('a', {}, ['0']),
    write('b', {}, ['0']),
    write('c', {}, ['1']),
    write('a', { name }, ['7', '1']),
    write('a', {}, ['7', '1']),
  );
  assert.deepEqual(
    results.map(({ status }) => status),
    ['mismatch', 'written', 'mismatch', 'written', 'mismatch'],
  );
  assert.equal((await readCatalogue(client, tenant)).revision, 3);
  assert.equal(await countCommonSkills(client, tenant), 2, 'c was refused');
});

test('a later change has no earlier time, whatever the clock says', async (t) => {
  const client = await connect(t);
  const timeAt = async (clock: number): Promise<unknown> => {
    const [result] = await writeSkills(client, tenant, [write('a')], clock, bounds);
    return result?.status === 'written' && result.entry.updatedAt;
  };
  assert.deepEqual([await timeAt(now), await timeAt(now - 5000), await timeAt(now + 1)], [now, now, now + 1]);
});

test('bounds: skills of a tenant, and the journal', async (t) => {
  const client = await connect(t);
  const many = Array.from({ length: maxSkills }, (_, i) => write(`skill-${i}`));
  const results = await put(client, ...many);
  assert.ok(results.every(({ status }) => status === 'written'));
  const more = await put(client, write('one more'), write('skill-7', { section: 'rw' }));
  assert.deepEqual(
    more.map(({ status }) => status),
    ['full', 'written'],
  );
  assert.equal(await client.hlen(catalogueKey(tenant)), maxSkills);
  assert.equal(await countCommonSkills(client, tenant), maxSkills);
  const file = new Map([[tenant, new Map(['skill-7', 'x', 'y', 'z'].map((id) => [id, {}]))]]);
  await assert.rejects(loadSkillsFile(file, client, maxSkills, createLogger('silent', 'test')), {
    name: 'StartError',
    message:
      'SKILLS_FILE: tenant school has no room for the new skill_id "x" and 2 more; allowed: 2,000 skills of a tenant, ' +
      'answered or set: take skills out of the file, delete skills that nobody needs, or raise MAX_SKILLS_PER_TENANT',
  });
  assert.equal(await countCommonSkills(client, tenant), maxSkills);
  const noted = await client.xlen(catalogueJournalKey);
  const full = writeSkills(client, 'other', [write('a'), write('b')], now, { ...bounds, journal: noted + 1 });
  await assert.rejects(full, isUnavailable);
  assert.equal((await readCatalogue(client, 'other')).entries.size, 1);
  assert.equal(await countCommonSkills(client, 'other'), 1);
});

test('processes that load the same file at once change every skill once', async (t) => {
  const client = await connect(t);
  const ids = Array.from({ length: 700 }, (_, i) => `skill-${i}`);
  await put(client, ...ids.slice(0, 10).map((id) => write(id, { name: 'Set by hand' })));
  const file = new Map([[tenant, new Map(ids.map((id) => [id, { section: 'math' as const }]))]]);
  const logger = createLogger('silent', 'test');
  await Promise.all([1, 2, 3].map(() => loadSkillsFile(file, client, maxSkills, logger)));
  const { revision, entries } = await readCatalogue(client, tenant);
  assert.equal(revision, 710);
  assert.ok([...entries.values()].every(({ section }) => section === 'math'));
  assert.equal(entries.get('skill-9')?.name, 'Set by hand');
});

test('skills that a killed start set and did not make known are so after the next one', async (t) => {
  const client = await connect(t);
  const file = new Map([[tenant, new Map(['a', 'b'].map((id) => [id, { section: 'math' as const }]))]]);
  const load = () => loadSkillsFile(file, client, maxSkills, createLogger('silent', 'test'));
  await load();
  await client.zrem(registeredSkillsKey(tenant), 'b');
  assert.equal(await countCommonSkills(client, tenant), 1);
  await load();
  assert.equal(await countCommonSkills(client, tenant), 2);
  assert.equal((await readCatalogue(client, tenant)).revision, 2, 'nothing was set again');
});

test('a skill that is set again while it is taken off stays known', async (t) => {
  const client = await connect(t);
  await put(client, write('a'), { ...write('a'), setting: null }, write('a'));
  await createRegisteredSkills(client).unregister(tenant, 'a');
  assert.equal(await countCommonSkills(client, tenant), 1);
  await put(client, { ...write('a'), setting: null });
  await createRegisteredSkills(client).unregister(tenant, 'a');
  assert.equal(await countCommonSkills(client, tenant), 0);
});

test('what is read of changes is what is read whole, however many there were', async (t) => {
  const client = await connect(t);
  const models = modelsOf(t, client);
  const random = seeded(7);
  const anyWrite = () => {
    const changed = write(`skill-${Math.floor(random() * 300)}`, { weight: 1 + random() });
    return random() < 0.3 ? { ...changed, setting: null } : changed;
  };
  for (const writes of [1, 5, 1, 400, 0, 1000, 1, 1001, 3, 1500, 2]) {
    await put(client, ...Array.from({ length: writes }, anyWrite));
    const { catalogue } = await models.get(tenant);
    const whole = await readCatalogue(client, tenant);
    assert.deepEqual(catalogue.entries, whole.entries);
    assert.equal(catalogue.revision, whole.revision);
    for (const section of ['math', 'rw'] as const) {
      const { weight, ...counts } = catalogue.totals[section];
      assert.deepEqual(counts, { skills: whole.entries.size / 2, placed: 0 });
      assert.ok(Math.abs(weight - whole.totals[section].weight) < 1e-9);
    }
  }
});

test('a served model is the same object until model or catalogue change, and never older than they are', async (t) => {
  const client = await connect(t);
  const models = modelsOf(t, client);
  const identical = async (): Promise<TenantModel> => {
    const all = await Promise.all(Array.from({ length: 10 }, () => models.get(tenant)));
    const [first] = all as [TenantModel];
    assert.ok([...all, await models.get(tenant)].every((model) => model === first));
    return first;
  };
  assert.equal((await identical()).catalogue.revision, 0);
  for (let revision = 1; revision <= 50; revision++) {
    await put(client, write('a', { weight: revision, parameters }));
    const model = await identical();
    assert.equal(model.catalogue.revision, revision);
    assert.equal(model.catalogue.entries.get('a')?.weight, revision);
    assert.deepEqual(resolveSkillModel(model, 'a').parameters, parameters);
    assert.equal(resolveSkillModel(model, 'a').version, revision);
  }
  const model = { ...unfittedModel, version: 1 };
  const texts = { model: encodeModel(model), report: '{}', items: null };
  assert.equal(
    await publishModel(client, { tenant, version: 1, basedOn: 0, publishedAt: now, ...texts }),
    true,
  );
  const deadline = Date.now() + 10_000;
  while ((await models.get(tenant)).version === 0) assert.ok(Date.now() < deadline);
  const fitted = await identical();
  assert.deepEqual([fitted.version, fitted.catalogue.revision], [1, 50]);
});

test('many who ask while it changes all get what was there when they asked, or later', async (t) => {
  const client = await connect(t);
  const models = modelsOf(t, client);
  const asked: Promise<void>[] = [];
  for (let revision = 1; revision <= 100; revision++) {
    const written = put(client, write('a', { weight: revision }));
    for (let i = 0; i < 3; i++) asked.push(models.get(tenant).then(() => undefined));
    await written;
    const ask = async (least: number): Promise<void> => {
      const { catalogue } = await models.get(tenant);
      assert.ok(catalogue.revision >= least);
      assert.equal(catalogue.entries.get('a')?.weight, catalogue.revision);
    };
    asked.push(ask(revision), ask(revision));
  }
  await Promise.all(asked);
  assert.equal((await models.get(tenant)).catalogue.revision, 100);
});

test('without Redis there is no telling what is in force, and after it there is', async (t) => {
  const redis = await startBareRedis(t);
  const client = await redisOf(t, redis.url);
  const models = modelsOf(t, client);
  await openDeployment(client, async () => false);
  await put(client, write('a'));
  assert.equal((await models.get(tenant)).catalogue.revision, 1);
  await redis.kill();
  for (let i = 0; i < 3; i++) {
    await assert.rejects(models.get(tenant), isUnavailable);
  }
  await redis.start();
  const deadline = Date.now() + 15_000;
  let found: TenantModel | null = null;
  while (found === null) {
    assert.ok(Date.now() < deadline);
    found = await models.get(tenant).catch(() => null);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.deepEqual(found.catalogue.entries, new Map());
  // It came back empty: what is set now would stand beside the same numbers in ClickHouse.
  await assert.rejects(put(client, write('a')), isUnavailable);
});

test('a Redis that lost its last changes and counts on from there is not taken for what it was', async (t) => {
  const client = await connect(t);
  const models = modelsOf(t, client);
  await put(client, write('a', { weight: 1 }));
  assert.equal((await models.get(tenant)).catalogue.entries.get('a')?.weight, 1);
  await client.del(catalogueKey(tenant), catalogueRevisionsKey);
  await writeSkills(client, tenant, [write('a', { weight: 2 })], now + 1, bounds);
  assert.equal((await models.get(tenant)).catalogue.entries.get('a')?.weight, 2);
});

test('an entry of a newer version of the service is refused, not guessed', async (t) => {
  const client = await connect(t);
  await client.hset(catalogueKey(tenant), 'a', '{"v":2}');
  await assert.rejects(readCatalogue(client, tenant), /not known to this version/);
  const told: unknown[][] = [];
  const models = modelsOf(t, client, ({ err, tenant, mark }) => told.push([`${err}`, tenant, mark]));
  await put(client, write('b'));
  for (let i = 0; i < 3; i++) await assert.rejects(models.get(tenant), isUnavailable);
  await put(client, write('c'));
  await assert.rejects(models.get(tenant), isUnavailable);
  const reason = 'Error: a stored entry of a catalogue is not known to this version';
  assert.deepEqual(told, [
    [reason, tenant, `1 ${now}`],
    [reason, tenant, `2 ${now}`],
  ]);
  assert.equal((await models.get('other')).catalogue.revision, 0);
  await put(client, write('a'));
  assert.equal((await models.get(tenant)).catalogue.entries.size, 3, 'the next use tries again');
});
