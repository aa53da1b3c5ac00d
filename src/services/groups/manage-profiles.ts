import type { Call } from '../../contracts/access/call.js';
import { type Profile, profileCheck, profilesCheck } from '../../contracts/learners/groups.js';
import { parseJson, parseLargeJson } from '../../contracts/schema/json.js';
import { validate } from '../../contracts/schema/validate.js';
import { distinct } from '../../lists.js';
import type { Group, GroupStore } from '../../store/groups/group-store.js';
import type { ProfileStore } from '../../store/groups/profile-store.js';
import { learnerNotFound, type MasteryPorts } from '../learners/read-mastery.js';
import { sortIdsAfter } from '../paging/pages.js';

export interface ProfilePorts extends Pick<MasteryPorts, 'learners'> {
  readonly profiles: ProfileStore;
  readonly groups: Pick<GroupStore, 'findLearnerGroups'>;
}

export async function readProfile(ports: ProfilePorts, { tenant }: Call, userId: string) {
  const profile = await describeLearner(ports, tenant, userId);
  const isKnown = profile.updated_at !== null || profile.groups.length > 0;
  if (!isKnown && (await ports.learners.readState(tenant, userId)) === null) throw learnerNotFound();
  return profile;
}

async function describeLearner({ profiles, groups }: ProfilePorts, tenant: string, userId: string) {
  const profile = await profiles.read(tenant, userId);
  const found = new Map((await groups.findLearnerGroups(tenant, userId)).map((one) => [one.groupId, one]));
  const described = sortIdsAfter(found.keys(), null).map((groupId) => {
    const { name, kind } = found.get(groupId) as Group;
    return { group_id: groupId, name, kind };
  });
  const updatedAt = profile === null ? null : new Date(profile.updatedAt).toISOString();
  return { ...describeProfile(userId, profile), groups: described, updated_at: updatedAt };
}

const describeProfile = (userId: string, profile: Profile | null) => ({
  user_id: userId,
  display_name: profile?.displayName ?? null,
  attributes: profile?.attributes ?? {},
});

/** Replaces the profile. Without name and attributes, removes it. */
export async function putProfile(ports: ProfilePorts, { tenant, body }: Call, userId: string) {
  const { display_name, attributes } = validate(profileCheck, parseJson(body), 'profile');
  const profile = { displayName: display_name ?? null, attributes: attributes ?? {} };
  await ports.profiles.write(tenant, userId, profile);
  return describeLearner(ports, tenant, userId);
}

const maxBodyValues = 5000;

export async function readProfiles({ profiles }: ProfilePorts, { tenant, body }: Call) {
  const sent = validate(profilesCheck, await parseLargeJson(body, maxBodyValues), 'request');
  const found = await profiles.readMany(tenant, distinct(sent.user_ids));
  return { profiles: [...found].map(([userId, profile]) => describeProfile(userId, profile)) };
}
