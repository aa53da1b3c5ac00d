/** The versions of a tenant's model as they came into force, read back for callers who wait. */
import { modelVersions, skillParameters } from '../schema/tables.js';
import type { TenantRead } from './tenant-read.js';

/** A change with what the fit of its version said; null where nothing was fitted, or the report was gone. */
export interface StoredChange {
  readonly change: number;
  readonly version: number;
  readonly basedOn: number;
  readonly action: 'fit' | 'rollback';
  /** Unix milliseconds. */
  readonly publishedAt: number;
  /** Whether it is the last one. */
  readonly isLast: boolean;
  readonly skills: number | null;
  readonly skillsPublished: number | null;
  readonly answers: number | null;
  readonly learners: number | null;
  /** Of the served probability on held-out answers: with what was in force, and with what was fitted. */
  readonly oldLogLoss: number | null;
  readonly newLogLoss: number | null;
  /** Why the served probability, and the forecast of shares, stayed as they were; empty where they did not. */
  readonly servedReason: string;
  readonly accuracyReason: string;
}

/** A skill of a version. */
export interface StoredSkill {
  readonly skillId: string;
  readonly published: boolean;
  readonly parametersVersion: number;
  readonly pInit: number;
  readonly pLearn: number;
  readonly pGuess: number;
  readonly pSlip: number;
  readonly answers: number;
  readonly learners: number;
  readonly oldLogLoss: number | null;
  readonly newLogLoss: number | null;
  /** Why what was fitted was held back; empty where it was not, or where the fit had no answer on the skill. */
  readonly reason: string;
}

const skillsOf = (fields: string): string => `JSONExtract(report, 'skills', 'Array(Tuple(${fields}))')`;

/** Reports are long: only what is told of them is sent. */
const selectChanges = `
SELECT
  change, version, based_on AS basedOn, action, toFloat64(toUnixTimestamp64Milli(published_at)) AS publishedAt,
  toBool(change = (SELECT max(change) FROM ${modelVersions.name} WHERE tenant = {tenant:String})) AS isLast,
  if(report = '', NULL, toUInt32(JSONLength(report, 'skills'))) AS skills,
  if(report = '', NULL, toUInt32(arrayCount(s -> s.published, ${skillsOf('published Bool')}))) AS skillsPublished,
  JSONExtract(report, 'answers', 'Nullable(UInt32)') AS answers,
  JSONExtract(report, 'learners', 'Nullable(UInt32)') AS learners,
  JSONExtract(report, 'served', 'oldLogLoss', 'Nullable(Float64)') AS oldLogLoss,
  JSONExtract(report, 'served', 'newLogLoss', 'Nullable(Float64)') AS newLogLoss,
  JSONExtractString(report, 'served', 'reason') AS servedReason,
  JSONExtractString(report, 'accuracy', 'reason') AS accuracyReason
FROM ${modelVersions.name}
WHERE tenant = {tenant:String} AND change < {before:UInt32}
ORDER BY change DESC LIMIT {atMost:UInt32}`;

const selectSkills = `
SELECT
  p.skill_id AS skillId, toBool(p.published) AS published, p.parameters_version AS parametersVersion,
  p.p_init AS pInit, p.p_learn AS pLearn, p.p_guess AS pGuess, p.p_slip AS pSlip, p.answers AS answers,
  p.learners AS learners, p.old_log_loss AS oldLogLoss, p.new_log_loss AS newLogLoss, r.reason AS reason
FROM ${skillParameters.name} AS p
LEFT JOIN (
  SELECT s.skillId AS skill_id, s.reason AS reason FROM ${modelVersions.name}
  ARRAY JOIN ${skillsOf('skillId String, reason String')} AS s
  WHERE tenant = {tenant:String} AND version = {version:UInt32} AND action = 'fit'
) AS r ON r.skill_id = p.skill_id
WHERE p.tenant = {tenant:String} AND p.version = {version:UInt32} AND p.skill_id > {after:String}
ORDER BY skillId LIMIT {atMost:UInt32}`;

const selectFit = `SELECT change FROM ${modelVersions.name}
WHERE tenant = {tenant:String} AND version = {version:UInt32} AND action = 'fit'`;

export type ModelChanges = ReturnType<typeof createModelChanges>;

/** Its functions throw as the read does. */
export const createModelChanges = (read: TenantRead) => ({
  /** Those before a change, newest first. */
  changes: (tenant: string, before: number, atMost: number) =>
    read<StoredChange>(selectChanges, tenant, { before, atMost }),

  /** By the bytes of their ids, from the one behind `after` on; null where no fit published the version. */
  skills: async (tenant: string, version: number, after: string | null, atMost: number) => {
    const fits = await read(selectFit, tenant, { version });
    if (fits.length === 0) return null;
    return read<StoredSkill>(selectSkills, tenant, { version, after: after ?? '', atMost });
  },
});
