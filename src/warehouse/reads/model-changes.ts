import type { ModelChange, VersionSkill } from '../../contracts/responses/models.js';
import { modelVersions, skillParameters } from '../schema/model-tables.js';
import type { TenantRead } from './tenant-read.js';

export interface StoredChange extends Omit<ModelChange, 'in_force' | 'kept' | 'summary'> {
  readonly is_last: boolean;
  /** Reasons for not publishing; empty: published. */
  readonly served_reason: string;
  readonly accuracy_reason: string;
  readonly parts: readonly string[];
}

const extractSkills = (fields: string): string => `JSONExtract(report, 'skills', 'Array(Tuple(${fields}))')`;

/** ClickHouse extracts the fields, because reports are long. */
const selectChanges = `
SELECT
  change, version, based_on, action, published_at,
  toBool(change = (SELECT max(change) FROM ${modelVersions.name} WHERE tenant = {tenant:String})) AS is_last,
  if(report = '', NULL, toUInt32(JSONLength(report, 'skills'))) AS skills,
  if(report = '', NULL, toUInt32(arrayCount(s -> s.published, ${extractSkills('published Bool')}))) AS skills_published,
  JSONExtract(report, 'answers', 'Nullable(UInt32)') AS answers,
  JSONExtract(report, 'learners', 'Nullable(UInt32)') AS learners,
  JSONExtract(report, 'served', 'oldLogLoss', 'Nullable(Float64)') AS old_log_loss,
  JSONExtract(report, 'served', 'newLogLoss', 'Nullable(Float64)') AS new_log_loss,
  JSONExtractString(report, 'served', 'reason') AS served_reason,
  JSONExtractString(report, 'accuracy', 'reason') AS accuracy_reason,
  arrayMap(p -> p.part, arrayFilter(p -> p.published,
    JSONExtract(report, 'served', 'parts', 'Array(Tuple(part String, published Bool))'))) AS parts
FROM ${modelVersions.name}
WHERE tenant = {tenant:String} AND change < {before:UInt32}
ORDER BY change DESC LIMIT {atMost:UInt32}`;

const selectSkills = `
SELECT
  p.skill_id AS skill_id, toBool(p.published) AS published, p.parameters_version AS parameters_version,
  p.p_init AS p_init, p.p_learn AS p_learn, p.p_guess AS p_guess, p.p_slip AS p_slip, p.p_forget AS p_forget,
  p.answers AS answers, p.learners AS learners, p.old_log_loss AS old_log_loss, p.new_log_loss AS new_log_loss, r.reason AS reason
FROM ${skillParameters.name} AS p
LEFT JOIN (
  SELECT s.skillId AS skill_id, s.reason AS reason FROM ${modelVersions.name}
  ARRAY JOIN ${extractSkills('skillId String, reason String')} AS s
  WHERE tenant = {tenant:String} AND version = {version:UInt32} AND action = 'fit'
) AS r ON r.skill_id = p.skill_id
WHERE p.tenant = {tenant:String} AND p.version = {version:UInt32} AND p.skill_id > {after:String}
ORDER BY skill_id LIMIT {atMost:UInt32}`;

const selectFit = `SELECT change FROM ${modelVersions.name}
WHERE tenant = {tenant:String} AND version = {version:UInt32} AND action = 'fit'`;

export type ModelChanges = ReturnType<typeof createModelChanges>;

export const createModelChanges = (read: TenantRead) => ({
  listChanges: (tenant: string, before: number, atMost: number) =>
    read<StoredChange>(selectChanges, tenant, { before, atMost }),

  /** Ordered by the bytes of the ids; null: no fit published the version. */
  listSkills: async (tenant: string, version: number, after: string | null, atMost: number) => {
    const fits = await read(selectFit, tenant, { version });
    if (fits.length === 0) return null;
    return read<VersionSkill>(selectSkills, tenant, { version, after: after ?? '', atMost });
  },
});
