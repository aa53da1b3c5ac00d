import { BridgeError } from './errors.js';

/** SQL that the HTTP bridge reads and writes. Of it, permissions use only `tokenize` and `isName` (analyst-access.ts). */

export function quoteLiteral(text: string): string {
  const escaped = text.replaceAll('\\', '\\\\').replaceAll("'", "\\'").replaceAll('\0', '\\0');
  return `'${escaped}'`;
}

export function formatSetting(name: string, value: string): string {
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name))
    throw new BridgeError(115, 'UNKNOWN_SETTING', `Unknown setting '${name.slice(0, 100)}'`);
  return `${name} = ${quoteLiteral(value)}`;
}

export function quoteName(name: string): string {
  return `\`${name.replaceAll('\\', '\\\\').replaceAll('`', '\\`')}\``;
}

/** As the engine prints it, without comments. */
export interface Token {
  readonly text: string;
  readonly kind: 'name' | 'quoted' | 'string' | 'sign';
  readonly end: number;
}

const tokenPattern =
  /'(?:[^'\\]|\\[\s\S]|'')*'|`(?:[^`\\]|\\[\s\S]|``)*`|"(?:[^"\\]|\\[\s\S]|"")*"|[A-Za-z_]\w*|\d[\w.]*|\S/g;

export const tokenize = (statement: string): Token[] => [...statement.matchAll(tokenPattern)].map(toToken);

function toToken({ 0: text, index }: RegExpExecArray): Token {
  const first = text.charAt(0);
  const end = index + text.length;
  if (first === "'") return { text, kind: 'string', end };
  if (first === '`' || first === '"') return { text: text.slice(1, -1), kind: 'quoted', end };
  return { text, kind: /[A-Za-z_]/.test(first) ? 'name' : 'sign', end };
}

export const isName = ({ kind }: Token): boolean => kind === 'name' || kind === 'quoted';

// A comment has one possible end: a lazy `[\s\S]*?` backtracks exponentially.
const comment = String.raw`--[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/`;
const leading = new RegExp(String.raw`^(?:\s|#[^\n]*\n|${comment})*([A-Za-z]+|\()`);

/** In capitals, or an opening bracket. */
export const findLeadingWord = (statement: string): string =>
  leading.exec(statement)?.[1]?.toUpperCase() ?? '';

const blank = String.raw`(?:\s|${comment})`;
const name = String.raw`(?:[A-Za-z_]\w*|\`[^\`\\]*\`|"[^"\\]*")`;
const columns = String.raw`\((?:[^()]|\([^()]*\))*\)`;
const value = String.raw`(?:'(?:[^'\\]|\\.|'')*'|[-+\w.]+)`;
const pair = `[A-Za-z_]\\w*\\s*=\\s*${value}`;
const headPattern = new RegExp(
  `^(?<into>${blank}*INSERT${blank}+INTO${blank}+(?:TABLE${blank}+)?${name}(?:\\.${name})?(?:${blank}*${columns})?)${blank}*` +
    `(?<format>(?:SETTINGS\\s+${pair}(?:\\s*,\\s*${pair})*\\s+)?FORMAT\\s+\\w+)[ \\t]*;?[ \\t]*(?:\\r?\\n|$)`,
  'i',
);

/**
 * Splits `INSERT INTO t (columns) SETTINGS … FORMAT name` before SETTINGS, for FROM INFILE. Null: another
 * statement.
 */
export function parseInsertHead(text: string): { into: string; format: string; rowsStart: number } | null {
  const match = headPattern.exec(text);
  const { into, format } = match?.groups ?? {};
  if (!match || into === undefined || format === undefined) return null;
  return { into, format, rowsStart: match[0].length };
}

const contentTypes: readonly (readonly [RegExp, string])[] = [
  [/^JSON(?!.*EachRow)/i, 'application/json; charset=UTF-8'],
  [/^(JSON.*EachRow|NDJSON|JSONLines)/i, 'application/x-ndjson; charset=UTF-8'],
  [/^(TabSeparated|TSV)/i, 'text/tab-separated-values; charset=UTF-8'],
  [/^CSV/i, 'text/csv; charset=UTF-8; header=absent'],
  [/^XML/i, 'application/xml; charset=UTF-8'],
  [/^(RowBinary|Native|Parquet|Arrow|ORC|Avro|MsgPack|Protobuf)/i, 'application/octet-stream'],
];

export const findContentType = (format: string): string =>
  contentTypes.find(([pattern]) => pattern.test(format))?.[1] ?? 'text/plain; charset=UTF-8';

/** Some may be in a string or a comment. */
const formatClause = new RegExp(String.raw`\bFORMAT(?:(?:\s|#[^\n]*\n|${comment})+[\`"]?|[\`"])(\w+)`, 'gi');

export const findFormats = (statement: string): string[] =>
  [...statement.matchAll(formatClause)].map((match) => match[1] ?? '');

/** Only for headers: the engine reads the FORMAT clause. */
export const findResultFormat = (statement: string, fallback: string): string =>
  findFormats(statement).at(-1) ?? fallback;
