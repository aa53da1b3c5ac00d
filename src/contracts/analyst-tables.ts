/**
 * Tables and views that the read-only account may read: the tables of docs/schema.md, their sources, and all tables with rows of
 * learners, so that this account can prove an erasure. Left out: `api_keys` and `deployments` (quotas, scopes, encrypted hashes),
 * `erasures` (receipts belong to the tenant), `webhooks` (a URL may contain a password), `xapi_mappings` (settings of a tenant),
 * `schema_migrations`.
 */
export const analystTables: readonly string[] =
  `archived_learner_skill archived_months attempts cohort_skill_weekly daily_skill
  forecast_coverage forecast_outcomes forecasts goal_changes goals learner_skill_daily
  learner_skill_total learner_snapshots learner_sums model_versions served_forecasts skill_catalogue
  skill_changes skill_daily skill_parameters skill_velocity taken_back`.split(/\s+/);
