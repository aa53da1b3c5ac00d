import { StartError } from '../../lifecycle.js';
import { customFormat, detectFormat, type LogFormat, logFormats } from '../../services/answer-log/formats.js';
import { type ColumnMapping, findLookalikes, listKcModels } from '../../services/answer-log/map-columns.js';
import type { ReadOptions } from '../../services/answer-log/options.js';
import type { LogLayout } from './engine-query.js';

const formatNames = logFormats.map(({ name }) => name).join(', ');

/** @throws StartError for an unknown header */
export function chooseFormat(
  path: string,
  header: readonly string[],
  { format, columns }: ReadOptions,
): LogFormat {
  if (format !== null) return logFormats.find(({ name }) => name === format) ?? customFormat;
  const found = detectFormat(header);
  if (found !== null) return found;
  if (Object.keys(columns).length > 0) return customFormat;
  const example = findLookalikes(header, ['user_id', 'skill_id', 'correct'])
    .map(({ column, similar }) => `${column}=${similar === undefined ? 'NAME' : JSON.stringify(similar)}`)
    .join();
  throw new StartError(
    `${path}: line 1 matches no known format. It has the columns ${listColumns(header)}.\nName the columns, for example --columns ${example}, or pass --format with one of ${formatNames}`,
  );
}

const maxListedColumns = 30;

/** As JSON, if they could change the terminal. */
const listColumns = (header: readonly string[]): string =>
  header
    .slice(0, maxListedColumns)
    .map((name) => (/\p{Cc}/u.test(name) ? JSON.stringify(name) : name))
    .join(', ');

/** @throws StartError */
export function requireColumns(
  path: string,
  header: readonly string[],
  format: LogFormat,
  { positions, missing }: ColumnMapping,
  options: ReadOptions,
): void {
  const has = (...columns: readonly string[]): boolean => columns.some((column) => column in positions);
  const lacking = [
    ...missing,
    ...(has('user_id') ? [] : ['user_id']),
    ...(has('correct', 'choice', 'seen') ? [] : ['correct']),
    ...(has('skill_id', 'skill_ids') || format.questions !== undefined ? [] : ['skill_id']),
  ];
  const models = listKcModels(header);
  if (options.kc !== null && !models.includes(options.kc))
    throw new StartError(
      `${path} has no KC model ${JSON.stringify(options.kc)}. It has ${models.join(', ') || 'none'}`,
    );
  if (lacking.length > 0)
    throw new StartError(
      `${path}: line 1 lacks the columns ${lacking.join(', ')} (format ${format.name}). Name them with --columns. The file has ${listColumns(header)}`,
    );
  const used = new Set(Object.values(positions).flat());
  const repeated = header.find(
    (name, i) => used.has(i) && header.indexOf(name) !== header.lastIndexOf(name) && !name.startsWith('KC'),
  );
  if (repeated !== undefined) throw new StartError(`${path}: line 1 has the column ${repeated} twice`);
  for (const [flag, option] of Object.entries(filterFlags)) {
    const filter = format.filters?.find((one) => one.option === option);
    if (options[option] && (filter === undefined || !has(filter.column)))
      throw new StartError(
        `${path}: ${flag} does not apply to format ${format.name}, which has no column for it`,
      );
  }
}

const filterFlags = {
  '--first-attempts-only': 'firstAttemptsOnly',
  '--originals-only': 'originalsOnly',
} as const;

/** Positions in the header. @throws StartError */
export function findSortPlaces(
  path: string,
  header: readonly string[],
  { sortBy = [] }: LogFormat,
  { kind }: LogLayout,
  options: ReadOptions,
): number[] {
  const names = options.sortBy === null ? sortBy.filter((name) => header.includes(name)) : [options.sortBy];
  const unknown = names.find((name) => !header.includes(name));
  if (unknown !== undefined)
    throw new StartError(`${path} has no column ${JSON.stringify(unknown)} for --sort-by`);
  if (kind !== 'ndjson') return names.map((name) => header.indexOf(name));
  if (options.sortBy !== null) throw new StartError(`${path}: --sort-by needs CSV or Parquet`);
  return [];
}
