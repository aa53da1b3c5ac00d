import Type from 'typebox';
import { Attributes, DisplayName, GroupKind, GroupName } from '../learners/groups.js';
import { StoredId } from '../schema/ids.js';
import { nullable } from '../schema/validate.js';
import { Count, namedFields, pageSchema, Time } from './shared-schemas.js';

const described = { group_id: StoredId, name: GroupName, kind: GroupKind };
const listed = {
  ...described,
  parent_group_id: nullable(StoredId),
  ...namedFields(Time, 'created_at', 'updated_at'),
};

export const Group = Type.Object({ ...listed, user_ids: Type.Array(StoredId) });
export const GroupPage = pageSchema('groups', Type.Object({ ...listed, members: Count }));
export const ChangedMembers = Type.Object({
  ...{ group_id: StoredId, updated_at: Time },
  ...namedFields(Count, 'added', 'removed', 'members'),
});
export const DeletedGroup = Type.Object({ group_id: StoredId, deleted_at: Time });

const profile = { user_id: StoredId, display_name: nullable(DisplayName), attributes: Attributes };

export const Profile = Type.Object({
  ...profile,
  groups: Type.Array(Type.Object(described), { description: 'Groups of the learner, sorted by group_id.' }),
  updated_at: nullable(Time),
});
export const Profiles = Type.Object({
  profiles: Type.Array(Type.Object(profile), {
    description: 'In the order of the request, without learners that have no profile.',
  }),
});
