/** On a cluster (ADR 17), NAME_local on each shard stores the rows, and NAME is a Distributed table. */
import { distinct } from '../../lists.js';

/** Name in `remote_servers`; null: a single server. */
export type ClusterName = string | null;

export interface Column {
  name: string;
  type: string;
  codec?: string;
  expression?: string;
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
export const parseColumns = (text: string): Column[] =>
  text
    .trim()
    .replaceAll(/\n\s+-- /g, '\n-- ')
    .split(/\n(?!-- )/)
    .filter((line) => line.trim() !== '')
    .map(parseColumn);

function parseColumn(text: string): Column {
  const [declaration = '', ...meaning] = text.split(/\s+-- /);
  const [, name, type, codec = '', expression] =
    /^\s*(\w+) (.+?)(?: (zstd3?|delta))?(?: = (.+))?$/.exec(declaration) ?? [];
  if (name === undefined || type === undefined || meaning.length === 0)
    throw new Error(`invalid column definition: ${text}`);
  const comment = meaning.join(' ');
  return { name, type, comment, ...(codec && { codec: codecs[codec] }), ...(expression && { expression }) };
}

/** Rows must be on disk: outbox and journal then delete them. */
const fsyncSettings = 'fsync_after_insert = 1, fsync_part_directory = 1';

/**
 * Stores the tokens of recent blocks (ADR 3). Targets of views need this too: a repeated block would double
 * their sums.
 */
export const deduplicationSettings = `non_replicated_deduplication_window = 10000, ${fsyncSettings}`;

type TableLayout = Pick<Table, 'engine' | 'orderBy'> & Partial<Table>;

/** Default: sharded by learner, with fsync. @param title `name -- meaning` */
export function defineTable(title: string, columns: string | readonly Column[], layout: TableLayout): Table {
  const [name = '', comment = ''] = title.split(' -- ');
  return {
    ...{ name, comment, shardBy: 'cityHash64(tenant, user_id)', settings: fsyncSettings },
    columns: typeof columns === 'string' ? parseColumns(columns) : columns,
    ...layout,
  };
}

export const localTableName = (name: string, cluster: ClusterName): string =>
  cluster === null ? name : `${name}_local`;

export const appendOnCluster = (name: string, cluster: ClusterName): string =>
  cluster === null ? name : `${name} ON CLUSTER ${cluster}`;

export function buildCreateTables(table: Table, cluster: ClusterName): string[] {
  if (cluster === null) return [buildCreateTable(table)];
  const localName = localTableName(table.name, cluster);
  return [
    buildCreateTable({
      ...table,
      name: appendOnCluster(localName, cluster),
      engine: replicateEngine(table.engine),
      settings: table.settings.replace('non_replicated_', 'replicated_'),
    }),
    [
      `CREATE TABLE IF NOT EXISTS ${appendOnCluster(table.name, cluster)} AS ${localName}`,
      `ENGINE = Distributed(${cluster}, currentDatabase(), ${localName}, ${table.shardBy})`,
      `COMMENT ${quote(table.comment)}`,
    ].join('\n'),
  ];
}

export const buildAddColumns = ({ name, columns }: Table, added: readonly string[], cluster: ClusterName) =>
  // The stored table first: a Distributed table refers to it.
  distinct([localTableName(name, cluster), name]).map((each) => {
    const selected = columns.filter((column) => added.includes(column.name));
    const additions = selected.map((column) => `ADD COLUMN IF NOT EXISTS ${formatColumn(column)}`);
    return `ALTER TABLE ${appendOnCluster(each, cluster)} ${additions.join(', ')}`;
  });

const replicateEngine = (engine: string): string =>
  engine.replace(
    /^(\w+)(?:\((.*)\))?$/,
    (_, name: string, argument?: string) =>
      `Replicated${name}('/clickhouse/tables/{database}/{table}/{shard}', '{replica}'${argument ? `, ${argument}` : ''})`,
  );

const buildCreateTable = ({ columns, indexes = [], partitionBy, settings, ...table }: Table): string =>
  [
    `CREATE TABLE IF NOT EXISTS ${table.name}${formatList([...columns.map(formatColumn), ...indexes.map((one) => `INDEX ${one}`)])}`,
    `ENGINE = ${table.engine}`,
    ...(partitionBy ? [`PARTITION BY ${partitionBy}`] : []),
    `ORDER BY ${table.orderBy}`,
    ...(settings ? [`SETTINGS ${settings}`] : []),
    `COMMENT ${quote(table.comment)}`,
  ].join('\n');

export const buildCreateView = ({ name, comment, columns, query }: View): string =>
  `CREATE OR REPLACE VIEW ${name}${columns ? formatList(columns.map(formatColumn)) : ''} AS\n${query}\nCOMMENT ${quote(comment)}`;

const formatList = (parts: readonly string[]): string => ` (\n  ${parts.join(',\n  ')}\n)`;

const formatColumn = ({ name, type, codec, comment }: Column): string =>
  `${name} ${type} COMMENT ${quote(comment)}${codec ? ` CODEC(${codec})` : ''}`;

export const quote = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;

/**
 * Start of a DELETE, before WHERE. On a cluster, one replica of a shard runs an ALTER. With DELETE, a replica
 * that was unavailable would later delete newer rows.
 */
export const buildDeleteFrom = (name: string, cluster: ClusterName): string =>
  cluster === null
    ? `DELETE FROM ${name}`
    : `ALTER TABLE ${appendOnCluster(localTableName(name, cluster), cluster)} DELETE`;

export const buildDropPartition = (name: string, partition: number, cluster: ClusterName): string =>
  `ALTER TABLE ${appendOnCluster(localTableName(name, cluster), cluster)} DROP PARTITION ${partition}`;
