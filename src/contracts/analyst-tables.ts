/**
 * Tables and views that the read-only account of the embedded ClickHouse may read, and no others: what docs/schema.md says
 * analysts of, what those views are made of, and every table with rows of learners, so that the proof of an erasure can be
 * asked by this account. Not among them on purpose: `api_keys` and `deployments` (quotas, scopes, sealed hashes),
 * `erasures` (receipts are their tenant's), `webhooks` (a URL may hold a password), `xapi_mappings` (a tenant's own settings),
 * `schema_migrations`.
 */
export const analystTables: readonly string[] =
  `archived_learner_skill archived_months attempts cohort_skill_weekly daily_skill
  forecast_coverage forecast_outcomes forecasts goal_changes goals learner_skill_daily
  learner_skill_total learner_snapshots learner_sums model_versions served_forecasts skill_catalogue
  skill_changes skill_daily skill_parameters skill_velocity taken_back`.split(/\s+/);
