/** Registration of skills that were answered or set. Also runs on a Redis Cluster (full/cluster). */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Command } from 'ioredis';
import type { TrackEvent } from '../../src/contracts/answers/track-task.js';
import { minRegisteredLearners } from '../../src/domain/base/score-constants.js';
import { defaultSkillSetting } from '../../src/domain/catalogue/catalogue.js';
import { indices } from '../../src/lists.js';
import { writeSkills } from '../../src/store/catalogue/catalogue-store.js';
import {
  countCommonSkills,
  createRegisteredSkills,
  recordLearners,
  registerSkills,
  removeLearners,
} from '../../src/store/catalogue/registered-skills.js';
import type { LoadedLearner } from '../../src/store/learners/learner-commands.js';
import { createRebuildStore } from '../../src/store/rebuild/rebuild-store.js';
import { learnerKey, rareSkillsKey, registeredSkillsKey } from '../../src/store/redis/keys.js';
import { openDeployment } from '../../src/store/redis/server/deployment.js';
import { hashText } from '../../src/store/redis/wire/binary.js';
import { createRebuildSource } from '../../src/warehouse/reads/rebuild-source.js';
import { groupByLearner, type LearnerEvents } from '../../workers/track/read-events.js';
import { SkillRegistry } from '../../workers/track/skill-registry.js';
import { testDatabase } from '../support/inspect/warehouse.js';
import { freshDatabase, startTestRedis } from '../support/servers/embedded.js';
import { redisOf } from '../support/servers/service.js';

const redis = await redisOf({ after }, await startTestRedis({ after }));
await openDeployment(redis, async () => false);

const users = Array.from({ length: minRegisteredLearners }, (_, i) => `learner ${i} ä`);
const [first = '', ...others] = users;
const allButLast = users.slice(0, -1);
const hashesOf = (userIds: readonly string[]) => Buffer.concat(userIds.map(hashText));

/** Each test has a separate tenant. */
let tenants = 0;
function freshTenant() {
  const tenant = `school-${tenants++}`;
  const registered = createRegisteredSkills(redis);
  return {
    tenant,
    answers: (userId: string, ...skillIds: string[]) =>
      skillIds.map((skillId) => ({ tenant, userId, skillId })),
    record: (skillId: string, userIds: readonly string[]) => {
      const learners = userIds.map((userId) => ({ skillId, userId }));
      return recordLearners(redis, tenant, learners);
    },
    countCommon: () => countCommonSkills(redis, tenant),
    list: () => registered.list(tenant, null, 10),
    /** Hashes of the learners of a rare skill; null for a common one. */
    readLearners: (skillId: string) => redis.hgetBuffer(rareSkillsKey(tenant), skillId),
  };
}
const newRegistry = () => new SkillRegistry({ perLearner: 1000, perTenant: 1000 });

test('SkillRegistry makes a skill common at its fifth learner, whatever is repeated', async () => {
  const { tenant, answers, countCommon, list, readLearners } = freshTenant();
  const threads = [newRegistry(), newRegistry()] as const;
  for (const [i, userId] of allButLast.entries()) {
    for (let retry = 0; retry < 4; retry++)
      await threads[retry % 2 === 0 ? 0 : 1].register(redis, answers(userId, 'fractions', `typo ${i}`));
    assert.equal(await countCommon(), 0);
  }
  assert.deepEqual(await readLearners('fractions'), hashesOf(allButLast));
  assert.equal((await list()).length, 5, 'rare skills are listed too');
  const last = users.at(-1) as string;
  await threads[0].register(redis, [...answers(last, 'fractions'), ...answers('new', 'fractions')]);
  assert.equal(await countCommon(), 1);
  assert.equal(await readLearners('fractions'), null);
  assert.equal(await createRegisteredSkills(redis).has(tenant, 'typo 0'), true);
  assert.equal(await countCommonSkills(redis, 'other'), 0);
});

test('registerSkills makes a skill common that few learners answered', async () => {
  const { tenant, record, countCommon } = freshTenant();
  await record('a', [first]);
  await registerSkills(redis, tenant, ['a', 'b']);
  assert.equal(await countCommon(), 2);
  assert.deepEqual(await record('b', others), { size: 2, notRare: others.map(() => 'b') });
  assert.equal(await redis.exists(rareSkillsKey(tenant)), 0);
});

test('restoreAnsweredSkills makes skills common that are set or have five learners', async () => {
  const { tenant, record, countCommon, readLearners } = freshTenant();
  const writes = [{ skillId: 'set', setting: defaultSkillSetting, ifRevision: null }];
  await writeSkills(redis, tenant, writes, 1_800_000_000_000, { knownSkills: 1000 });
  await redis.zadd(registeredSkillsKey(tenant), 0, 'few', 0, 'many');
  await record('just enough', ['one', 'two']);
  assert.deepEqual(await record('few', [first]), { size: 4, notRare: ['few'] });
  await record('new', ['one']);
  assert.equal(await countCommon(), 3);
  const { restoreAnsweredSkills } = createRebuildStore(redis);
  const userIds = [first];
  const restored = ['few', 'new', 'set'].map((skillId) => ({ skillId, userIds }));
  restored.push({ skillId: 'many', userIds: users });
  for (const more of [[{ skillId: 'just enough', userIds: allButLast }], []]) {
    await restoreAnsweredSkills(tenant, [...restored, ...more]);
    assert.equal(await countCommon(), 3, 'many, set, just enough');
  }
  assert.deepEqual(await readLearners('few'), hashesOf(userIds));
  assert.deepEqual(await readLearners('new'), hashesOf(['one', first]));
});

test('removeLearners removes erased learners from all rare skills, which become no less rare', async () => {
  const { tenant, record, countCommon, readLearners } = freshTenant();
  const skills = Array.from({ length: 3000 }, (_, i) => `skill ${i}`);
  for (const userId of allButLast) {
    const learners = skills.map((skillId) => ({ skillId, userId }));
    await recordLearners(redis, tenant, learners);
  }
  await record('only hers', [first]);
  await removeLearners(redis, tenant, [first, 'unknown']);
  const left = hashesOf(allButLast.slice(1));
  const lists = await redis.hvalsBuffer(rareSkillsKey(tenant));
  assert.equal(lists.filter((list) => list.equals(left)).length, skills.length);
  assert.deepEqual(await readLearners('only hers'), Buffer.alloc(0));
  assert.equal(await countCommon(), 0);
  await record(skills[0] as string, ['new', first]);
  assert.equal(await countCommon(), 1);
});

test('A rebuild reads at most five learners of each skill, page by page', async (t) => {
  const { clickhouseUrl } = await freshDatabase();
  const { client } = await testDatabase(t, clickhouseUrl);
  const skillCount = 2500;
  await client.command({
    query: `INSERT INTO attempts (tenant, user_id, skill_id)
      SELECT 'school', concat('user ', toString(intDiv(number, ${skillCount}) % 8)),
        concat('skill ', toString(number % ${skillCount})) FROM numbers(${8 * skillCount + 3})`,
  });
  const source = createRebuildSource(client, clickhouseUrl, 1000);
  assert.deepEqual(await source.listTenants(), ['school']);
  const found = new Map<string, readonly string[]>();
  for await (const page of source.readAnsweredSkills('school'))
    for (const { skillId, userIds } of page) found.set(skillId, userIds);
  assert.equal(found.size, skillCount);
  for (const userIds of found.values()) assert.equal(new Set(userIds).size, minRegisteredLearners);
});

test('SkillRegistry allows a full learner no skill and reserves none of the tenant for it', async () => {
  const { tenant, record } = freshTenant();
  await record('s0', [first]);
  await record('s1', [first]);
  await redis.hset(learnerKey(0, tenant, first), { L: '', 'S:s0': '', 'S:s1': '' });
  const eventsOf = (userId: string, skillId: string) => {
    const event: Partial<TrackEvent> = { tenant, userId, skillIds: [skillId], eventId: null, itemId: null };
    return groupByLearner([{ replyIndex: 0, event: event as TrackEvent }], 1)[0] as LearnerEvents;
  };
  const events = [eventsOf(first, 'made up'), eventsOf('eve', 'new'), eventsOf('max', 'beyond')];
  const loaded = [2, 0, 0].map((attempts) => ({ learner: { attempts }, skills: [null] }));
  const registry = new SkillRegistry({ perLearner: 2, perTenant: 3 });
  const allowances = await registry.computeAllowances(redis, events, loaded as unknown as LoadedLearner[]);
  const rejectedSkills = new Set(['beyond']);
  const { POSITIVE_INFINITY } = Number;
  const expected = [0, POSITIVE_INFINITY, POSITIVE_INFINITY].map((max) => ({
    maxNewSkills: max,
    rejectedSkills,
  }));
  assert.deepEqual([...allowances.values()], expected);
});

test('SkillRegistry allows the remaining skills to a learner whose few answers had many skills', async () => {
  const { tenant } = freshTenant();
  const known = indices(9).map((i) => [`S:s${i}`, '']);
  await redis.hset(learnerKey(0, tenant, first), { L: '', ...Object.fromEntries(known) });
  const skillIds = ['s0', 'new', 'newer', 'newest'] as const;
  const event: Partial<TrackEvent> = { tenant, userId: first, skillIds, eventId: null, itemId: null };
  const learner = groupByLearner([{ replyIndex: 0, event: event as TrackEvent }], 1)[0] as LearnerEvents;
  const loaded = [{ learner: { attempts: 1 }, skills: [{}, null, null, null] }] as unknown as LoadedLearner[];
  const roomOf = async (perLearner: number): Promise<number | undefined> => {
    const registry = new SkillRegistry({ perLearner, perTenant: 1000 });
    const allowances = await registry.computeAllowances(redis, [learner], loaded);
    return allowances.get(learner)?.maxNewSkills;
  };
  assert.deepEqual([await roomOf(9), await roomOf(10), await roomOf(12)], [0, 1, 3]);
  assert.equal(await roomOf(13), Number.POSITIVE_INFINITY, 'one answer has at most ten skills');
});

test('The skill keys of a tenant share a slot of a Redis Cluster', () => {
  const slotOf = (key: string) => new Command('get', [key]).getSlot();
  for (const name of ['default', 'm', 'a.b~c-d_e'])
    assert.equal(slotOf(rareSkillsKey(name)), slotOf(registeredSkillsKey(name)));
  assert.notEqual(slotOf(rareSkillsKey('a')), slotOf(rareSkillsKey('b')));
});
