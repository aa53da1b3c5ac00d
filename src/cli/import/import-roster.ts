import { setTimeout as sleep } from 'node:timers/promises';
import Type from 'typebox';
import { Compile } from 'typebox/compile';
import { startJournal } from '../../app/processes/consumers.js';
import type { Engine } from '../../app/startup/engine.js';
import { prepareSchema } from '../../app/startup/prepare-schema.js';
import {
  DisplayName,
  GroupKind,
  GroupName,
  type GroupSetting,
  groupLimits,
} from '../../contracts/learners/groups.js';
import { Id } from '../../contracts/schema/ids.js';
import { describeErrors, nullable } from '../../contracts/schema/validate.js';
import { formatDate } from '../../domain/base/common.js';
import { formatJsonLine, formatNumber } from '../../lab/report/format.js';
import { StartError } from '../../lifecycle.js';
import { computeSum, splitIntoParts } from '../../lists.js';
import { hasSetting, replaceGroup } from '../../services/groups/manage-groups.js';
import type { GroupChange, GroupWithMembers } from '../../store/groups/group-store.js';
import type { CommandContext } from '../support/command.js';
import { openEngine } from '../support/servers.js';
import { type RosterRow, readGroupsFile, readOneRoster } from './roster-rows.js';

interface RosterArguments {
  /** The folder of OneRoster files. */
  readonly file: string;
  readonly roster: 'groups' | 'oneroster';
  readonly tenant: string;
  readonly dryRun: boolean;
  readonly json: boolean;
}

/** Replaces the groups of the files, and the names of their members. Invalid files change nothing. */
export async function importRoster(context: CommandContext, args: RosterArguments): Promise<void> {
  const { file, tenant } = args;
  const rows = args.roster === 'groups' ? readGroupsFile(file) : readOneRoster(file, formatDate(Date.now()));
  const roster = await collectRoster(rows);
  const members = computeSum([...roster.groups.values()].map((group) => group.members.size));
  const { groups, names, removed } = roster;
  const found = { groups: groups.size, members, names: names.size, removed: removed.size };
  const changed = args.dryRun ? null : await writeRoster(context, tenant, roster);
  const text = `${file}: ${formatCounts(found)}\nChanged in tenant ${tenant}: ${formatCounts(changed ?? {})}`;
  context.print(args.json ? formatJsonLine({ file, tenant, ...found, changed }) : text);
}

const formatCounts = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(([name, count]) => `${formatNumber(count)} ${name}`)
    .join(', ') || 'nothing';

const rowCheck = Compile(
  Type.Object({
    ...{ group_id: Id, name: GroupName, kind: GroupKind, parent_group_id: nullable(Id) },
    ...{ user_id: nullable(Id), display_name: nullable(DisplayName) },
  }),
);

const createRoster = () => ({
  groups: new Map<string, { readonly setting: GroupSetting; readonly members: Set<string> }>(),
  removed: new Set<string>(),
  names: new Map<string, string>(),
});
type Roster = ReturnType<typeof createRoster>;

const maxProblems = 10;

/** @throws StartError with the first problems */
async function collectRoster(rows: AsyncIterable<RosterRow>): Promise<Roster> {
  const roster = createRoster();
  const problems: string[] = [];
  for await (const row of rows) {
    const problem = addRow(roster, row);
    if (problem !== null) problems.push(`${row.place}: ${problem}`);
    if (problems.length === maxProblems) break;
  }
  if (problems.length === 0) return roster;
  throw new StartError([...problems, 'Nothing was imported'].join('\n'));
}

/** @returns why the row is invalid, or null */
function addRow({ groups, removed, names }: Roster, row: RosterRow): string | null {
  const { groupId, setting, member } = row;
  if (setting === null) {
    removed.add(groupId);
    return null;
  }
  const { name, kind, parentGroupId: parent_group_id } = setting;
  const { userId: user_id = null, displayName: display_name = null } = member ?? {};
  const values = { group_id: groupId, name, kind, parent_group_id, user_id, display_name };
  const [error] = rowCheck.Check(values) ? [] : describeErrors(rowCheck.Errors(values));
  if (error !== undefined) return `${error.path} ${error.message}`;
  if (parent_group_id === groupId) return 'parent_group_id must be another group';
  const group = groups.get(groupId) ?? { setting, members: new Set() };
  groups.set(groupId, group);
  if (!hasSetting(group.setting, setting))
    return `name, kind or parent_group_id of group "${groupId}" differ from an earlier row`;
  if (user_id !== null) group.members.add(user_id);
  if (user_id !== null && display_name !== null) {
    if ((names.get(user_id) ?? display_name) !== display_name)
      return `display_name of "${user_id}" differs from an earlier row`;
    names.set(user_id, display_name);
  }
  if (group.members.size > groupLimits.members)
    return `group "${groupId}" has more than ${groupLimits.members} members`;
  return groups.size > groupLimits.groupsPerTenant ? `more than ${groupLimits.groupsPerTenant} groups` : null;
}

const planRemoval = (group: GroupWithMembers | null): GroupChange | null =>
  group && { setting: null, added: [], removed: [...group.members.keys()] };

/** Far below the limit of the journal, which the service shares. */
const maxWaitingChanges = 50_000;
const waitMs = 200;
/** Each replaces up to 2,000 members. */
const groupsPerWrite = 10;
const namesPerWrite = 1000;

/** Equal groups and names are not written. @returns counts of changes */
async function writeRoster(context: CommandContext, tenant: string, { groups, removed, names }: Roster) {
  const { config, logger, closers } = context;
  const engine = await openEngine(context, config);
  await prepareSchema(engine.endpoints, logger, closers);
  startJournal(engine);
  const waitForRoom = async (): Promise<void> => {
    while ((await engine.journal.facts()).journalLength > maxWaitingChanges) await sleep(waitMs);
  };
  const stored = new Map((await engine.groups.list(tenant)).map((group) => [group.groupId, group.updatedAt]));
  const changed = { groups: 0, names: 0, removed: 0 };
  for (const part of splitIntoParts([...groups], groupsPerWrite)) {
    await waitForRoom();
    for (const [groupId, { setting, members }] of part) {
      const { updatedAt } = await replaceGroup(engine.groups, tenant, groupId, setting, [...members]);
      if (updatedAt !== stored.get(groupId)) changed.groups++;
    }
  }
  for (const groupId of [...removed].filter((id) => stored.has(id))) {
    await waitForRoom();
    await engine.groups.change(tenant, groupId, planRemoval);
    changed.removed++;
  }
  for (const part of splitIntoParts([...names], namesPerWrite)) {
    await waitForRoom();
    changed.names += await writeNames(engine, tenant, part);
  }
  return changed;
}

/** Keeps the attributes of the learners. @returns number of changed names */
async function writeNames(
  { profiles }: Pick<Engine, 'profiles'>,
  tenant: string,
  names: readonly (readonly [userId: string, displayName: string])[],
): Promise<number> {
  const userIds = names.map(([userId]) => userId);
  const stored = await profiles.readMany(tenant, userIds);
  const changed = names.filter(([userId, displayName]) => stored.get(userId)?.displayName !== displayName);
  for (const [userId, displayName] of changed)
    await profiles.write(tenant, userId, { displayName, attributes: stored.get(userId)?.attributes ?? {} });
  return changed.length;
}
