/** Skills are known that are set, or that enough learners answered: as the workers note them in Redis. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Command } from 'ioredis';
import type { TrackEvent } from '../../src/contracts/answers/track-task.js';
import { minRegisteredLearners } from '../../src/domain/base/score-constants.js';
import { defaultSkillSetting } from '../../src/domain/catalogue/catalogue.js';
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
import type { RedisClient } from '../../src/store/redis/connection/client.js';
import { learnerKey, rareSkillsKey, registeredSkillsKey } from '../../src/store/redis/keys.js';
import { openDeployment } from '../../src/store/redis/server/deployment.js';
import { hashText } from '../../src/store/redis/wire/binary.js';
import { createRebuildSource } from '../../src/warehouse/reads/rebuild-source.js';
import { groupByLearner, type LearnerEvents } from '../../workers/track/read-events.js';
import { SkillRegistry } from '../../workers/track/skill-registry.js';
import { testDatabase } from '../support/inspect/warehouse.js';
import { freshDatabase, startTestRedis } from '../support/servers/embedded.js';
import { redisOf } from '../support/servers/service.js';

const tenant = 'school';
const users = Array.from({ length: minRegisteredLearners }, (_, i) => `learner ${i} ä`);
const [first = '', ...others] = users;

const connect = async (t: TestContext): Promise<RedisClient> => redisOf(t, await startTestRedis(t));
const first4 = users.slice(0, -1);
const answered = (userId: string, ...skillIds: string[]) =>
  skillIds.map((skillId) => ({ tenant, userId, skillId }));
const newThread = () => new SkillRegistry({ perLearner: 1000, perTenant: 1000 });
const noteEach = (client: RedisClient, skillId: string, userIds: readonly string[]) =>
  recordLearners(
    client,
    tenant,
    userIds.map((userId) => ({ skillId, userId })),
  );
const listOf = (client: RedisClient, skillId: string) => client.hgetBuffer(rareSkillsKey(tenant), skillId);
const hashesOf = (userIds: readonly string[]) => Buffer.concat(userIds.map(hashText));

test('four learners make no skill known, a retry neither, the fifth does', async (t) => {
  const client = await connect(t);
  const threads = [newThread(), newThread()] as const;
  for (const [i, userId] of first4.entries()) {
    for (let retry = 0; retry < 6; retry++)
      await threads[retry % 2 === 0 ? 0 : 1].register(client, answered(userId, 'fractions', `typo ${i}`));
    assert.equal(await countCommonSkills(client, tenant), 0);
  }
  assert.deepEqual(await listOf(client, 'fractions'), hashesOf(first4));
  assert.equal(
    (await createRegisteredSkills(client).list(tenant, null, 10)).length,
    5,
    'all that were answered can be asked for',
  );
  await threads[0].register(client, [
    ...answered(users.at(-1) as string, 'fractions'),
    ...answered('new', 'fractions'),
  ]);
  assert.equal(await countCommonSkills(client, tenant), 1);
  assert.equal(await listOf(client, 'fractions'), null, 'nobody needs to know who they were');
  assert.equal(await createRegisteredSkills(client).has(tenant, 'typo 0'), true);
  assert.equal(await countCommonSkills(client, 'other'), 0);
});

test('a thread notes nothing more of a skill that enough learners answered', async (t) => {
  const client = await connect(t);
  const thread = newThread();
  await thread.register(
    client,
    users.flatMap((userId) => answered(userId, 'a', '__proto__')),
  );
  assert.equal(await countCommonSkills(client, tenant), 2);
  await client.del(registeredSkillsKey(tenant));
  await thread.register(client, answered('ada', 'a', '__proto__'));
  assert.deepEqual(await createRegisteredSkills(client).list(tenant, null, 10), []);
  await thread.register(client, answered('ada', 'a', 'b'));
  assert.deepEqual(await createRegisteredSkills(client).list(tenant, null, 10), ['b']);
});

test('a skill that is set is known at once, whoever answered it before', async (t) => {
  const client = await connect(t);
  await noteEach(client, 'a', [first]);
  await registerSkills(client, tenant, ['a', 'b']);
  assert.equal(await countCommonSkills(client, tenant), 2);
  assert.deepEqual(await noteEach(client, 'b', others), { size: 2, notRare: others.map(() => 'b') });
  assert.equal(await client.exists(rareSkillsKey(tenant)), 0);
});

test('skills of before, of whom nobody noted who answered them, stay known until a rebuild', async (t) => {
  const client = await connect(t);
  await openDeployment(client, async () => false);
  const writes = [{ skillId: 'set', setting: defaultSkillSetting, ifRevision: null }];
  await writeSkills(client, tenant, writes, 1_800_000_000_000, { knownSkills: 1000 });
  await client.zadd(registeredSkillsKey(tenant), 0, 'few', 0, 'many');
  await noteEach(client, 'just enough', ['somebody', 'somebody else']);
  assert.deepEqual(await noteEach(client, 'few', [first]), { size: 4, notRare: ['few'] });
  await noteEach(client, 'new', ['somebody']);
  assert.equal(await countCommonSkills(client, tenant), 3);
  const { restoreAnsweredSkills } = createRebuildStore(client);
  const userIds = [first];
  for (let run = 0; run < 2; run++) {
    await restoreAnsweredSkills(tenant, [
      { skillId: 'few', userIds },
      { skillId: 'many', userIds: users },
      ...(run === 0 ? [{ skillId: 'just enough', userIds: first4 }] : []),
      { skillId: 'new', userIds },
      { skillId: 'set', userIds },
    ]);
    assert.equal(await countCommonSkills(client, tenant), 3, 'many, set, just enough');
  }
  assert.deepEqual(await listOf(client, 'few'), hashesOf(userIds));
  assert.deepEqual(await listOf(client, 'new'), hashesOf(['somebody', first]));
});

test('forgotten learners are in no list, and their skills stay as rare as they were', async (t) => {
  const client = await connect(t);
  const skills = Array.from({ length: 3000 }, (_, i) => `skill ${i}`);
  for (const userId of first4)
    await recordLearners(
      client,
      tenant,
      skills.map((skillId) => ({ skillId, userId })),
    );
  await noteEach(client, 'hers alone', [first]);
  await removeLearners(client, tenant, [first, 'nobody']);
  const lists = await client.hvalsBuffer(rareSkillsKey(tenant));
  const left = hashesOf(first4.slice(1));
  assert.equal(lists.filter((list) => list.equals(left)).length, skills.length);
  assert.deepEqual(await listOf(client, 'hers alone'), Buffer.alloc(0));
  assert.equal(await countCommonSkills(client, tenant), 0);
  await noteEach(client, skills[0] as string, ['new', first]);
  assert.equal(await countCommonSkills(client, tenant), 1);
  await removeLearners(client, 'other', users);
});

test('a rebuild reads of each skill as many learners as count, page by page', async (t) => {
  const { clickhouseUrl } = await freshDatabase();
  const { client } = await testDatabase(t, clickhouseUrl);
  await client.command({
    query: `INSERT INTO attempts (tenant, user_id, skill_id) SELECT 'school', concat('user ', toString(intDiv(number, 25000) % 8)),
      concat('skill ', toString(number % 25000)) FROM numbers(${8 * 25_000 + 3})`,
  });
  const source = createRebuildSource(client, clickhouseUrl, 1000);
  assert.deepEqual(await source.listTenants(), [tenant]);
  const found = new Map<string, readonly string[]>();
  for await (const page of source.readAnsweredSkills(tenant))
    for (const { skillId, userIds } of page) found.set(skillId, userIds);
  assert.equal(found.size, 25_000);
  for (const userIds of found.values()) assert.equal(new Set(userIds).size, minRegisteredLearners);
});

test('a learner who may begin no skill takes no room of the tenant', async (t) => {
  const client = await connect(t);
  await noteEach(client, 's0', [first]);
  await noteEach(client, 's1', [first]);
  await client.hset(learnerKey(0, tenant, first), { L: '', 'S:s0': '', 'S:s1': '' });
  const workOf = (userId: string, skillId: string) =>
    groupByLearner(
      [{ replyIndex: 0, event: { tenant, userId, skillId, eventId: null, itemId: null } as TrackEvent }],
      1,
    )[0] as LearnerEvents;
  const works = [workOf(first, 'made up'), workOf('eve', 'new'), workOf('max', 'beyond')];
  const loaded = works.map(({ userId }) => ({
    learner: { attempts: userId === first ? 2 : 0 },
    skills: [null],
  }));
  const thread = new SkillRegistry({ perLearner: 2, perTenant: 3 });
  const rooms = await thread.computeAllowances(client, works, loaded as unknown as LoadedLearner[]);
  const rejectedSkills = new Set(['beyond']);
  assert.deepEqual(
    [...rooms.values()],
    [
      { maxNewSkills: 0, rejectedSkills },
      { maxNewSkills: Number.POSITIVE_INFINITY, rejectedSkills },
      { maxNewSkills: Number.POSITIVE_INFINITY, rejectedSkills },
    ],
  );
});

test('both keys of a tenant have one slot of a Cluster', () => {
  const slotOf = (key: string) => new Command('get', [key]).getSlot();
  for (const name of ['default', 'm', 'a.b~c-d_e']) {
    assert.equal(slotOf(rareSkillsKey(name)), slotOf(registeredSkillsKey(name)));
  }
  assert.notEqual(slotOf(rareSkillsKey('a')), slotOf(rareSkillsKey('b')));
});
