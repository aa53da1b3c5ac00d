import { isUtf8 } from 'node:buffer';
import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { CsvError, parse } from 'csv-parse/sync';
import { defaultSkillSetting, type SkillEntry, type SkillSetting } from '../../domain/catalogue/catalogue.js';
import { ApiError } from '../../errors.js';
import { StartError } from '../../lifecycle.js';
import type { Logger } from '../../logger.js';
import { parseSkillRow, type RawSkill, skillColumns } from '../../services/catalogue/skill-rows.js';
import { readCatalogue, type SkillWrite, writeSkills } from '../../store/catalogue/catalogue-store.js';
import { registerSkills } from '../../store/catalogue/registered-skills.js';
import type { RedisClient } from '../../store/redis/connection/client.js';

export type SkillsFile = ReadonlyMap<string, ReadonlyMap<string, Partial<SkillSetting>>>;

const maxShownProblems = 10;

/** JSON starts with a bracket or brace, CSV with a header. @throws StartError with the first problems */
export function readSkillsFile(path: string): SkillsFile {
  const bytes = readFileSync(path);
  const rejectFile: RejectFile = (problem, cause) => {
    throw new StartError(`SKILLS_FILE: ${path} ${problem}`, { cause });
  };
  if (!isUtf8(bytes)) return rejectFile('is not valid UTF-8');
  const text = bytes.toString('utf8').replace(/^\uFEFF/, '');
  if (text.trim() === '') return rejectFile('is empty');
  const rows = /^\s*[[{]/.test(text) ? parseJsonRows(text, rejectFile) : parseCsvRows(text, rejectFile);
  const tenants: SkillsByTenant = new Map();
  const problems = rows.flatMap(([place, raw]) =>
    addRow(tenants, raw).map((problem) => `SKILLS_FILE: ${path}, ${place}: ${problem}`),
  );
  if (problems.length === 0) return tenants;
  const more = problems.length - maxShownProblems;
  const shown = problems.slice(0, maxShownProblems);
  throw new StartError([...shown, ...(more > 0 ? [`and ${more} more`] : [])].join('\n'));
}

type RejectFile = (problem: string, cause?: unknown) => never;

/** Location, and the row or why it is unreadable. */
type SkillFileRow = readonly [place: string, raw: RawSkill | string];

function parseJsonRows(text: string, rejectFile: RejectFile): SkillFileRow[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return rejectFile(`is not valid JSON: ${error instanceof Error ? error.message : error}`, error);
  }
  const list = typeof value === 'object' && value !== null && 'skills' in value ? value.skills : value;
  if (!Array.isArray(list)) return rejectFile('is not a list of skills; allowed: [...] or {"skills": [...]}');
  return list.map((raw, i) => {
    const isObject = typeof raw === 'object' && raw !== null && !Array.isArray(raw);
    return [`skill ${i + 1}`, isObject ? raw : 'is not an object'];
  });
}

/** As in imports, quotes inside a field are plain characters. */
function parseCsvRows(text: string, rejectFile: RejectFile): SkillFileRow[] {
  const records: { readonly line: number; readonly record: readonly string[] }[] = [];
  try {
    parse(text, {
      ...{ relax_quotes: true, relax_column_count: true, skip_empty_lines: true },
      on_record: (record: string[], { lines }) => void records.push({ line: lines, record }),
    });
  } catch (error) {
    if (error instanceof CsvError) return rejectFile(`is not valid CSV: ${error.message}`, error);
    throw error;
  }
  const names = (records.shift()?.record ?? []).map((name) => name.trim());
  const knownColumns = skillColumns.filter((field) => names.includes(field));
  const duplicateColumn = knownColumns.find((name) => names.indexOf(name) !== names.lastIndexOf(name));
  if (duplicateColumn !== undefined) return rejectFile(`has the column ${duplicateColumn} twice`);
  if (!knownColumns.includes('skill_id'))
    return rejectFile('must have a header line with column names; missing: skill_id');
  return records.map(({ record, line }) => [
    `line ${line}`,
    record.length === names.length
      ? Object.fromEntries(knownColumns.map((field) => [field, record[names.indexOf(field)]]))
      : `has ${record.length} fields, but the header has ${names.length}`,
  ]);
}

type SkillsByTenant = Map<string, Map<string, Partial<SkillSetting>>>;

function addRow(tenants: SkillsByTenant, raw: RawSkill | string): readonly string[] {
  const row = typeof raw === 'string' ? [raw] : parseSkillRow(raw);
  if (!('skillId' in row)) return row;
  const { tenant, skillId, setting } = row;
  const skills = tenants.get(tenant) ?? new Map<string, Partial<SkillSetting>>();
  tenants.set(tenant, skills);
  if (skills.has(skillId))
    return [`skill_id ${JSON.stringify(skillId)} is not allowed (duplicate); allowed: each skill once`];
  skills.set(skillId, setting);
  return [];
}

/** Other writers may change the same skills. */
const maxTries = 5;

export async function loadSkillsFile(
  file: SkillsFile,
  redis: RedisClient,
  maxSkills: number,
  logger: Logger,
): Promise<void> {
  const counts = { tenants: file.size, skills: 0, changed: 0 };
  try {
    for (const [tenant, skills] of file) {
      counts.skills += skills.size;
      counts.changed += await loadTenantSkills(redis, tenant, skills, maxSkills);
    }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw new StartError(`SKILLS_FILE: cannot store the skills: ${error.message}`, { cause: error });
  }
  logger.info(counts, 'SKILLS_FILE loaded');
}

async function loadTenantSkills(
  redis: RedisClient,
  tenant: string,
  skills: ReadonlyMap<string, Partial<SkillSetting>>,
  maxSkills: number,
): Promise<number> {
  let changed = 0;
  for (let tries = 0; tries < maxTries; tries++) {
    const { entries } = (await readCatalogue(redis, tenant)).catalogue;
    const writes = [...skills].flatMap(([skillId, fileSetting]) =>
      buildWrites(skillId, fileSetting, entries.get(skillId)),
    );
    const results = await writeSkills(redis, tenant, writes, Date.now(), { knownSkills: maxSkills });
    const rejectedSkills = writes
      .filter((_, i) => results[i]?.status === 'full')
      .map(({ skillId }) => skillId);
    if (rejectedSkills.length > 0) throw skillLimitExceeded(tenant, rejectedSkills, maxSkills);
    changed += results.filter(({ status }) => status === 'written').length;
    if (results.some(({ status }) => status !== 'written')) continue;
    // Includes unchanged skills: a killed start may have stored skills without registering them.
    await registerSkills(redis, tenant, [...skills.keys()]);
    return changed;
  }
  throw new StartError('SKILLS_FILE: other clients keep changing the same skills. Restart the service.');
}

function skillLimitExceeded(
  tenant: string,
  rejectedSkills: readonly string[],
  maxSkills: number,
): StartError {
  const others = rejectedSkills.length === 1 ? '' : ` and ${rejectedSkills.length - 1} more`;
  return new StartError(
    `SKILLS_FILE: tenant ${tenant} would exceed the limit of skills with ${JSON.stringify(rejectedSkills[0])}${others}; allowed: ` +
      `${maxSkills.toLocaleString('en-US')} skills per tenant, with answers or settings. Remove skills from the file, delete ` +
      'unused skills, or raise MAX_SKILLS_PER_TENANT.',
  );
}

function buildWrites(skillId: string, fileSetting: Partial<SkillSetting>, entry?: SkillEntry): SkillWrite[] {
  const setting: SkillSetting = { ...(entry ?? defaultSkillSetting), ...fileSetting };
  if (entry !== undefined && isDeepStrictEqual(entry, setting)) return [];
  return [{ skillId, setting, ifRevision: [`${entry?.revision ?? 0}`] }];
}
