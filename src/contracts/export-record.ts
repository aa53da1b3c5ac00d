import type { AttemptRow } from './attempt-row.js';

export interface ExportRecord {
  readonly type: string;
  readonly [field: string]: unknown;
}

export const lineOf = (record: ExportRecord): string => `${JSON.stringify(renamed(record))}\n`;

function renamed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(renamed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [snakeCase(name), renamed(inner)]));
}

export const snakeCase = (name: string): string =>
  name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

export function attemptRecord(place: 'clickhouse' | 'outbox' | 'parked', row: AttemptRow): ExportRecord {
  const { occurredAt, receivedAt, ...answer } = row.event;
  const { isRapid: rapid, ...counted } = row.figures;
  const { parameters, version, source, norm, ...terms } = row.conditions;
  return {
    ...{ type: 'attempt', place, ...answer },
    occurredAt: new Date(occurredAt).toISOString(),
    receivedAt: new Date(receivedAt).toISOString(),
    ...{ ...counted, rapid, ...parameters, parametersVersion: version, parametersSource: source, ...terms },
    ...{ logTimeMean: norm.logMean, logTimeSd: norm.logSd, accuracyNorm: norm.accuracy },
  };
}
