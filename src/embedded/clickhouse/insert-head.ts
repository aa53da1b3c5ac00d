/** An `INSERT INTO t (columns) SETTINGS … FORMAT name` and where its rows begin. */
export interface InsertHead {
  readonly table: string;
  readonly columns: readonly string[] | null;
  /** `name = literal` pairs as written. */
  readonly settings: readonly string[];
  readonly format: string;
  /** Offset of the first row in the text, in characters. */
  readonly rowsAt: number;
}

// Each comment can end in one place only: a lazy `[\s\S]*?` backtracks exponentially over many of them.
const blank = String.raw`(?:\s|--[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/)`;
const name = String.raw`(?:[A-Za-z_]\w*|\`[A-Za-z_]\w*\`|"[A-Za-z_]\w*")`;
const value = String.raw`(?:'(?:[^'\\]|\\.|'')*'|[-+\w.]+)`;
const pair = `[A-Za-z_]\\w*\\s*=\\s*${value}`;
const headPattern = new RegExp(
  `^${blank}*INSERT${blank}+INTO${blank}+(?:TABLE${blank}+)?` +
    `(?<table>${name}(?:\\.${name})?)${blank}*` +
    `(?:\\((?<columns>${blank}*${name}(?:${blank}*,${blank}*${name})*)${blank}*\\)${blank}*)?` +
    `(?:SETTINGS\\s+(?<settings>${pair}(?:\\s*,\\s*${pair})*)\\s+)?` +
    `FORMAT\\s+(?<format>\\w+)[ \\t]*;?[ \\t]*(?:\\r?\\n|$)`,
  'i',
);

/** Names come in quotes or bare; the engine's insert call takes them bare. */
function bare(quoted: string): string {
  return quoted.replaceAll(/[`"]/g, '');
}

function columnNames(list: string): string[] {
  const withoutComments = list.replaceAll(/--[^\n]*\n|\/\*(?:[^*]|\*(?!\/))*\*\//g, ' ');
  return withoutComments.split(',').map((column) => bare(column.trim()));
}

/**
 * Reads the head of an insert whose rows follow as bytes. null: not such a statement (INSERT … SELECT,
 * VALUES, or names this pattern leaves to the engine), to be run as ordinary text.
 */
export function parseInsertHead(text: string): InsertHead | null {
  const match = headPattern.exec(text);
  const groups = match?.groups;
  if (!match || !groups) return null;
  return {
    table: bare(groups.table ?? ''),
    columns: groups.columns === undefined ? null : columnNames(groups.columns),
    settings: groups.settings?.match(new RegExp(pair, 'g')) ?? [],
    format: groups.format ?? '',
    rowsAt: match[0].length,
  };
}
