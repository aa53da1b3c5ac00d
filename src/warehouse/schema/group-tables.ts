/** Groups and profiles of learners. Inserts can be repeated: queries select one row per key. */
import { defineTable, type View } from '../clickhouse/ddl.js';
import { pickColumns, selectLastChanges } from './current-views.js';

const engine = 'ReplacingMergeTree';

export const groupChanges = defineTable(
  'group_changes -- Changes and deletions of groups of learners, one row each; the view groups shows the current groups',
  `
    tenant LowCardinality(String) -- Owner
    group_id String -- Group
    updated_at DateTime64(3, 'UTC') -- Time of the change, clock of Redis; increases with every change
    name Nullable(String) -- Display name; NULL: the group was deleted
    kind LowCardinality(String) -- Kind of group, for example class, grade or school
    parent_group_id String -- Group that contains this one; empty: none
    created_at DateTime64(3, 'UTC') -- Time of creation
  `,
  { engine, orderBy: '(tenant, group_id, updated_at)', shardBy: 'cityHash64(tenant)' },
);

export const groupMemberChanges = defineTable(
  'group_member_changes -- Learners who joined or left a group, one row each; the view group_members shows the memberships',
  `
    tenant LowCardinality(String) -- Owner
    user_id String zstd -- Learner
    group_id String zstd -- Group
    updated_at DateTime64(3, 'UTC') delta -- Time of the change, clock of Redis
    is_member UInt8 -- 1: joined; 0: left
  `,
  { engine, orderBy: '(tenant, user_id, group_id, updated_at)' },
);

export const learnerProfileChanges = defineTable(
  'learner_profile_changes -- Changes and removals of profiles, one row each; the view learner_profiles shows the current profiles',
  `
    tenant LowCardinality(String) -- Owner
    user_id String zstd -- Learner
    updated_at DateTime64(3, 'UTC') delta -- Time of the change, clock of Redis; increases with every change
    display_name Nullable(String) zstd -- Name to display; NULL: none
    attributes Map(String, String) zstd -- Attributes that the platform set
  `,
  { engine, orderBy: '(tenant, user_id, updated_at)' },
);

export const groups: View = {
  name: 'groups',
  comment: 'Current groups of learners',
  columns: [
    ...pickColumns(groupChanges, 'tenant', 'group_id'),
    { name: 'name', type: 'String', comment: 'Display name' },
    ...pickColumns(groupChanges, 'kind', 'parent_group_id', 'created_at', 'updated_at'),
  ],
  query: `SELECT tenant, group_id, assumeNotNull(last.1) AS name, last.2 AS kind, last.3 AS parent_group_id,
  last.4 AS created_at, last_at AS updated_at
FROM ${selectLastChanges('group_changes', 'tenant, group_id', 'name, kind, parent_group_id, created_at')}
WHERE last.1 IS NOT NULL`,
};

export const groupMembers: View = {
  name: 'group_members',
  comment:
    'Memberships of learners in groups, one row from joining to leaving; current members have no left_at',
  columns: [
    ...pickColumns(groupMemberChanges, 'tenant', 'group_id', 'user_id'),
    { name: 'joined_at', type: "DateTime64(3, 'UTC')", comment: 'Time when the learner joined' },
    {
      name: 'left_at',
      type: "Nullable(DateTime64(3, 'UTC'))",
      comment: 'Time when the learner left, or the group was deleted; NULL: current member',
    },
  ],
  query: `SELECT tenant, group_id, user_id, updated_at AS joined_at, next_at AS left_at
FROM (
  SELECT tenant, group_id, user_id, updated_at, is_member,
    leadInFrame(toNullable(updated_at)) OVER (PARTITION BY tenant, user_id, group_id ORDER BY updated_at
      ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS next_at
  FROM group_member_changes FINAL
) WHERE is_member = 1`,
};

export const learnerProfiles: View = {
  name: 'learner_profiles',
  comment: 'Current display names and attributes of learners',
  columns: pickColumns(learnerProfileChanges),
  query: `SELECT tenant, user_id, last.1 AS display_name, last.2 AS attributes, last_at AS updated_at
FROM ${selectLastChanges('learner_profile_changes', 'tenant, user_id', 'display_name, attributes')}
WHERE last.1 IS NOT NULL OR notEmpty(last.2)`,
};
