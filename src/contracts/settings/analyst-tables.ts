/**
 * Readable by the read-only account: the tables of docs/analytics/schema.md and all tables with learner rows, so that
 * it can prove an erasure. Excluded: keys, receipts, settings, and webhooks (a URL may contain a password).
 */
export const analystTables: readonly string[] =
  `archived_learner_skill archived_months attempts cohort_skill_weekly daily_skill forecast_coverage
  forecast_outcomes forecasts goal_changes goals group_changes group_member_changes group_members group_weekly
  groups learner_profile_changes learner_profiles learner_skill_daily learner_skill_total learner_snapshots
  learner_sums model_versions served_forecasts skill_answers skill_catalogue skill_changes skill_daily
  skill_parameters skill_velocity taken_back tenant_settings time_zones`.split(/\s+/);
