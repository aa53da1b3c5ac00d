import { setTimeout as sleep } from 'node:timers/promises';
import Type from 'typebox';
import { Compile } from 'typebox/compile';
import { startJournal } from '../../app/processes/consumers.js';
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
  const { file, tenant, dryRun } = args;
  const rows = args.roster === 'groups' ? readGroupsFile(file) : readOneRoster(file, formatDate(Date.now()));
  const roster = await collectRoster(rows);
  const { groups, removed, names } = roster;
  const members = computeSum([...groups.values()].map((group) => group.members.size));
  const found = { tenant, groups: groups.size, members, names: names.size, removed: removed.size };
  const changed = dryRun ? null : await writeRoster(context, tenant, roster);
  if (args.json) return context.print(formatJsonLine({ file, ...found, changed }));
  const foundText = `${file}: ${formatCounts(found)} for tenant ${tenant}`;
  const changedText =
    changed === null ? 'Nothing was written (--dry-run)' : `Changed: ${formatCounts(changed)}`;
  context.print(`${foundText}\n${changedText}`);
}

type RosterCounts = Readonly<Record<'groups' | 'names' | 'removed', number>> & { readonly members?: number };

const formatCounts = ({ groups, members, names, removed }: RosterCounts): string =>
  [
    `${formatNumber(groups)} groups${members === undefined ? '' : ` with ${formatNumber(members)} members`}`,
    `${formatNumber(names)} names, ${formatNumber(removed)} removed groups`,
  ].join(', ');

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
  if ('problem' in row) return row.problem;
  if ('removedGroupId' in row) {
    removed.add(row.removedGroupId);
    return null;
  }
  const { groupId, setting, member } = row;
  const { name, kind, parentGroupId: parent_group_id } = setting;
  const { userId: user_id = null, displayName: display_name = null } = member ?? {};
  const values = { group_id: groupId, name, kind, parent_group_id, user_id, display_name };
  if (!rowCheck.Check(values))
    return describeErrors(rowCheck.Errors(values))
      .map(({ path, message }) => `${path} ${message}`)
      .join('; ');
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

/** Far below the limit of the journal, which changes by the service share. */
const maxWaitingChanges = 50_000;
const waitMs = 200;
const namesPerRead = 1000;

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
  for (const [groupId, { setting, members }] of groups) {
    await waitForRoom();
    const { updatedAt } = await replaceGroup(engine.groups, tenant, groupId, setting, members);
    if (updatedAt !== stored.get(groupId)) changed.groups++;
  }
  for (const groupId of [...removed].filter((id) => stored.has(id))) {
    await engine.groups.change(
      tenant,
      groupId,
      (before) => before && { setting: null, added: [], removed: [...before.members.keys()] },
    );
    changed.removed++;
  }
  for (const part of splitIntoParts([...names], namesPerRead)) {
    await waitForRoom();
    const userIds = part.map(([userId]) => userId);
    const profiles = await engine.profiles.readMany(tenant, userIds);
    for (const [userId, displayName] of part) {
      const before = profiles.get(userId);
      if (before?.displayName === displayName) continue;
      await engine.profiles.write(tenant, userId, { displayName, attributes: before?.attributes ?? {} });
      changed.names++;
    }
  }
  return changed;
}
