import { StartError } from '../../lifecycle.js';
import { customFormat, detectFormat, type LogFormat, logFormats } from '../../services/answer-log/formats.js';
import { type ColumnMapping, findLookalikes, listKcModels } from '../../services/answer-log/map-columns.js';
import type { ReadOptions } from '../../services/answer-log/options.js';
import { type LogLayout, listType } from './engine-query.js';

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

/** @throws StartError for columns that are missing or unsuitable */
export function checkColumns(
  path: string,
  layout: LogLayout,
  format: LogFormat,
  mapping: ColumnMapping,
  options: ReadOptions,
): void {
  const problem =
    findMissingModel(layout, options) ??
    findMissingColumns(layout, format, mapping) ??
    findUnsuitableColumn(layout, mapping) ??
    findIdleOption(format, mapping, options);
  if (problem !== null) throw new StartError(`${path}: ${problem}`);
}

function findMissingModel({ header }: LogLayout, { kc }: ReadOptions): string | null {
  const models = listKcModels(header);
  if (kc === null || models.includes(kc)) return null;
  return `line 1 has no KC model ${JSON.stringify(kc)}. It has ${models.join(', ') || 'none'}`;
}

function findMissingColumns(
  { header }: LogLayout,
  { name, questions }: LogFormat,
  { positions, missing }: ColumnMapping,
): string | null {
  const requireOne = (...columns: readonly string[]): string[] =>
    columns.some((name) => name in positions || missing.some(({ column }) => column === name))
      ? []
      : columns.slice(0, 1);
  const lacking = [
    ...missing.map(({ column, text }) => `${text} (--columns ${column})`),
    ...requireOne('user_id'),
    ...requireOne('correct', 'choice', 'seen'),
    ...(questions === undefined ? requireOne('skill_id', 'skill_ids') : []),
  ];
  if (lacking.length === 0) return null;
  return `line 1 lacks the columns ${lacking.join(', ')} (format ${name}). Name them with --columns. The file has ${listColumns(header)}`;
}

function findUnsuitableColumn({ header, types }: LogLayout, { positions }: ColumnMapping): string | null {
  const { skill_ids: listed = [], ...others } = positions;
  const places = Object.values(others).flat();
  const isRepeated = (name: string): boolean => header.indexOf(name) !== header.lastIndexOf(name);
  const names = [...places, ...listed].map((place) => header[place] ?? '');
  const repeated = names.find((name) => isRepeated(name) && !name.startsWith('KC'));
  if (repeated !== undefined) return `line 1 has the column ${repeated} twice`;
  const list = places.find((place) => listType.test(types[place] ?? ''));
  if (list === undefined) return null;
  return `the column ${header[list]} has lists or structs, which only skill_ids can have (--columns skill_id=,skill_ids=NAME)`;
}

function findIdleOption({ name, filter }: LogFormat, { positions }: ColumnMapping, options: ReadOptions) {
  const applied = filter !== undefined && filter.column in positions ? filter.option : null;
  const flags = [
    ['firstAttemptsOnly', '--first-attempts-only'],
    ['originalsOnly', '--originals-only'],
  ] as const;
  const idle = flags.find(([option]) => options[option] && option !== applied)?.[1];
  return idle === undefined ? null : `${idle} does not apply to format ${name}, which has no column for it`;
}

/** Positions in the header. @throws StartError */
export function findSortPlaces(
  path: string,
  { header, kind }: LogLayout,
  { sortBy = [] }: LogFormat,
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
