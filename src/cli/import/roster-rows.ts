/** Rows of files with groups: the CSV of Skilltrace, and OneRoster 1.1. Values are not checked yet. */
import { createReadStream, existsSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream';
import { parse } from 'csv-parse';
import type { GroupSetting } from '../../contracts/learners/groups.js';
import { StartError } from '../../lifecycle.js';

export interface RosterRow {
  /** File and line. */
  readonly place: string;
  readonly groupId: string;
  /** Null: removed. */
  readonly setting: GroupSetting | null;
  readonly member: { readonly userId: string; readonly displayName: string | null } | null;
}

type CsvRow = Readonly<Record<string, string>>;

async function* decodeText(chunks: AsyncIterable<Buffer>) {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  for await (const chunk of chunks) yield decoder.decode(chunk, { stream: true });
  yield decoder.decode();
}

/** @throws StartError if a column is missing, or the file is damaged or has no first line */
async function* readCsv(path: string, ...required: readonly string[]) {
  let missing = required;
  const columns = (names: string[]): string[] => {
    missing = required.filter((name) => !names.includes(name));
    if (missing.length > 0) throw new StartError(`line 1 lacks the columns ${missing.join(', ')}`);
    return names;
  };
  const parser = parse({ columns, info: true, skip_empty_lines: true, trim: true });
  // An error of any part ends the parser.
  pipeline(createReadStream(path), decodeText, parser, () => undefined);
  try {
    for await (const { record, info } of parser)
      yield { place: `${path}, line ${info.lines}`, row: record as CsvRow };
    if (missing.length > 0) throw new StartError('the file is empty');
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

type Rows = Map<string, RosterRow>;

const isRemoved = ({ status }: CsvRow): boolean => status === 'tobedeleted';

/**
 * Organizations, classes, teachers (`teacher-USER`) and grades (`grade-SCHOOL-GRADE`) are groups.
 * @param today YYYY-MM-DD; enrollments of other days are left out
 * @throws StartError
 */
export async function* readOneRoster(folder: string, today: string): AsyncGenerator<RosterRow> {
  const findFile = (name: string): string => join(folder, `${name}.csv`);
  const [manifest, orgs] = [findFile('manifest'), findFile('orgs')];
  if (existsSync(manifest)) await rejectDelta(manifest);
  const [groups, users]: [Rows, Rows] = [new Map(), new Map()];
  if (existsSync(orgs)) yield* readGroups(orgs, groups);
  yield* readGroups(findFile('classes'), groups);
  yield* readUsers(findFile('users'), users);
  const enrollments = () => readEnrollments(findFile('enrollments'), users, groups, today);
  const teachers = new Map<string, RosterRow[]>();
  const teachersOf = (classId: string): RosterRow[] => teachers.get(classId) ?? [];
  for await (const { role, user, group } of enrollments())
    if (role === 'teacher') teachers.set(group.groupId, [...teachersOf(group.groupId), user]);
  for await (const { place, role, user, group } of enrollments())
    if (role === 'student')
      for (const one of [group, ...teachersOf(group.groupId)]) yield { ...one, place, member: user.member };
}

async function rejectDelta(path: string): Promise<void> {
  for await (const { place, row } of readCsv(path, 'propertyName', 'value'))
    if (row.value === 'delta')
      throw new StartError(`${place}: delta files are not supported, only bulk files`);
}

/** Reads organizations or classes. */
async function* readGroups(path: string, groups: Rows): AsyncGenerator<RosterRow> {
  for await (const { place, row } of readCsv(path, 'sourcedId')) {
    const { sourcedId: groupId = '', name = '', title = name, type: kind = 'class' } = row;
    const parentGroupId = row.schoolSourcedId || row.parentSourcedId || null;
    const setting = isRemoved(row) ? null : { name: title, kind, parentGroupId };
    groups.set(groupId, { place, groupId, setting, member: null });
    yield { place, groupId, setting, member: null };
  }
}

/** Returns teachers and members of grades. `users` receives a group of each user as a teacher. */
async function* readUsers(path: string, users: Rows): AsyncGenerator<RosterRow> {
  for await (const { place, row } of readCsv(path, 'sourcedId', 'role', 'givenName', 'familyName')) {
    const { sourcedId: userId = '', role, givenName, familyName, orgSourcedIds = '', grades } = row;
    const member = { userId, displayName: `${givenName} ${familyName}`.trim() };
    const teacher = { name: member.displayName, kind: 'teacher', parentGroupId: null };
    const user = { place, groupId: `teacher-${userId}`, setting: isRemoved(row) ? null : teacher, member };
    users.set(userId, user);
    if (role === 'teacher') yield { ...user, member: null };
    if (role !== 'student' || !grades || isRemoved(row)) continue;
    const [parentGroupId = ''] = orgSourcedIds.split(',');
    const setting = { name: `Grade ${grades}`, kind: 'grade', parentGroupId: parentGroupId || null };
    yield { place, groupId: `grade-${parentGroupId}-${grades}`, setting, member };
  }
}

/** Of teachers and students, on `today`. @throws StartError */
async function* readEnrollments(path: string, users: Rows, groups: Rows, today: string) {
  for await (const { place, row } of readCsv(path, 'classSourcedId', 'userSourcedId', 'role')) {
    const { role, classSourcedId = '', userSourcedId = '', beginDate = '', endDate = '' } = row;
    if (role !== 'teacher' && role !== 'student') continue;
    const [user, group] = [users.get(userSourcedId), groups.get(classSourcedId)];
    if (user === undefined) throw new StartError(`${place}: user "${userSourcedId}" is not in users.csv`);
    if (group === undefined)
      throw new StartError(`${place}: class "${classSourcedId}" is not in classes.csv`);
    if (!/^(\d{4}-\d\d-\d\d)? (\d{4}-\d\d-\d\d)?$/.test(`${beginDate} ${endDate}`))
      throw new StartError(`${place}: beginDate and endDate must be YYYY-MM-DD or empty`);
    // An enrollment ends before endDate.
    const isCurrent = beginDate <= today && (endDate === '' || today < endDate);
    if (isCurrent && !isRemoved(row) && user.setting !== null && group.setting !== null)
      yield { place, role, user, group };
  }
}
