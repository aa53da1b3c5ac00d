/** The catalogue that a start brings with it. */
import { isUtf8 } from 'node:buffer';
import { readFileSync } from 'node:fs';
import { CsvError, parse } from 'csv-parse/sync';
import type { SkillEntry } from '../domain/catalogue/catalogue.js';
import { type SkillSetting, sameSetting, unsetSkill } from '../domain/catalogue/skill-setting.js';
import { ApiError } from '../errors.js';
import { StartError } from '../lifecycle.js';
import {
  checkSkillRow,
  type RawSkill,
  type SkillRow,
  skillColumns,
} from '../services/catalogue/skill-rows.js';
import { putSkills, readCatalogue, type SkillWrite } from '../store/catalogue/catalogue-store.js';
import { addKnownSkills } from '../store/catalogue/known-skills.js';
import type { RedisClient } from '../store/redis/client.js';
import type { Logger } from '../telemetry.js';

/** What the file tells of each skill, by tenant and skill. */
export type SkillsFile = ReadonlyMap<string, ReadonlyMap<string, Partial<SkillSetting>>>;

interface PlacedRow {
  /** Where it stands, for people. */
  readonly place: string;
  /** Or why it cannot be read. */
  readonly raw: RawSkill | string;
}

const shownProblems = 10;

/**
 * Reads and checks the whole file: JSON if it begins with a bracket or a brace, CSV with a header otherwise.
 *
 * @throws StartError with a line for each of the first problems
 */
export function readSkillsFile(path: string): SkillsFile {
  const bytes = readFileSync(path);
  if (!isUtf8(bytes)) throw refused(path, 'is not valid UTF-8');
  const text = bytes.toString('utf8').replace(/^\uFEFF/, '');
  if (text.trim() === '') throw refused(path, 'is empty');
  const rows = /^\s*[[{]/.test(text) ? jsonRows(path, text) : csvRows(path, text);
  const problems: string[] = [];
  const file = collect(rows, (place, problem) => problems.push(`SKILLS_FILE: ${path}, ${place}: ${problem}`));
  if (problems.length === 0) return file;
  const more = problems.length - shownProblems;
  throw new StartError(
    [...problems.slice(0, shownProblems), ...(more > 0 ? [`and ${more} more`] : [])].join('\n'),
  );
}

const refused = (path: string, problem: string, cause?: unknown): StartError =>
  new StartError(`SKILLS_FILE: ${path} ${problem}`, { cause });

function jsonRows(path: string, text: string): PlacedRow[] {
  const list = listOf(parseJson(path, text));
  if (list === null) throw refused(path, 'is no list of skills; allowed: [...] or {"skills": [...]}');
  return list.map((raw, i) => ({
    place: `skill ${i + 1}`,
    raw: typeof raw === 'object' && raw !== null && !Array.isArray(raw) ? raw : 'is not an object',
  }));
}

function parseJson(path: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw refused(path, `is not valid JSON: ${error instanceof Error ? error.message : error}`, error);
  }
}

function listOf(value: unknown): readonly unknown[] | null {
  const list = typeof value === 'object' && value !== null && 'skills' in value ? value.skills : value;
  return Array.isArray(list) ? list : null;
}

interface CsvRecord {
  readonly line: number;
  readonly record: readonly string[];
}

/** Read as the import reads its files: quotes in the middle of a field stand for themselves. */
function csvRows(path: string, text: string): PlacedRow[] {
  const [header, ...records] = parseCsv(path, text);
  const names = (header?.record ?? []).map((name) => name.trim());
  const known = skillColumns.filter((field) => names.includes(field));
  const twice = known.find((name) => names.indexOf(name) !== names.lastIndexOf(name));
  if (twice !== undefined) throw refused(path, `names the column ${twice} twice`);
  if (!known.includes('skill_id'))
    throw refused(path, 'must name the columns in its first line; missing: skill_id');
  return records.map(({ record, line }) => ({
    place: `line ${line}`,
    raw:
      record.length === names.length
        ? Object.fromEntries(known.map((field) => [field, record[names.indexOf(field)]]))
        : `has ${record.length} fields, the header has ${names.length}`,
  }));
}

function parseCsv(path: string, text: string): CsvRecord[] {
  const records: CsvRecord[] = [];
  try {
    parse(text, {
      relax_quotes: true,
      relax_column_count: true,
      skip_empty_lines: true,
      on_record: (record: string[], { lines }) => {
        records.push({ line: lines, record });
        return null;
      },
    });
    return records;
  } catch (error) {
    if (error instanceof CsvError) throw refused(path, `is no valid CSV: ${error.message}`, error);
    throw error;
  }
}

function collect(rows: readonly PlacedRow[], complain: (place: string, problem: string) => void): SkillsFile {
  const tenants = new Map<string, Map<string, Partial<SkillSetting>>>();
  for (const { place, raw } of rows) {
    const row = typeof raw === 'string' ? [raw] : checkSkillRow(raw);
    const problems = isRow(row) ? addRow(tenants, row) : row;
    for (const problem of problems) complain(place, problem);
  }
  return tenants;
}

const isRow = (row: SkillRow | readonly string[]): row is SkillRow => !Array.isArray(row);

function addRow(
  tenants: Map<string, Map<string, Partial<SkillSetting>>>,
  { tenant, skillId, setting }: SkillRow,
): string[] {
  const skills = tenants.get(tenant) ?? new Map<string, Partial<SkillSetting>>();
  tenants.set(tenant, skills);
  if (skills.has(skillId)) {
    return [
      `skill_id ${JSON.stringify(skillId)} is not allowed (it stands before); allowed: each skill once`,
    ];
  }
  skills.set(skillId, setting);
  return [];
}

/** How often skills are looked at again that somebody else set meanwhile. */
const maxTries = 5;

/**
 * Sets the skills of the file as it tells; those that are so already stay untouched.
 *
 * @param knownSkills most skills that a tenant may know
 * @throws StartError where they cannot be set
 */
export async function loadSkillsFile(
  file: SkillsFile,
  redis: RedisClient,
  knownSkills: number,
  logger: Logger,
): Promise<void> {
  const counts = { tenants: file.size, skills: 0, changed: 0 };
  try {
    for (const [tenant, skills] of file) {
      counts.skills += skills.size;
      counts.changed += await loadTenant(redis, tenant, skills, knownSkills);
    }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw new StartError(`SKILLS_FILE: the skills cannot be stored: ${error.message}`, { cause: error });
  }
  logger.info(counts, 'the skills of SKILLS_FILE are set');
}

async function loadTenant(
  redis: RedisClient,
  tenant: string,
  skills: ReadonlyMap<string, Partial<SkillSetting>>,
  knownSkills: number,
): Promise<number> {
  let changed = 0;
  for (let tries = 0; tries < maxTries; tries++) {
    const { entries } = (await readCatalogue(redis, tenant)).catalogue;
    const writes = [...skills].flatMap(([skillId, told]) => writeOf(skillId, told, entries.get(skillId)));
    const results = await putSkills(redis, tenant, writes, Date.now(), { knownSkills });
    const left = writes.filter((_, i) => results[i]?.status === 'full').map(({ skillId }) => skillId);
    if (left.length > 0) throw noRoom(tenant, left, knownSkills);
    changed += results.filter(({ status }) => status === 'written').length;
    if (results.some(({ status }) => status !== 'written')) continue;
    // Also those that stay untouched: a start that was killed may have set them and not made them known.
    await addKnownSkills(redis, tenant, [...skills.keys()]);
    return changed;
  }
  throw new StartError(
    'SKILLS_FILE: the skills are being changed by somebody else all the time; start again',
  );
}

/** @param left the new skills that have no room; others of the file may be set */
function noRoom(tenant: string, left: readonly string[], knownSkills: number): StartError {
  const others = left.length === 1 ? '' : ` and ${left.length - 1} more`;
  return new StartError(
    `SKILLS_FILE: tenant ${tenant} has no room for the new skill_id ${JSON.stringify(left[0])}${others}; allowed: ` +
      `${knownSkills.toLocaleString('en-US')} skills of a tenant, answered or set: take skills out of the file, delete ` +
      'skills that nobody needs, or raise MAX_SKILLS_PER_TENANT',
  );
}

/** Nothing where the skill is as the file tells. */
function writeOf(skillId: string, told: Partial<SkillSetting>, entry: SkillEntry | undefined): SkillWrite[] {
  const setting: SkillSetting = { ...(entry ?? unsetSkill), ...told };
  if (entry !== undefined && sameSetting(entry, setting)) return [];
  return [{ skillId, setting, ifRevision: [`${entry?.revision ?? 0}`] }];
}
