import { BridgeError } from './errors.js';

/** Row formats that the embedded engine takes from memory (chdb's RawInsertFormat). */
const rowFormats: ReadonlyMap<string, string> = new Map(
  [
    'JSONEachRow',
    'JSONCompactEachRow',
    'CSV',
    'CSVWithNames',
    'TabSeparated',
    'TabSeparatedWithNames',
    'TSV',
    'TSVWithNames',
  ].map((name) => [name.toLowerCase(), name]),
);

/** The engine's spelling of an insert format; others are refused. */
export function insertFormat(name: string): string {
  const known = rowFormats.get(name.toLowerCase());
  if (known !== undefined) return known;
  const list = [...rowFormats.values()].join(', ');
  throw new BridgeError(
    48,
    'NOT_IMPLEMENTED',
    `The embedded server cannot read format ${name} from a request; it reads ${list}`,
  );
}

const contentTypes: readonly (readonly [RegExp, string])[] = [
  [/^JSON(?!.*EachRow)/i, 'application/json; charset=UTF-8'],
  [/^(JSON.*EachRow|NDJSON|JSONLines)/i, 'application/x-ndjson; charset=UTF-8'],
  [/^(TabSeparated|TSV)/i, 'text/tab-separated-values; charset=UTF-8'],
  [/^CSV/i, 'text/csv; charset=UTF-8; header=absent'],
  [/^XML/i, 'application/xml; charset=UTF-8'],
  [/^(RowBinary|Native|Parquet|Arrow|ORC|Avro|MsgPack|Protobuf)/i, 'application/octet-stream'],
];

/** Content-Type of an answer in this format. */
export function contentType(format: string): string {
  return contentTypes.find(([pattern]) => pattern.test(format))?.[1] ?? 'text/plain; charset=UTF-8';
}

/*
 * The engine formats each streamed block as an answer of its own (tried with chdb 3.4: JSON became several
 * documents, WithNames repeated its names): only rows without head and tail may be streamed.
 */
const streamable: ReadonlySet<string> = new Set([
  'csv',
  'jsoncompacteachrow',
  'jsoncompactstringseachrow',
  'jsoneachrow',
  'jsonlines',
  'jsonstringseachrow',
  'lineasstring',
  'ndjson',
  'rawblob',
  'rowbinary',
  'tabseparated',
  'tabseparatedraw',
  'tsv',
  'tsvraw',
]);

/** Every `FORMAT name` in a text; some may stand in a string or a comment. */
const formatClause = /\bFORMAT(?:(?:\s|--[^\n]*\n|#[^\n]*\n|\/\*(?:[^*]|\*(?!\/))*\*\/)+[`"]?|[`"])(\w+)/gi;

function namedFormats(statement: string): string[] {
  return [...statement.matchAll(formatClause)].map((match) => match[1] ?? '');
}

/** Whether an answer may be streamed for sure; false is always right, only slower. */
export function isStreamable(statement: string, fallback: string): boolean {
  return [fallback, ...namedFormats(statement)].every((name) => streamable.has(name.toLowerCase()));
}

/** The format an answer will have, for headers only: the engine itself obeys the FORMAT clause. */
export function answerFormat(statement: string, fallback: string): string {
  return namedFormats(statement).at(-1) ?? fallback;
}
