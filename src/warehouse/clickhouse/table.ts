/** How the schema declares tables and views: columns with their meaning, which ClickHouse keeps as comments. */

export interface Column {
  name: string;
  type: string;
  /** Without one the server's default (LZ4) holds. */
  codec?: string;
  comment: string;
}

export interface Table {
  name: string;
  comment: string;
  engine: string;
  columns: readonly Column[];
  /** Skip indexes, as ClickHouse writes them. */
  indexes?: readonly string[];
  partitionBy?: string;
  orderBy: string;
  /** Expression that says on which shard of a cluster a row belongs. */
  shardBy: string;
  settings: Readonly<Record<string, number>>;
}

export interface View {
  name: string;
  comment: string;
  /** In the order of the query's; without them the columns have no comments. */
  columns?: readonly Omit<Column, 'codec'>[];
  query: string;
}

/**
 * Columns as text, one a line: `name Type [CODEC(…)] -- meaning`. Lines that begin with `--` continue the line before.
 * @throws Error for a line of another form
 */
export const columnsOf = (text: string): Column[] =>
  text
    .trim()
    .replaceAll(/\n\s+-- /g, '\n-- ')
    .split(/\n(?!-- )/)
    .filter((line) => line.trim() !== '')
    .map(columnOf);

function columnOf(text: string): Column {
  const [declaration = '', ...meaning] = text.split(/\s+-- /);
  const [, name, type, codec] = /^\s*(\w+) (.+?)(?: CODEC\((.+)\))?$/.exec(declaration) ?? [];
  if (name === undefined || type === undefined || meaning.length === 0)
    throw new Error(`not a column: ${text}`);
  return { name, type, ...(codec && { codec }), comment: meaning.join(' ') };
}

/** The outbox and the journal forget a row as soon as it is here, so it has to be on the disk then. */
const writtenThrough = { fsync_after_insert: 1, fsync_part_directory: 1 };

/**
 * Also remembers the tokens of blocks (ADR 3). A view's target needs it as well: a repeated block would double the
 * rollup while the raw table stays right.
 */
export const rememberingTokens = { non_replicated_deduplication_window: 10_000, ...writtenThrough };

type Layout = Omit<Table, 'name' | 'comment' | 'columns' | 'shardBy' | 'settings'> &
  Partial<Pick<Table, 'shardBy' | 'settings'>>;

/** A table that is sharded by learner and written through, unless its layout says otherwise. */
export const defineTable = (
  name: string,
  comment: string,
  columns: string | readonly Column[],
  layout: Layout,
): Table => ({
  name,
  comment,
  columns: typeof columns === 'string' ? columnsOf(columns) : columns,
  shardBy: 'cityHash64(tenant, user_id)',
  settings: writtenThrough,
  ...layout,
});

export function createTable(table: Table): string {
  const parts = [
    ...table.columns.map(declareColumn),
    ...(table.indexes ?? []).map((index) => `INDEX ${index}`),
  ];
  const settings = Object.entries(table.settings).map(([name, value]) => `${name} = ${value}`);
  return [
    `CREATE TABLE IF NOT EXISTS ${table.name} (\n  ${parts.join(',\n  ')}\n)`,
    `ENGINE = ${table.engine}`,
    ...(table.partitionBy ? [`PARTITION BY ${table.partitionBy}`] : []),
    `ORDER BY ${table.orderBy}`,
    ...(settings.length > 0 ? [`SETTINGS ${settings.join(', ')}`] : []),
    `COMMENT ${quote(table.comment)}`,
  ].join('\n');
}

export function createView({ name, comment, columns, query }: View): string {
  const declared = columns ? ` (\n  ${columns.map(declareColumn).join(',\n  ')}\n)` : '';
  return `CREATE VIEW IF NOT EXISTS ${name}${declared} AS\n${query}\nCOMMENT ${quote(comment)}`;
}

const declareColumn = ({ name, type, codec, comment }: Column): string =>
  `${name} ${type} COMMENT ${quote(comment)}${codec ? ` CODEC(${codec})` : ''}`;

/** A ClickHouse string literal. */
export const quote = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
