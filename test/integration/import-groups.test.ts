/** `npm run import -- --groups` and `--oneroster`. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { indices } from '../../src/lists.js';
import { createGroupStore } from '../../src/store/groups/group-store.js';
import { createProfileStore } from '../../src/store/groups/profile-store.js';
import { defaultPartitions } from '../../src/store/redis/server/deployment.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { runImport } from '../support/commands/imports.js';
import { startServers } from '../support/servers/servers.js';
import { redisOf } from '../support/servers/service.js';
import { tempDir } from '../support/temp.js';
import { waitFor } from '../support/wait.js';

async function prepare(t: Parameters<typeof startServers>[0]) {
  const servers = await startServers(t);
  const redis = await redisOf(t, `${servers.env.REDIS_URL}`);
  const [groups, profiles] = [createGroupStore(redis), createProfileStore(redis, defaultPartitions)];
  const dir = await tempDir(t);
  return {
    ...{ servers, groups, profiles, dir },
    write: async (name: string, lines: readonly string[]): Promise<string> => {
      await writeFile(join(dir, name), `${lines.join('\n')}\n`);
      return join(dir, name);
    },
    run: (...args: string[]) => runImport(servers, ...args),
    runJson: async (...args: string[]) => {
      const { code, out, err } = await runImport(servers, ...args, '--json');
      assert.equal(code, 0, err);
      return JSON.parse(out);
    },
    /** Group ids with their name, kind, parent and members. */
    listGroups: async (tenant: string) => {
      const ids = (await groups.list(tenant)).map(({ groupId }) => groupId).sort();
      const read = await Promise.all(ids.map((groupId) => groups.read(tenant, groupId)));
      return Object.fromEntries(
        read.map((group, i) => {
          const { name, kind, parentGroupId, members = new Map() } = group ?? {};
          return [ids[i], [name, kind, parentGroupId, [...members.keys()].sort().join(' ')]];
        }),
      );
    },
    nameOf: async (tenant: string, userId: string) => (await profiles.read(tenant, userId))?.displayName,
  };
}

const header = 'group_id,name,kind,parent_group_id,user_id,display_name';

test('import --groups replaces groups and names, and a second run changes nothing', async (t) => {
  const { servers, write, run, runJson, listGroups, nameOf, profiles } = await prepare(t);
  const rows = [
    '9-a,"Class 9, A",,y9,ada,Ada L.',
    '9-a,"Class 9, A",,y9,ben,',
    '9-a,"Class 9, A",,y9,ada,Ada L.',
  ];
  const all = [`\uFEFF${header}`, ...rows, 'y9,Year 9,grade,,ليلى,ليلى حداد', '', 'empty,Empty,,,,'];
  const file = await write('groups.csv', all);
  const found = { file, tenant: 's1', groups: 3, members: 3, names: 2, removed: 0 };
  const dry = await runJson('--groups', file, '--tenant', 's1', '--dry-run');
  assert.deepEqual(dry, { ...found, changed: null });
  assert.deepEqual(await listGroups('s1'), {});
  const first = await runJson('--groups', file, '--tenant', 's1');
  assert.deepEqual(first, { ...found, changed: { groups: 3, names: 2, removed: 0 } });
  const expected = {
    '9-a': ['Class 9, A', 'class', 'y9', 'ada ben'],
    empty: ['Empty', 'class', null, ''],
    y9: ['Year 9', 'grade', null, 'ليلى'],
  };
  assert.deepEqual(await listGroups('s1'), expected);
  assert.deepEqual(await listGroups('default'), {});
  assert.equal(await nameOf('s1', 'ada'), 'Ada L.');
  assert.equal(await nameOf('s1', 'ليلى'), 'ليلى حداد');
  assert.equal(await nameOf('s1', 'ben'), undefined);
  await profiles.write('s1', 'ada', { displayName: 'Ada', attributes: { hints: 'on' } });
  const named = await runJson('--groups', file, '--tenant', 's1');
  assert.deepEqual(named.changed, { groups: 0, names: 1, removed: 0 });
  const ada = await profiles.read('s1', 'ada');
  assert.deepEqual([ada?.displayName, ada?.attributes], ['Ada L.', { hints: 'on' }]);
  const again = await runJson('--groups', file, '--tenant', 's1');
  assert.deepEqual(again.changed, { groups: 0, names: 0, removed: 0 });

  const smaller = await write('smaller.csv', ['user_id,group_id,name', 'cleo,9-a,Class 9']);
  const { code, out, err } = await run('--groups', smaller, '--tenant', 's1');
  assert.equal(code, 0, err);
  const text =
    '1 groups, 1 members, 0 names, 0 removed\nChanged in tenant s1: 1 groups, 0 names, 0 removed\n';
  assert.equal(out, `${smaller}: ${text}`);
  assert.deepEqual(await listGroups('s1'), { ...expected, '9-a': ['Class 9', 'class', null, 'cleo'] });
  const query = `SELECT user_id FROM group_members WHERE tenant = 's1' AND group_id = '9-a' AND left_at IS NULL`;
  await waitFor('ClickHouse', async () => {
    const members = await selectRows<{ user_id: string }>(servers.clickhouse, query);
    return members.map(({ user_id }) => user_id).join() === 'cleo';
  });
});

test('import --groups reports invalid rows with their lines, and writes nothing', async (t) => {
  const { write, run, listGroups } = await prepare(t);
  const rejects = async (
    lines: readonly string[],
    ...expected: readonly (string | RegExp)[]
  ): Promise<void> => {
    const file = await write('bad.csv', lines);
    const { code, out, err } = await run('--groups', file);
    assert.deepEqual([code, out], [1, '']);
    for (const part of expected)
      if (typeof part === 'string') assert.ok(err.includes(`${file}, line ${part}`), `${part}\n${err}`);
      else assert.match(err, part);
    assert.deepEqual(await listGroups('default'), {});
  };
  const long = 'x'.repeat(129);
  await rejects(
    [
      header,
      ',No id,,,ada,',
      `g1,${long},,,ada,`,
      'g2,Name,,,a\u0001,',
      'g3,A,,,ada,Ada',
      'g3,B,,,ben,',
      'g4,C,,,ada,Eda',
      'g5,D,,g5,,',
    ],
    '2: group_id must not have fewer than 1 characters',
    '3: name must not have more than 128 characters',
    '4: user_id must not contain control characters',
    '6: name, kind or parent_group_id of group "g3" differ from an earlier row',
    '7: display_name of "ada" differs from an earlier row',
    '8: parent_group_id must be another group',
    /\nNothing was imported\n$/,
  );
  const members = indices(2001).map((i) => `big,Big,,,u${i},`);
  await rejects([header, ...members], '2002: group "big" has more than 2000 members');
  const groups = indices(10_001).map((i) => `g${i},Name,,,ada,`);
  await rejects([header, ...groups], '10002: more than 10000 groups');
  await rejects(['group_id,name', 'a,b'], /line 1 lacks the columns user_id/);
  await rejects([], /the file is empty/);
  await rejects([header, 'a,b'], /Invalid Record Length: columns length is 6, got 2 on line 2/);
  const options = await run('--groups', 'a.csv', '--again');
  assert.match(options.err, /--groups and --oneroster allow only --tenant, --dry-run and --json/);
  const missing = await run('--groups', 'missing.csv');
  assert.match(missing.err, /missing\.csv: ENOENT/);
  const latin1 = await write('latin1.csv', [header]);
  await writeFile(latin1, Buffer.from(`${header}\ng,Z\u00fcrich,,,ada,\n`, 'latin1'));
  assert.match((await run('--groups', latin1)).err, /latin1\.csv: .*encod/i);
});

const usersHeader =
  'sourcedId,status,dateLastModified,enabledUser,orgSourcedIds,role,username,userIds,givenName,familyName,middleName,identifier,email,sms,phone,agentSourcedIds,grades,password';
const classesHeader =
  'sourcedId,status,dateLastModified,title,grades,courseSourcedId,classCode,classType,location,schoolSourcedId,termSourcedIds,subjects,subjectCodes,periods';
const enrollmentsHeader =
  'sourcedId,status,dateLastModified,classSourcedId,schoolSourcedId,userSourcedId,role,primary,beginDate,endDate';

const user = (id: string, role: string, name: string, grade = '', status = ''): string =>
  `${id},${status},,true,org-1,${role},${id},,${name.replace(' ', ',')},,,,,,,${grade},`;
const klass = (id: string, title: string, status = ''): string =>
  `${id},${status},,${title},,course-1,,scheduled,,org-1,term-1,,,`;
const enrollment = (classId: string, userId: string, role: string, rest = ',,,', status = ''): string =>
  `${classId}-${userId},${status},,${classId},org-1,${userId},${role}${rest}`;

test('import --oneroster reads schools, classes, grades and teachers of OneRoster 1.1 files', async (t) => {
  const { dir, write, run, runJson, listGroups, nameOf } = await prepare(t);
  const users = [
    ...[user('t1', 'teacher', 'Ana Rivera'), user('s1', 'student', 'Ada Lee', '09')],
    ...[user('s2', 'student', 'Ben Cohen', '09'), user('s3', 'student', 'Cleo Ito', '10')],
    ...[user('gone', 'student', 'Gus Old', '09', 'tobedeleted'), user('t2', 'teacher', 'Mo Osei')],
  ];
  const enrollments = [
    ...[enrollment('c1', 's1', 'student'), enrollment('c1', 't1', 'teacher')],
    ...[enrollment('c1', 's2', 'student', ',,2020-01-01,2999-01-01'), enrollment('c2', 's3', 'student')],
    ...[enrollment('c2', 't1', 'teacher'), enrollment('c2', 's1', 'student', ',,2020-01-01,2020-07-01')],
    ...[enrollment('c2', 's2', 'student', ',,2999-01-01,'), enrollment('c1', 'gone', 'student')],
    ...[enrollment('c1', 's3', 'student', ',,,', 'tobedeleted'), enrollment('c1', 't1', 'aide')],
  ];
  await write('users.csv', [usersHeader, ...users]);
  await write('classes.csv', [classesHeader, klass('c1', 'Algebra'), klass('c2', 'Geometry')]);
  await write('enrollments.csv', [enrollmentsHeader, ...enrollments]);
  await write('orgs.csv', [
    'sourcedId,status,dateLastModified,name,type,identifier,parentSourcedId',
    'org-1,,,North,school,,',
  ]);
  await write('manifest.csv', ['propertyName,value', 'oneroster.version,1.1', 'file.enrollments,bulk']);
  const { groups, members, names, changed } = await runJson('--oneroster', dir);
  assert.deepEqual([groups, members, names], [7, 9, 3]);
  assert.deepEqual(changed, { groups: 7, names: 3, removed: 0 });
  const expected = {
    c1: ['Algebra', 'class', 'org-1', 's1 s2'],
    c2: ['Geometry', 'class', 'org-1', 's3'],
    'grade-org-1-09': ['Grade 09', 'grade', 'org-1', 's1 s2'],
    'grade-org-1-10': ['Grade 10', 'grade', 'org-1', 's3'],
    'org-1': ['North', 'school', null, ''],
    'teacher-t1': ['Ana Rivera', 'teacher', null, 's1 s2 s3'],
    'teacher-t2': ['Mo Osei', 'teacher', null, ''],
  };
  assert.deepEqual(await listGroups('default'), expected);
  assert.deepEqual([await nameOf('default', 's1'), await nameOf('default', 'gone')], ['Ada Lee', undefined]);
  assert.deepEqual((await runJson('--oneroster', dir)).changed, { groups: 0, names: 0, removed: 0 });

  await write('classes.csv', [classesHeader, klass('c1', 'Algebra'), klass('c2', 'Geometry', 'tobedeleted')]);
  assert.deepEqual((await runJson('--oneroster', dir)).changed, { groups: 1, names: 0, removed: 1 });
  const { c2: _, ...remaining } = expected;
  const teacher = ['Ana Rivera', 'teacher', null, 's1 s2'];
  assert.deepEqual(await listGroups('default'), { ...remaining, 'teacher-t1': teacher });

  const bad = [
    [enrollment('c9', 's1', 'student'), /line 2: class "c9" is not in classes\.csv\n/],
    [enrollment('c1', 's9', 'student'), /line 2: user "s9" is not in users\.csv\n/],
    [enrollment('c1', 's1', 'student', ',,9/1/2026,'), /line 2: beginDate and endDate must be YYYY-MM-DD/],
  ] as const;
  for (const [row, expected] of bad) {
    await write('enrollments.csv', [enrollmentsHeader, row]);
    const { code, err } = await run('--oneroster', dir);
    assert.deepEqual([code, expected.test(err)], [1, true], err);
  }
  await write('manifest.csv', ['propertyName,value', 'file.enrollments,delta']);
  assert.match((await run('--oneroster', dir)).err, /manifest\.csv, line 2: delta files are not supported/);
});
