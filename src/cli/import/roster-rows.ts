/** Rows of files with groups: the CSV of Skilltrace, and OneRoster 1.1. Values are not checked yet. */
import { createReadStream, existsSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream';
import { parse } from 'csv-parse';
import type { GroupSetting } from '../../contracts/learners/groups.js';
import { StartError } from '../../lifecycle.js';

/** A group, and one of its members or null. `place`: file and line. */
export type RosterRow = { readonly place: string } & (
  | { readonly problem: string }
  | { readonly removedGroupId: string }
  | { readonly groupId: string; readonly setting: GroupSetting; readonly member: Member | null }
);
interface Member {
  readonly userId: string;
  readonly displayName: string | null;
}

async function* decodeText(chunks: AsyncIterable<Buffer>) {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  for await (const chunk of chunks) yield decoder.decode(chunk, { stream: true });
  yield decoder.decode();
}

/** @throws StartError if a column is missing or the file is damaged */
async function* readCsv(path: string, ...required: readonly string[]) {
  const columns = (names: string[]): string[] => {
    const missing = required.filter((name) => !names.includes(name));
    if (missing.length > 0) throw new StartError(`line 1 lacks the columns ${missing.join(', ')}`);
    return names;
  };
  const parser = parse({ columns, info: true, skip_empty_lines: true, trim: true });
  // An error of any part ends the parser.
  pipeline(createReadStream(path), decodeText, parser, () => undefined);
  try {
    for await (const { record, info } of parser)
      yield { place: `${path}, line ${info.lines}`, row: record as Readonly<Record<string, string>> };
  } catch (error) {
    throw new StartError(`${path}: ${error instanceof Error ? error.message : error}`, { cause: error });
  }
}

/** @throws StartError */
export async function* readGroupsFile(path: string): AsyncGenerator<RosterRow> {
  for await (const { place, row } of readCsv(path, 'group_id', 'name', 'user_id')) {
    const { group_id: groupId = '', name = '', kind, parent_group_id, user_id: userId, display_name } = row;
    const setting = { name, kind: kind || 'class', parentGroupId: parent_group_id || null };
    yield { place, groupId, setting, member: userId ? { userId, displayName: display_name || null } : null };
  }
}

/** Null: removed. */
type Names = Map<string, string | null>;
type Settings = Map<string, GroupSetting | null>;

/**
 * Schools and classes are groups, and so are `grade-SCHOOL-GRADE` and `teacher-USER`.
 * @param today YYYY-MM-DD; enrollments of other days are left out
 * @throws StartError
 */
export async function* readOneRoster(folder: string, today: string): AsyncGenerator<RosterRow> {
  const findFile = (name: string): string => join(folder, `${name}.csv`);
  const hasFile = (name: string): boolean => existsSync(findFile(name));
  const [names, settings]: [Names, Settings] = [new Map(), new Map()];
  if (hasFile('manifest'))
    for await (const { place, row } of readCsv(findFile('manifest'), 'propertyName', 'value'))
      if (row.value === 'delta')
        throw new StartError(`${place}: delta files are not supported, only bulk files`);
  if (hasFile('orgs')) yield* readGroups(findFile('orgs'), settings);
  yield* readGroups(findFile('classes'), settings);
  yield* readUsers(findFile('users'), names);
  const teachers = new Map<string, string[]>();
  for (const pass of ['teacher', 'student'])
    for await (const row of readEnrollments(findFile('enrollments'), pass, names, settings, today)) {
      if ('problem' in row) yield row;
      else if (pass === 'teacher')
        teachers.set(row.groupId, [...(teachers.get(row.groupId) ?? []), row.member.userId]);
      else {
        yield row;
        for (const id of teachers.get(row.groupId) ?? [])
          yield { ...row, ...describeTeacher(id, `${names.get(id)}`) };
      }
    }
}

const isRemoved = ({ status }: Readonly<Record<string, string>>): boolean => status === 'tobedeleted';

/** Reads organizations or classes. */
async function* readGroups(path: string, settings: Settings): AsyncGenerator<RosterRow> {
  for await (const { place, row } of readCsv(path, 'sourcedId')) {
    const { sourcedId: groupId = '', name = '', title = name, type: kind = 'class' } = row;
    const setting = { name: title, kind, parentGroupId: row.schoolSourcedId || row.parentSourcedId || null };
    settings.set(groupId, isRemoved(row) ? null : setting);
    yield isRemoved(row) ? { place, removedGroupId: groupId } : { place, groupId, setting, member: null };
  }
}

const describeTeacher = (userId: string, name: string) => ({
  groupId: `teacher-${userId}`,
  setting: { name, kind: 'teacher', parentGroupId: null },
});

async function* readUsers(path: string, names: Names): AsyncGenerator<RosterRow> {
  for await (const { place, row } of readCsv(path, 'sourcedId', 'role', 'givenName', 'familyName')) {
    const { sourcedId: userId = '', orgSourcedIds = '', role, givenName, familyName, grades } = row;
    const displayName = `${givenName} ${familyName}`.trim();
    names.set(userId, isRemoved(row) ? null : displayName);
    const teacher = { place, ...describeTeacher(userId, displayName), member: null };
    if (role === 'teacher') yield isRemoved(row) ? { place, removedGroupId: teacher.groupId } : teacher;
    if (isRemoved(row) || role !== 'student' || !grades) continue;
    const [parentGroupId = ''] = orgSourcedIds.split(',');
    const setting = { name: `Grade ${grades}`, kind: 'grade', parentGroupId };
    yield { place, groupId: `grade-${parentGroupId}-${grades}`, setting, member: { userId, displayName } };
  }
}

async function* readEnrollments(path: string, role: string, names: Names, settings: Settings, today: string) {
  for await (const { place, row } of readCsv(path, 'classSourcedId', 'userSourcedId', 'role')) {
    const { classSourcedId: groupId = '', userSourcedId: userId = '', beginDate = '', endDate = '' } = row;
    const [displayName, setting] = [names.get(userId), settings.get(groupId)];
    if (row.role !== role) continue;
    if (displayName === undefined) yield { place, problem: `userSourcedId "${userId}" is not in users.csv` };
    else if (setting === undefined)
      yield { place, problem: `classSourcedId "${groupId}" is not in classes.csv` };
    else if (!/^(\d{4}-\d\d-\d\d)? (\d{4}-\d\d-\d\d)?$/.test(`${beginDate} ${endDate}`))
      yield { place, problem: 'beginDate and endDate must be YYYY-MM-DD or empty' };
    // An enrollment ends before endDate.
    else if (beginDate > today || (endDate !== '' && endDate <= today) || isRemoved(row)) continue;
    else if (displayName !== null && setting !== null)
      yield { place, groupId, setting, member: { userId, displayName } };
  }
}
