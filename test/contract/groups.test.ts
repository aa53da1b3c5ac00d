/** Groups of learners and profiles. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { groupLimits } from '../../src/contracts/learners/groups.js';
import { indices } from '../../src/lists.js';
import { createGroupStore } from '../../src/store/groups/group-store.js';
import { groupsJournalKey } from '../../src/store/redis/keys.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { erasureDone } from '../support/builders/learner-data.js';
import { callerOf, event, outcomeOf } from '../support/http/http.js';
import { keysThatSay, tablesThatSay } from '../support/inspect/traces.js';
import { clickhouseOf, redisOf, startService } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const service = await startService({ after });
const caller = callerOf(service, service.key);
const redis = await redisOf({ after }, service.redisUrl);
const clickhouse = clickhouseOf({ after }, service);
const tenant = 'default';

const groupPath = (id: string): string => `/api/v1/groups/${encodeURIComponent(id)}`;
const profilePath = (id: string): string => `/api/v1/learners/${encodeURIComponent(id)}/profile`;

async function put(path: string, body: object) {
  const { status, json, text } = await caller.send('PUT', path, body);
  assert.equal(status, 200, text);
  return json.data;
}
const change = (id: string, body: object) => caller.send('POST', `${groupPath(id)}/members`, body);
/** Waits for rows of groups and profiles: the journal is drained every two seconds. */
const stored = () =>
  waitFor('an empty journal', async () => {
    const { json } = await caller.get('/api/v1/health');
    const { journal_length, outbox_length } = json.data.checks.pipeline;
    return journal_length + outbox_length === 0;
  });
const select = (query: string) => selectRows<Record<string, unknown>>(clickhouse, query);
const groupIdsOf = async (user: string) =>
  (await caller.get(profilePath(user))).json.data.groups.map((one: { group_id: string }) => one.group_id);

test('PUT creates and replaces a group, and GET returns it with its members in the order of bytes', async () => {
  const user_ids = ['zoë', '__proto__', 'back\\slash', 'Ada', 'Ada', '<script>'];
  const made = await put(groupPath('g/1'), { name: 'Year 9', user_ids });
  assert.deepEqual(
    { ...made, created_at: '', updated_at: '' },
    {
      ...{ group_id: 'g/1', name: 'Year 9', kind: 'class', parent_group_id: null },
      ...{ created_at: '', updated_at: '', user_ids: ['<script>', 'Ada', '__proto__', 'back\\slash', 'zoë'] },
    },
  );
  const same = await put(groupPath('g/1'), { name: 'Year 9', kind: 'class', user_ids });
  assert.deepEqual(same, made, 'an equal group is not written again');
  const change = { name: 'Year 10', kind: 'grade', user_ids: ['Ada'], parent_group_id: 'school' };
  const changed = await put(groupPath('g/1'), change);
  assert.deepEqual(
    [changed.name, changed.kind, changed.parent_group_id, changed.user_ids, changed.created_at],
    ['Year 10', 'grade', 'school', ['Ada'], made.created_at],
  );
  assert.ok(changed.updated_at > made.updated_at);
  assert.deepEqual((await caller.get(groupPath('g/1'))).json.data, changed);
});

test('POST …/members adds and removes learners and counts real changes only', async () => {
  await put(groupPath('m'), { name: 'M', user_ids: ['a', 'b'] });
  const { json } = await change('m', { add: ['b', 'c', 'c'], remove: ['a', 'x'] });
  const { updated_at, ...counts } = json.data;
  assert.deepEqual(counts, { group_id: 'm', added: 1, removed: 1, members: 2 });
  const { data } = (await caller.get(groupPath('m'))).json;
  assert.deepEqual([data.user_ids, data.updated_at], [['b', 'c'], updated_at]);
  assert.equal((await change('m', {})).json.data.updated_at, updated_at);
  assert.deepEqual(await groupIdsOf('c'), ['m']);
});

test('Concurrent changes of different members of one group are all kept', async () => {
  await put(groupPath('busy'), { name: 'Busy', user_ids: [] });
  const results = await Promise.all(indices(20).map((i) => change('busy', { add: [`u${i}`] })));
  assert.deepEqual(new Set(results.map(outcomeOf)), new Set(['200']));
  assert.equal((await caller.get(groupPath('busy'))).json.data.user_ids.length, 20);
});

test('Invalid groups, members and profiles get an error that names the field', async () => {
  const tooMany = indices(groupLimits.members + 1).map((i) => `u${i}`);
  const attributes = Object.fromEntries(indices(11).map((i) => [`k${i}`, 'v']));
  const rejections: readonly [method: string, path: string, body: object, message: RegExp][] = [
    ['PUT', groupPath('x'), { user_ids: [] }, /name is required/],
    ['PUT', groupPath('x'), { name: 'X' }, /user_ids is required/],
    ['PUT', groupPath('x'), { name: '', user_ids: [] }, /name must not have fewer than 1/],
    ['PUT', groupPath('x'), { name: 'X', user_ids: tooMany }, /user_ids must have at most 2000 items/],
    ['PUT', groupPath('x'), { name: 'X', user_ids: ['\u0000'] }, /user_ids\/0 must not contain control/],
    ['PUT', groupPath('x'), { name: 'X', user_ids: ['a', '..'] }, /user_ids\/1 must not be "\." or "\.\."/],
    ['PUT', groupPath('x'), { name: 'X', user_ids: [], parent_group_id: 'x' }, /must be another group/],
    ['PUT', profilePath('x'), { attributes }, /attributes must not have more than 10/],
    ['PUT', profilePath('x'), { attributes: { a: 1 } }, /attributes\/a must be string/],
    ['PUT', profilePath('x'), { attributes: { 'a\n': 'v' } }, /attributes/],
    ['PUT', profilePath('x'), { attributes: { '\u2028': 5 } }, /attributes/],
    ['PUT', profilePath('x'), { display_name: 'x'.repeat(129) }, /display_name must not have more than 128/],
    [
      'POST',
      `${groupPath('m')}/members`,
      { add: ['a'], remove: ['a'] },
      /remove must not contain ids of add/,
    ],
    ['POST', '/api/v1/learners/profiles', { user_ids: [] }, /user_ids must not have fewer than 1/],
  ];
  for (const [method, path, body, message] of rejections) {
    const { status, json } = await caller.send(method, path, body);
    assert.equal(status, 400, JSON.stringify(body).slice(0, 80));
    assert.match(json.error.message, message);
  }
  for (const [method, path] of [
    ['GET', groupPath('x')],
    ['DELETE', groupPath('x')],
  ] as const)
    assert.equal(outcomeOf(await caller.send(method, path)), '404 NOT_FOUND');
  assert.equal(outcomeOf(await change('x', { add: ['a'] })), '404 NOT_FOUND');
  assert.equal(outcomeOf(await caller.get(profilePath('nobody'))), '404 USER_NOT_FOUND');
});

test('A group accepts 2,000 members and rejects the next one', async () => {
  const user_ids = indices(groupLimits.members).map((i) => `full-${i}`);
  assert.equal((await put(groupPath('full'), { name: 'Full', user_ids })).user_ids.length, 2000);
  assert.equal(outcomeOf(await change('full', { add: ['one-more'] })), '422 LIMIT_EXCEEDED');
  assert.equal((await change('full', { add: ['one-more'], remove: ['full-0'] })).json.data.members, 2000);
  assert.equal((await caller.send('DELETE', groupPath('full'))).status, 200);
  assert.equal(outcomeOf(await caller.get(groupPath('full'))), '404 NOT_FOUND');
  assert.equal(outcomeOf(await caller.get(profilePath('full-1'))), '404 USER_NOT_FOUND');
});

test('GET /groups pages through the groups of one kind and counts members', async () => {
  for (const i of indices(5))
    await put(groupPath(`page-${i}`), { name: `P${i}`, kind: 'team', user_ids: ['a'] });
  const seen: string[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const { json } = await caller.get(`/api/v1/groups?kind=team&limit=2${cursor && `&cursor=${cursor}`}`);
    for (const { group_id, members } of json.data.groups) seen.push(`${group_id} ${members}`);
    cursor = json.data.next_cursor;
  }
  assert.deepEqual(
    seen,
    indices(5).map((i) => `page-${i} 1`),
  );
});

test('A profile replaces the previous one, and an empty profile removes it', async () => {
  const attributes = { hints: 'on', "it's": 'a\\b', ['__proto__']: 'x' };
  await put(profilePath('p'), { display_name: 'Ada <b>', attributes });
  const found = (await caller.send('POST', '/api/v1/learners/profiles', { user_ids: ['q', 'p', 'p'] })).json;
  assert.deepEqual(found.data.profiles, [{ user_id: 'p', display_name: 'Ada <b>', attributes }]);
  await stored();
  const query = "SELECT display_name, attributes['it''s'] AS text FROM learner_profiles WHERE user_id = 'p'";
  assert.deepEqual(await select(query), [{ display_name: 'Ada <b>', text: 'a\\b' }]);
  await put(profilePath('p'), {});
  assert.equal(outcomeOf(await caller.get(profilePath('p'))), '404 USER_NOT_FOUND');
  await stored();
  assert.deepEqual(await select(query), []);
});

test('ClickHouse has the memberships with the times of joining and leaving', async () => {
  const joined = (await put(groupPath('h'), { name: 'H', user_ids: ['h1', 'h2'] })).updated_at;
  const left = (await change('h', { remove: ['h1'] })).json.data.updated_at;
  const again = (await change('h', { add: ['h1'] })).json.data.updated_at;
  await put(groupPath('h'), { name: 'H', user_ids: ['h1', 'h2'], kind: 'club' });
  await stored();
  const rows = await selectRows<{ user: string; joined: string; left: string | null }>(
    clickhouse,
    "SELECT user_id AS user, joined_at AS joined, left_at AS left FROM group_members WHERE group_id = 'h' ORDER BY user, joined",
    { settings: { date_time_output_format: 'iso' } },
  );
  assert.deepEqual(
    rows.map(({ user, joined, left }) => [user, joined, left]),
    [
      ['h1', joined, left],
      ['h1', again, null],
      ['h2', joined, null],
    ],
  );
  assert.deepEqual(await select("SELECT name, kind FROM groups WHERE group_id = 'h'"), [
    { name: 'H', kind: 'club' },
  ]);
  const deletedAt = (await caller.send('DELETE', groupPath('h'))).json.data.deleted_at;
  await stored();
  assert.deepEqual(await select("SELECT name FROM groups WHERE group_id = 'h'"), []);
  const open = "SELECT count() AS n FROM group_members WHERE group_id = 'h' AND left_at IS NULL";
  assert.equal(Number((await select(open))[0]?.n), 0, deletedAt);
});

test('An erasure removes profile and memberships everywhere, also of a learner without answers', async () => {
  for (const user of ['erase-answers', 'erase-member', 'erase-profile']) {
    if (user !== 'erase-profile') await put(groupPath('e'), { name: 'E', user_ids: ['erase-stays', user] });
    if (user !== 'erase-member') await put(profilePath(user), { display_name: `Name of ${user}` });
    if (user === 'erase-answers') await caller.trackAll([event({ user_id: user })]);
    await stored();
    const { status, json } = await caller.send('DELETE', `/api/v1/learners/${user}`);
    assert.equal(status, 202, user);
    await erasureDone(caller, json.data.status_url);
    assert.deepEqual(await keysThatSay(redis, user), [], user);
    assert.deepEqual(await tablesThatSay(clickhouse, user), {}, user);
    assert.equal(outcomeOf(await caller.send('DELETE', `/api/v1/learners/${user}`)), '404 USER_NOT_FOUND');
  }
  assert.deepEqual((await caller.get(groupPath('e'))).json.data.user_ids, ['erase-stays']);
});

test('A learner who joins again during the erasure keeps the new membership', async () => {
  await put(groupPath('back'), { name: 'Back', user_ids: ['returns', 'other'] });
  const { json } = await caller.send('DELETE', '/api/v1/learners/returns');
  assert.deepEqual((await caller.get(groupPath('back'))).json.data.user_ids, ['other']);
  assert.equal((await change('back', { add: ['returns'] })).json.data.added, 1);
  await put(profilePath('returns'), { display_name: 'New name' });
  await erasureDone(caller, json.data.status_url);
  assert.deepEqual((await caller.get(groupPath('back'))).json.data.user_ids, ['other', 'returns']);
  assert.equal((await caller.get(profilePath('returns'))).json.data.display_name, 'New name');
  await stored();
  const rows = await select(
    "SELECT count() AS n FROM group_members WHERE user_id = 'returns' AND left_at IS NULL",
  );
  assert.equal(Number(rows[0]?.n), 1);
});

test('The export has the profile, the groups, and their changes', async () => {
  await put(groupPath('export'), { name: 'Exported', user_ids: ['exported'] });
  await put(profilePath('exported'), { display_name: 'E. Xported', attributes: { a: 'b' } });
  await stored();
  const path = '/api/v1/learners/exported/export';
  const lines = (await caller.raw({ method: 'GET', path })).text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const types = lines.map(({ type }) => type);
  assert.deepEqual(types, ['meta', 'profile', 'group', 'group_member_change', 'profile_change', 'end']);
  assert.deepEqual(
    [lines[1].display_name, lines[1].attributes, lines[2].group_id, lines[3].group_id],
    ['E. Xported', { a: 'b' }, 'export', 'export'],
  );
});

test('The store writes nothing if the journal is full', async () => {
  await stored();
  const limited = createGroupStore(redis, 1);
  const setting = { name: 'L', kind: 'class', parentGroupId: null };
  const join = limited.change(tenant, 'limited', () => ({ setting, added: ['a', 'b'], removed: [] }));
  await assert.rejects(join, { code: 'UNAVAILABLE' });
  assert.equal(await limited.read(tenant, 'limited'), null);
  assert.equal(await redis.xlen(groupsJournalKey), 0);
});
