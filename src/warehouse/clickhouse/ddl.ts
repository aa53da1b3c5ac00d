/** On a cluster (ADR 17), NAME_local on each shard stores the rows, and NAME is a Distributed table. */

/** Name in `remote_servers`; null: a single server. */
export type Cluster = string | null;

export interface Column {
  name: string;
  type: string;
  codec?: string;
  source?: string;
  comment: string;
}

export interface Table {
  name: string;
  comment: string;
  engine: string;
  columns: readonly Column[];
  indexes?: readonly string[];
  partitionBy?: string;
  orderBy: string;
  shardBy: string;
  settings: string;
}

export interface View {
  name: string;
  comment: string;
  columns?: readonly Column[];
  query: string;
}

const codecs: Readonly<Record<string, string>> = {
  zstd: 'ZSTD(1)',
  zstd3: 'ZSTD(3)',
  delta: 'Delta, ZSTD(1)',
};

/**
 * One column per line: `name Type [codec] [= expression] -- meaning`. A line `-- text` continues a meaning.
 * @throws Error for other lines
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
  const [, name, type, codec = '', source] =
    /^\s*(\w+) (.+?)(?: (zstd3?|delta))?(?: = (.+))?$/.exec(declaration) ?? [];
  if (name === undefined || type === undefined || meaning.length === 0)
    throw new Error(`not a column: ${text}`);
  const comment = meaning.join(' ');
  return { name, type, comment, ...(codec && { codec: codecs[codec] }), ...(source && { source }) };
}

/** Rows must be on disk: outbox and journal then delete them. */
const writtenThrough = 'fsync_after_insert = 1, fsync_part_directory = 1';

/**
 * Stores the tokens of recent blocks (ADR 3). Targets of views need this too: a repeated block would double
 * their sums.
 */
export const rememberingTokens = `non_replicated_deduplication_window = 10000, ${writtenThrough}`;

type Layout = Pick<Table, 'engine' | 'orderBy'> & Partial<Table>;

/** Default: sharded by learner, with fsync. @param title `name -- meaning` */
export function defineTable(title: string, columns: string | readonly Column[], layout: Layout): Table {
  const [name = '', comment = ''] = title.split(' -- ');
  return {
    ...{ name, comment, shardBy: 'cityHash64(tenant, user_id)', settings: writtenThrough },
    columns: typeof columns === 'string' ? columnsOf(columns) : columns,
    ...layout,
  };
}

export const storedName = (name: string, cluster: Cluster): string =>
  cluster === null ? name : `${name}_local`;

export const everywhere = (name: string, cluster: Cluster): string =>
  cluster === null ? name : `${name} ON CLUSTER ${cluster}`;

export function createTables(table: Table, cluster: Cluster): string[] {
  if (cluster === null) return [createTable(table)];
  const stored = storedName(table.name, cluster);
  return [
    createTable({
      ...table,
      name: everywhere(stored, cluster),
      engine: replicated(table.engine),
      settings: table.settings.replace('non_replicated_', 'replicated_'),
    }),
    [
      `CREATE TABLE IF NOT EXISTS ${everywhere(table.name, cluster)} AS ${stored}`,
      `ENGINE = Distributed(${cluster}, currentDatabase(), ${stored}, ${table.shardBy})`,
      `COMMENT ${quote(table.comment)}`,
    ].join('\n'),
  ];
}

const replicated = (engine: string): string =>
  engine.replace(
    /^(\w+)(?:\((.*)\))?$/,
    (_, name: string, argument?: string) =>
      `Replicated${name}('/clickhouse/tables/{database}/{table}/{shard}', '{replica}'${argument ? `, ${argument}` : ''})`,
  );

const createTable = ({ columns, indexes = [], partitionBy, settings, ...table }: Table): string =>
  [
    `CREATE TABLE IF NOT EXISTS ${table.name}${inLines([...columns.map(declare), ...indexes.map((one) => `INDEX ${one}`)])}`,
    `ENGINE = ${table.engine}`,
    ...(partitionBy ? [`PARTITION BY ${partitionBy}`] : []),
    `ORDER BY ${table.orderBy}`,
    ...(settings ? [`SETTINGS ${settings}`] : []),
    `COMMENT ${quote(table.comment)}`,
  ].join('\n');

export const createView = ({ name, comment, columns, query }: View): string =>
  `CREATE OR REPLACE VIEW ${name}${columns ? inLines(columns.map(declare)) : ''} AS\n${query}\nCOMMENT ${quote(comment)}`;

const inLines = (parts: readonly string[]): string => ` (\n  ${parts.join(',\n  ')}\n)`;

const declare = ({ name, type, codec, comment }: Column): string =>
  `${name} ${type} COMMENT ${quote(comment)}${codec ? ` CODEC(${codec})` : ''}`;

export const quote = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;

/**
 * Start of a DELETE, before WHERE. On a cluster, one replica of a shard runs an ALTER. With DELETE, a replica
 * that was unavailable would later delete newer rows.
 */
export const deleteFrom = (name: string, cluster: Cluster): string =>
  cluster === null
    ? `DELETE FROM ${name}`
    : `ALTER TABLE ${everywhere(storedName(name, cluster), cluster)} DELETE`;

export const dropPartition = (name: string, partition: number, cluster: Cluster): string =>
  `ALTER TABLE ${everywhere(storedName(name, cluster), cluster)} DROP PARTITION ${partition}`;
