/** How the table modules declare tables: columns with their meaning, which ClickHouse keeps as comments. */

export interface Column {
  name: string;
  type: string;
  /** Without one the server's default (LZ4) holds. */
  codec?: string;
  comment: string;
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
    .map(columnOf);

function columnOf(text: string): Column {
  const [declaration = '', ...meaning] = text.split(/\s+-- /);
  const [, name, type, codec] = /^\s*(\w+) (.+?)(?: CODEC\((.+)\))?$/.exec(declaration) ?? [];
  if (name === undefined || type === undefined || meaning.length === 0)
    throw new Error(`not a column: ${text}`);
  return { name, type, ...(codec && { codec }), comment: meaning.join(' ') };
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
  settings?: Readonly<Record<string, number>>;
}

/**
 * Blocks whose tokens a table remembers, its materialized views' targets as well: design decision 4. Without it
 * on a target a repeated block doubles the rollup while the raw table stays right.
 */
export const deduplicationWindow = { non_replicated_deduplication_window: 10_000 } as const;

/** The outbox and the journal forget a row as soon as it is here, so it has to be on the disk then. */
export const writtenThrough = { fsync_after_insert: 1, fsync_part_directory: 1 } as const;

export function createTable(table: Table): string {
  const parts = [
    ...table.columns.map(declareColumn),
    ...(table.indexes ?? []).map((index) => `INDEX ${index}`),
  ];
  const settings = Object.entries(table.settings ?? {}).map(([name, value]) => `${name} = ${value}`);
  return [
    `CREATE TABLE IF NOT EXISTS ${table.name} (\n  ${parts.join(',\n  ')}\n)`,
    `ENGINE = ${table.engine}`,
    ...(table.partitionBy ? [`PARTITION BY ${table.partitionBy}`] : []),
    `ORDER BY ${table.orderBy}`,
    ...(settings.length > 0 ? [`SETTINGS ${settings.join(', ')}`] : []),
    `COMMENT ${quote(table.comment)}`,
  ].join('\n');
}

/** A view whose columns carry their meaning as comments, as those of tables do. */
export interface DescribedView {
  name: string;
  comment: string;
  /** In the order of the query's. */
  columns: readonly Omit<Column, 'codec'>[];
  query: string;
}

export const createDescribedView = ({ name, comment, columns, query }: DescribedView): string =>
  `CREATE VIEW IF NOT EXISTS ${name} (\n  ${columns.map(declareColumn).join(',\n  ')}\n) AS\n${query}\nCOMMENT ${quote(comment)}`;

/** For a view that is read otherwise than before. */
export const replaceDescribedView = (view: DescribedView): string =>
  createDescribedView(view).replace('CREATE VIEW IF NOT EXISTS', 'CREATE OR REPLACE VIEW');

/** Adds columns where they are missing, each behind the one before. */
export function addColumns(name: string, columns: readonly Column[], after: string): string {
  const added = columns.map(
    (column, i) => `ADD COLUMN IF NOT EXISTS ${declareColumn(column)} AFTER ${columns[i - 1]?.name ?? after}`,
  );
  return `ALTER TABLE ${name}\n  ${added.join(',\n  ')}`;
}

/** Gives a column its type and comment; again, when it has them, does nothing. */
export const modifyColumn = (name: string, column: Column): string =>
  `ALTER TABLE ${name} MODIFY COLUMN ${declareColumn(column)}`;

const declareColumn = ({ name, type, codec, comment }: Column): string =>
  `${name} ${type} COMMENT ${quote(comment)}${codec ? ` CODEC(${codec})` : ''}`;

/** A ClickHouse string literal. */
export const quote = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
