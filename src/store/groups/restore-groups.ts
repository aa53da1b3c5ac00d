/** Restores and removes groups without journal rows. */
import type { GroupRecord, MembershipRecord } from '../../contracts/rebuild/rebuild-tasks.js';
import { distinct, splitIntoParts } from '../../lists.js';
import { sendPerKey } from '../redis/commands/bulk-operations.js';
import { executeAll, mapRedisErrors, type RedisClient } from '../redis/connection/client.js';
import { groupMembersKey, groupsKey, groupTenantsKey, learnerGroupsKey } from '../redis/keys.js';
import { encodeSetting } from './group-store.js';

/** The caller also removes the rows in ClickHouse. */
export async function removeGroups(client: RedisClient, tenant: string): Promise<void> {
  for (const groupId of await mapRedisErrors(client.hkeys(groupsKey(tenant)))) {
    const members = await mapRedisErrors(client.hkeys(groupMembersKey(tenant, groupId)));
    await sendPerKey(
      client,
      'unlink',
      members.map((userId) => learnerGroupsKey(tenant, userId)),
    );
    await mapRedisErrors(client.unlink(groupMembersKey(tenant, groupId)));
  }
  await mapRedisErrors(client.unlink(groupsKey(tenant)));
  await mapRedisErrors(client.srem(groupTenantsKey, tenant));
}

const recordsPerCommand = 500;

/** Keeps groups and memberships that exist. */
export async function restoreGroups(client: RedisClient, groups: readonly GroupRecord[]): Promise<void> {
  for (const { tenant, groupId, updatedAt, createdAt, ...setting } of groups) {
    const text = `{"v":1,"updatedAt":${updatedAt},"createdAt":${createdAt},${encodeSetting(setting)}`;
    await mapRedisErrors(client.hsetnx(groupsKey(tenant), groupId, text));
  }
  const tenants = distinct(groups.map(({ tenant }) => tenant));
  for (const part of splitIntoParts(tenants, recordsPerCommand))
    await mapRedisErrors(client.sadd(groupTenantsKey, ...part));
}

export async function restoreMemberships(
  client: RedisClient,
  memberships: readonly MembershipRecord[],
): Promise<void> {
  for (const part of splitIntoParts(memberships, recordsPerCommand)) {
    const commands = client.pipeline();
    for (const { tenant, userId, groupId, joinedAt } of part) {
      commands.hsetnx(groupMembersKey(tenant, groupId), userId, `${joinedAt}`);
      commands.sadd(learnerGroupsKey(tenant, userId), groupId);
    }
    await executeAll(commands);
  }
}
