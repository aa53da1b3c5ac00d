import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';
import { Id, noControls, StoredId } from '../schema/ids.js';
import { optionalNullable } from '../schema/validate.js';

export const groupLimits = { members: 2000, groupsPerTenant: 10_000, attributes: 10 } as const;

const ShortText = (maxLength: number) => Type.String({ minLength: 1, maxLength, pattern: noControls });

export const GroupName = ShortText(128);
export const GroupKind = ShortText(32);
const membersLimit = { maxItems: groupLimits.members };
const UserIds = Type.Array(Id, membersLimit);

export const GroupBody = Type.Object(
  {
    name: GroupName,
    kind: Type.Optional({ ...GroupKind, default: 'class' }),
    user_ids: {
      ...UserIds,
      description: 'Members. A learner need not have answers. Repeated ids count once.',
    },
    parent_group_id: optionalNullable({ ...Id, description: 'Group that contains this one; not checked.' }),
  },
  { examples: [{ name: 'Year 9, Ms Lee', user_ids: ['ada', 'ben'], parent_group_id: 'year-9' }] },
);
export const groupCheck = Compile(GroupBody);

export const MembersBody = Type.Object(
  { add: optionalNullable(UserIds), remove: optionalNullable(Type.Array(StoredId, membersLimit)) },
  { examples: [{ add: ['cleo'], remove: ['ben'] }] },
);
export const membersCheck = Compile(MembersBody);

export const Attributes = Type.Record(Type.String(), ShortText(128), {
  ...{ maxProperties: groupLimits.attributes, propertyNames: ShortText(64), additionalProperties: false },
  description: 'Up to 10 attributes: names of 1 to 64 characters, values of 1 to 128.',
});
export const DisplayName = ShortText(128);

export const ProfileBody = Type.Object(
  { display_name: optionalNullable(DisplayName), attributes: optionalNullable(Attributes) },
  { examples: [{ display_name: 'Ada L.', attributes: { hints: 'on' } }] },
);
export const profileCheck = Compile(ProfileBody);

export const ProfilesBody = Type.Object(
  { user_ids: Type.Array(StoredId, { minItems: 1, ...membersLimit }) },
  { examples: [{ user_ids: ['ada', 'ben'] }] },
);
export const profilesCheck = Compile(ProfilesBody);

export interface Profile {
  readonly displayName: string | null;
  readonly attributes: Static<typeof Attributes>;
}

export interface GroupSetting {
  readonly name: string;
  readonly kind: string;
  readonly parentGroupId: string | null;
}
