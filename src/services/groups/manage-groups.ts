import Type, { type Static } from 'typebox';
import type { Call } from '../../contracts/access/call.js';
import {
  GroupKind,
  type GroupSetting,
  groupCheck,
  groupLimits,
  membersCheck,
} from '../../contracts/learners/groups.js';
import { parseLargeJson } from '../../contracts/schema/json.js';
import { validate, validationError } from '../../contracts/schema/validate.js';
import { ApiError } from '../../errors.js';
import { distinct } from '../../lists.js';
import type { Group, GroupChange, GroupStore, GroupWithMembers } from '../../store/groups/group-store.js';
import {
  buildPage,
  decodeIdCursor,
  defaultPageLimit,
  encodeIdCursor,
  encodeList,
  PageQuery,
  sortIdsAfter,
} from '../paging/pages.js';

export interface GroupPorts {
  readonly groups: GroupStore;
}

export const groupNotFound = (): ApiError => new ApiError('NOT_FOUND', 'No group has this group_id.');

/** Values of a body with two full lists. */
const maxBodyValues = 2 * groupLimits.members + 100;

export const GroupsQuery = Type.Object({
  ...PageQuery.properties,
  kind: Type.Optional({ ...GroupKind, description: 'Only groups of this kind.' }),
});

export async function listGroups(
  { groups }: GroupPorts,
  { tenant, query: { limit = defaultPageLimit, cursor, kind } }: Call<Static<typeof GroupsQuery>>,
): Promise<string> {
  const all = (await groups.list(tenant)).filter((group) => kind === undefined || group.kind === kind);
  const byId = new Map(all.map((group) => [group.groupId, group]));
  const ids = sortIdsAfter(byId.keys(), decodeIdCursor(cursor)).slice(0, limit + 1);
  const page = buildPage(ids, limit, encodeIdCursor);
  const counts = await groups.countMembers(tenant, page.items);
  const items = page.items.map((id, i) => ({ ...describeGroup(byId.get(id) as Group), members: counts[i] }));
  return encodeList({}, 'groups', { ...page, items });
}

export async function readGroup({ groups }: GroupPorts, { tenant }: Call, groupId: string) {
  const group = await groups.read(tenant, groupId);
  if (group === null) throw groupNotFound();
  return { ...describeGroup(group), user_ids: sortIdsAfter(group.members.keys(), null) };
}

const describeGroup = ({ groupId, name, kind, parentGroupId, createdAt, updatedAt }: Group) => ({
  ...{ group_id: groupId, name, kind, parent_group_id: parentGroupId },
  ...{ created_at: formatTime(createdAt), updated_at: formatTime(updatedAt) },
});

const formatTime = (ms: number): string => new Date(ms).toISOString();

export async function putGroup(ports: GroupPorts, call: Call, groupId: string) {
  const sent = validate(groupCheck, await parseLargeJson(call.body, maxBodyValues), 'group');
  const { name, kind = 'class', user_ids } = sent;
  const parentGroupId = sent.parent_group_id ?? null;
  if (parentGroupId === groupId)
    throw validationError('group', { path: 'parent_group_id', message: 'must be another group' });
  await replaceGroup(ports.groups, call.tenant, groupId, { name, kind, parentGroupId }, user_ids);
  return readGroup(ports, call, groupId);
}

/** Creates or replaces a group. An equal group is not written. @param at as for `change` */
export const replaceGroup = (
  groups: Pick<GroupStore, 'change'>,
  tenant: string,
  groupId: string,
  setting: GroupSetting,
  userIds: readonly string[],
  at: number | null = null,
) => {
  const members = new Set(userIds);
  const plan = (before: GroupWithMembers | null): GroupChange | null => {
    const added = [...members].filter((userId) => !before?.members.has(userId));
    const removed = [...(before?.members.keys() ?? [])].filter((userId) => !members.has(userId));
    const isEqual = before !== null && added.length + removed.length === 0 && hasSetting(before, setting);
    return isEqual ? null : { setting, added, removed };
  };
  return groups.change(tenant, groupId, plan, at);
};

export const hasSetting = (group: GroupSetting, { name, kind, parentGroupId }: GroupSetting): boolean =>
  group.name === name && group.kind === kind && group.parentGroupId === parentGroupId;

export async function deleteGroup({ groups }: GroupPorts, { tenant }: Call, groupId: string) {
  const { updatedAt } = await groups.change(tenant, groupId, (before) => ({
    setting: null,
    added: [],
    removed: [...requireGroup(before).members.keys()],
  }));
  return { group_id: groupId, deleted_at: formatTime(updatedAt) };
}

function requireGroup(group: GroupWithMembers | null): GroupWithMembers {
  if (group === null) throw groupNotFound();
  return group;
}

export async function changeMembers({ groups }: GroupPorts, { tenant, body }: Call, groupId: string) {
  const sent = validate(membersCheck, await parseLargeJson(body, maxBodyValues), 'change of members');
  const [add, remove] = [distinct(sent.add ?? []), new Set(sent.remove ?? [])];
  const both = add.find((userId) => remove.has(userId));
  if (both !== undefined)
    throw validationError('change of members', { path: 'remove', message: 'must not contain ids of add' });
  const { updatedAt, ...counts } = await groups.change(tenant, groupId, (group) =>
    planMembers(requireGroup(group), add, [...remove]),
  );
  return { group_id: groupId, ...counts, updated_at: formatTime(updatedAt) };
}

/** @returns null if nothing changes */
function planMembers(
  group: GroupWithMembers,
  add: readonly string[],
  remove: readonly string[],
): GroupChange | null {
  const added = add.filter((userId) => !group.members.has(userId));
  const removed = remove.filter((userId) => group.members.has(userId));
  const members = group.members.size + added.length - removed.length;
  if (members > groupLimits.members)
    throw new ApiError(
      'LIMIT_EXCEEDED',
      `The group would have ${members} members; the maximum is ${groupLimits.members}.`,
    );
  return added.length + removed.length === 0 ? null : { setting: group, added, removed };
}
