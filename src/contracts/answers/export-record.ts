import type { SkillConditions } from '../../domain/answer/answer-conditions.js';
import { formatDay } from '../../domain/base/calendar.js';
import type { AttemptRow } from './attempt-row.js';

export interface ExportRecord {
  readonly type: string;
  readonly [field: string]: unknown;
}

export const formatExportLine = (record: ExportRecord): string => `${JSON.stringify(renameFields(record))}\n`;

/** Names of fields in format 1 of an export, where the code has other names. */
const formatNames: ReadonlyMap<string, string> = new Map([
  ['itemBeforeRun', 'itemBefore'],
  ['lastAnswerNumber', 'lastPlace'],
  ['lastRightNumber', 'lastRightPlace'],
  ['wrongBits', 'lastWrong'],
  ['otherSkillAnswers', 'elsewhere'],
]);

function renameFields(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(renameFields);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      toSnakeCase(formatNames.get(name) ?? name),
      renameFields(inner),
    ]),
  );
}

export const toSnakeCase = (name: string): string =>
  name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

export function toAttemptRecord(place: 'clickhouse' | 'outbox' | 'parked', row: AttemptRow): ExportRecord {
  const { occurredAt, receivedAt, ...event } = row.event;
  const { skillIds, ...answer } = event;
  const [skillId, ...furtherIds] = skillIds;
  const { isRapid: rapid, skills, ...counted } = row.figures;
  const { skills: skillConditions, norm, localDay, ...terms } = row.conditions;
  const describeSkill = (i: number) => {
    const { parameters, version, source } = skillConditions[i] as SkillConditions;
    return { ...skills[i], ...parameters, parametersVersion: version, parametersSource: source };
  };
  return {
    ...{ type: 'attempt', place, ...answer, skillId },
    occurredAt: new Date(occurredAt).toISOString(),
    receivedAt: new Date(receivedAt).toISOString(),
    localDate: formatDay(localDay),
    ...{ ...counted, rapid, ...describeSkill(0), ...terms },
    furtherSkills: furtherIds.map((id, i) => ({ skillId: id, ...describeSkill(i + 1) })),
    ...{ logTimeMean: norm.logMean, logTimeSd: norm.logSd, accuracyNorm: norm.accuracy },
  };
}
