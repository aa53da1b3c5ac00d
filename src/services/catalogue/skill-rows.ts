import { parseSkillBody, weightBounds } from '../../contracts/catalogue/skills.js';
import { findIdProblem, plainName } from '../../contracts/schema/ids.js';
import { manualBounds, manualForgetBounds } from '../../domain/base/bkt-parameters.js';
import type { SkillSetting } from '../../domain/catalogue/catalogue.js';
import { ApiError } from '../../errors.js';
import { formatValue, isAbsent, parseNumber } from '../answer-log/values.js';

const parameterFields = ['p_init', 'p_learn', 'p_guess', 'p_slip', 'p_forget'] as const;

export const skillColumns = ['tenant', 'skill_id', 'name', 'section', 'weight', ...parameterFields] as const;

/** JSON may have a `parameters` object, as in the API. */
const skillFields = [...skillColumns, 'parameters'] as const;
type SkillField = (typeof skillFields)[number];

/** Strings from CSV, values from JSON. A missing field is undefined. */
export type RawSkill = Readonly<Partial<Record<SkillField, unknown>>>;

const allowedProbability = `a number from ${manualBounds.low} to ${manualBounds.high}, either for the first four or for none of them`;

const allowedValues: Readonly<Record<SkillField | 'source', string>> = {
  tenant: '1 to 128 characters of A-Za-z0-9._~-',
  skill_id: '1 to 128 characters without control characters, except . and ..',
  name: 'empty, or 1 to 200 characters without control characters',
  section: 'math, rw or empty',
  weight: `empty, or a number from ${weightBounds.low} to ${weightBounds.high}`,
  p_init: allowedProbability,
  p_learn: allowedProbability,
  p_guess: allowedProbability,
  p_slip: allowedProbability,
  p_forget: `empty, or a number from ${manualForgetBounds.low} to ${manualForgetBounds.high}`,
  parameters: `empty, or an object with ${parameterFields.join(', ')} and optionally source`,
  source: 'default or fitted (no manual parameters), manual, or empty',
};

export function parseSkillRow(row: RawSkill) {
  const raw = trimFields(row);
  const { skill_id: skillId } = raw;
  const tenant = isAbsent(raw.tenant) ? 'default' : raw.tenant;
  if (typeof tenant !== 'string' || !plainName.test(tenant)) return [formatProblem(raw, 'tenant')];
  if (typeof skillId !== 'string' || findIdProblem(skillId) !== null) return [formatProblem(raw, 'skill_id')];
  const columns = parameterFields.filter((field) => raw[field] !== undefined);
  if (raw.parameters !== undefined && columns.length > 0) {
    const either = `either parameters or ${parameterFields.join(', ')}`;
    return [`${columns[0]} is not allowed together with parameters; allowed: ${either}`];
  }
  try {
    const { name, section, weight, parameters } = parseSkillBody(toSkillBody(raw));
    const setting: Partial<SkillSetting> = {
      ...(raw.name !== undefined && { name }),
      ...(raw.section !== undefined && { section }),
      ...(raw.weight !== undefined && { weight }),
      ...((raw.parameters !== undefined || columns.length > 0) && { parameters }),
    };
    return { tenant, skillId, setting };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return (error.details ?? []).map(({ path, message }) => formatProblem(raw, path, message));
  }
}

/** Does not trim names and ids, which are compared byte for byte. */
const trimFields = (row: RawSkill): RawSkill =>
  Object.fromEntries(
    skillFields.map((field) => {
      const value = row[field];
      const isExact = typeof value !== 'string' || field === 'skill_id' || field === 'name';
      return [field, isExact ? value : value.trim()];
    }),
  );

function formatProblem(raw: RawSkill, path: string, reason?: string): string {
  const field = path.split('/').at(-1) as keyof typeof allowedValues;
  const { parameters } = raw;
  const isInside = path !== field && typeof parameters === 'object' && parameters !== null;
  const [place, holder] = isInside ? [path, parameters] : [field, raw];
  const value = (holder as Readonly<Record<string, unknown>>)[field] ?? null;
  const because = reason === undefined ? '' : ` (${reason})`;
  return `${place} ${formatValue(value)} is not allowed${because}; allowed: ${allowedValues[field]}`;
}

const toSkillBody = (raw: RawSkill): object => ({
  name: absentToNull(raw.name),
  section: absentToNull(raw.section),
  weight: toNumber(raw.weight),
  parameters: raw.parameters === undefined ? collectParameters(raw) : absentToNull(raw.parameters),
});

function collectParameters(raw: RawSkill): object | null {
  const set = parameterFields.filter((field) => !isAbsent(raw[field]));
  return set.length === 0 ? null : Object.fromEntries(set.map((field) => [field, toNumber(raw[field])]));
}

const absentToNull = (value: unknown): unknown => (isAbsent(value) ? null : value);

const toNumber = (value: unknown): unknown => parseNumber(value) ?? absentToNull(value);
