import { distinct, indices } from '../../lists.js';
import type { LogFormat, MappedColumn } from './formats.js';
import type { AnswerColumn, ReadOptions } from './options.js';

const kcColumn = /^KC ?\((.+)\)$/;

export const listKcModels = (header: readonly string[]): string[] =>
  distinct(header.flatMap((name) => kcColumn.exec(name)?.[1] ?? []));

export type ColumnMapping = ReturnType<typeof mapColumns>;
type Positions = Readonly<Partial<Record<MappedColumn, readonly number[]>>>;

/** The options take precedence over the format. */
export function mapColumns(
  header: readonly string[],
  { columns }: LogFormat,
  options: Pick<ReadOptions, 'columns' | 'kc'>,
) {
  const kc = options.kc ?? listKcModels(header)[0] ?? null;
  const wanted = Object.entries({ ...columns, ...options.columns });
  const found = wanted.map(([column, text]) => [column, findColumns(header, text, kc)] as const);
  const mapped = found.filter(([, places]) => places.length > 0);
  const nameColumns = (places: readonly number[]) => distinct(places.map((place) => header[place]));
  const positions: Positions = Object.fromEntries(mapped);
  const used = nameColumns(mapped.flatMap(([, places]) => places));
  const unused = header.filter((name) => !used.includes(name));
  return {
    /** Positions in the header; several columns are joined. */
    positions,
    /** The same with the names. */
    names: Object.fromEntries(mapped.map(([column, places]) => [column, nameColumns(places).join(' + ')])),
    /** Columns that the options name, but the header lacks. */
    missing: Object.entries(options.columns).flatMap(([column, text]) =>
      text === '' || column in positions ? [] : [{ column, text }],
    ),
    warnings: [...warnOfModels(header, kc, options.kc), ...warnOfUnused(unused, positions)],
  };
}

/** Empty if a column is missing. */
function findColumns(header: readonly string[], text: string, kc: string | null): number[] {
  if (text === 'KC')
    return indices(header.length).filter((i) => kc !== null && kcColumn.exec(header[i] ?? '')?.[1] === kc);
  if (header.includes(text)) return [header.indexOf(text)];
  for (const alternative of text.split('|')) {
    const places = alternative.split('+').map((name) => header.indexOf(name));
    if (!places.includes(-1)) return places;
  }
  return [];
}

function warnOfModels(header: readonly string[], kc: string | null, given: string | null): string[] {
  const others = listKcModels(header).filter((name) => name !== kc);
  if (kc === null || given !== null || others.length === 0) return [];
  return [`The skills come from KC model "${kc}". Pass --kc NAME for another one: ${others.join(', ')}`];
}

/** Names that suggest a column of the answers. */
const lookalikes: readonly (readonly [column: AnswerColumn, pattern: RegExp, what: string])[] = [
  ['user_id', /user|student|learner|pupil/i, 'identifies learners'],
  ['skill_id', /skill|\bkc\b|topic|concept|tags?$|lexeme/i, 'identifies skills'],
  ['correct', /correct|outcome|score|grade|result/i, 'contains the result'],
  ['item_id', /item|problem|question|exercise/i, 'identifies items'],
  ['ts', /^(?!.*(overlap|elapsed|duration|response|taken|spent)).*(time|date|stamp)/i, 'contains times'],
  ['order', /order|^row|^seq|log_?id/i, 'numbers the answers'],
];

/** The first similar name for each of the columns. */
export const findLookalikes = (names: readonly string[], columns: readonly AnswerColumn[]) =>
  lookalikes
    .filter(([column]) => columns.includes(column))
    .map(([column, pattern, what]) => ({ column, what, similar: names.find((name) => pattern.test(name)) }));

/** A time or an order suffices to sort. */
function warnOfUnused(unused: readonly string[], mapped: Positions): string[] {
  const wanted = (['item_id', 'ts', 'order'] as const).filter(
    (column) => !(column in mapped || (column === 'order' && 'ts' in mapped)),
  );
  const advise = (column: string, what: string, name: string): string =>
    `Column "${name}" is not used. If it ${what}, pass --columns ${column}=${JSON.stringify(name)}`;
  return findLookalikes(unused, wanted).flatMap(({ column, similar, what }) =>
    similar === undefined ? [] : advise(column, what, similar),
  );
}
