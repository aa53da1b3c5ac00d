/** Changes through the API that the activity log records. */
export const activityNames = [
  ...(['key.created', 'key.changed', 'key.revoked'] as const),
  ...(['webhook.created', 'webhook.changed', 'webhook.deleted', 'webhook.secret_rotated'] as const),
  ...(['erasure.started', 'audit.started', 'rows.redriven', 'model.rolled_back'] as const),
  ...(['skill.saved', 'skill.deleted', 'xapi_mapping.saved', 'settings.saved'] as const),
  ...(['group.saved', 'group.deleted', 'group.members_changed'] as const),
] as const;
export type ActivityName = (typeof activityNames)[number];

export interface ActivityEntry {
  /** Of the changed key, or of the calling key. */
  readonly tenant: string;
  readonly keyId: string;
  readonly keyName: string | null;
  readonly action: ActivityName;
  /** Id of the changed resource; never of a learner. */
  readonly target: string | null;
}
