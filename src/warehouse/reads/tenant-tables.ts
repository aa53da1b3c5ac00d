import type { Readable } from 'node:stream';
import type { ClickHouseClient, ClickHouseSettings } from '@clickhouse/client';
import { selectRows } from '../clickhouse/client.js';

/** `maxTextRows` applies to tables with long texts. */
export const maxPartRows = 500_000;
const maxTextRows = 10_000;

/** Name, time column (-: none) and key of tables and views. Partial sums are left out. */
export const tenantTables = `
  attempts | received_at | user_id String, learner_seq UInt32
  archived_learner_skill FINAL | day | user_id String, skill_id String, day Date, month UInt32
  cohort_skill_weekly | cohort | skill_id String, cohort Date, week UInt32
  forecast_coverage | - | forecast_days UInt16, history_from UInt32
  forecast_outcomes | made_at | user_id String, made_day Date, forecast_days UInt16
  forecasts | made_at | user_id String, made_at DateTime64(3,'UTC'), forecast_days UInt16, confidence_level Float64
  goal_changes FINAL | updated_at | user_id String, updated_at DateTime64(3,'UTC')
  goals | updated_at | user_id String
  group_changes FINAL | updated_at | group_id String, updated_at DateTime64(3,'UTC')
  group_member_changes FINAL | updated_at | user_id String, group_id String, updated_at DateTime64(3,'UTC')
  group_members | joined_at | user_id String, group_id String, joined_at DateTime64(3,'UTC')
  groups | updated_at | group_id String
  learner_profile_changes FINAL | updated_at | user_id String, updated_at DateTime64(3,'UTC')
  learner_profiles | updated_at | user_id String
  group_weekly | week | group_id String, week Date
  learner_skill_daily | day | user_id String, skill_id String, day Date
  learner_skill_total | last_day | user_id String, skill_id String
  learner_snapshots FINAL | - | user_id String
  model_versions | published_at | change UInt32
  served_forecasts FINAL | made_at | user_id String, made_at DateTime64(3,'UTC'), forecast_days UInt16, confidence_level Float64
  skill_answers | received_at | user_id String, learner_seq UInt32, skill_id String
  skill_catalogue | updated_at | skill_id String
  skill_changes FINAL | updated_at | skill_id String, updated_at DateTime64(3,'UTC'), revision UInt32
  skill_daily | day | skill_id String, day Date
  skill_parameters | - | version UInt32, skill_id String
  skill_velocity | - | skill_id String
  taken_back FINAL | taken_back_at | user_id String, taken_back_at DateTime64(3,'UTC'), event_id String
  tenant_settings FINAL | updated_at | updated_at DateTime64(3,'UTC')
  time_zones | - | time_zone String`
  .trim()
  .split('\n')
  .map((line) => {
    const [from = '', time = '', key = ''] = line.trim().split(' | ');
    const [name = ''] = from.split(' ');
    const maxRows = ['learner_snapshots', 'model_versions'].includes(name) ? maxTextRows : maxPartRows;
    return {
      name,
      from,
      time: time === '-' ? null : time,
      maxRows,
      key: key.split(', ').map(parseKeyColumn),
    };
  });

function parseKeyColumn(text: string) {
  const [name = '', type = ''] = text.split(' ');
  return { name, type };
}

export type TenantTable = (typeof tenantTables)[number];

/** With the default of 65,409 rows, the embedded engine takes three to five times the CPU. */
const blockRows = 4096;

/** The embedded engine builds Parquet files in memory. */
export const exportFormats = {
  parquet: `SETTINGS output_format_parquet_compression_method = 'zstd', output_format_parquet_string_as_string = 1,
    output_format_parquet_row_group_size = 100000, max_result_bytes = 2000000000 FORMAT Parquet`,
  csv: `SETTINGS max_block_size = ${blockRows}, date_time_output_format = 'iso', format_csv_null_representation = '',
    output_format_csv_serialize_tuple_into_separate_columns = 0 FORMAT CSVWithNames`,
  ndjson: `SETTINGS max_block_size = ${blockRows}, date_time_output_format = 'iso',
    output_format_json_quote_64bit_integers = 0 FORMAT JSONEachRow`,
} as const;

export type ExportFormat = keyof typeof exportFormats;

export interface TenantSelection {
  readonly table: TenantTable;
  readonly tenant: string;
  /** RFC 3339; null: from the first row. */
  readonly since: string | null;
  /** RFC 3339, excluded. */
  readonly before: string;
}

type RowKey = readonly string[];

/** Excludes `after`, includes `last`; null: no bound. */
export interface KeyRange {
  readonly after: RowKey | null;
  readonly last: RowKey | null;
}

/** Repeats the first column, for the index. */
function buildKeyCondition({ key }: TenantTable, sign: '>' | '<=', bound: string): string {
  const values = key.map(({ type }, i) => `{${bound}${i}:${type}}`);
  const names = key.map(({ name }) => name);
  return `${names[0]} ${sign[0]}= ${values[0]} AND (${names.join(', ')}) ${sign} (${values.join(', ')})`;
}

const toKeyParams = (bound: string, key: RowKey | null): object =>
  Object.fromEntries((key ?? []).map((value, i) => [`${bound}${i}`, value]));

function buildSource({ table, since }: TenantSelection, { after, last }: KeyRange): string {
  const parseTime = (name: string): string => `parseDateTime64BestEffort({${name}:String}, 3, 'UTC')`;
  const conditions = [
    'tenant = {tenant:String}',
    ...(table.time === null ? [] : [`${table.time} < ${parseTime('before')}`]),
    ...(since === null ? [] : [`${table.time} >= ${parseTime('since')}`]),
    ...(after === null ? [] : [buildKeyCondition(table, '>', 'after')]),
    ...(last === null ? [] : [buildKeyCondition(table, '<=', 'last')]),
  ];
  return `FROM ${table.from} WHERE ${conditions.join(' AND ')}`;
}

/** Without this setting, ClickHouse computes views over sums as a whole. */
const inOrderSettings: ClickHouseSettings = { optimize_aggregation_in_order: 1 };

export type TenantReader = ReturnType<typeof createTenantReader>;

export function createTenantReader(
  client: ClickHouseClient,
  selection: TenantSelection,
  signal: AbortSignal,
) {
  const { key } = selection.table;
  const names = key.map((column) => column.name);
  const order = (direction: string): string =>
    `ORDER BY ${['tenant', ...names].map((column) => `${column} ${direction}`).join(', ')}`;
  const toTextArray = (of = (column: string, _: number) => column): string =>
    `[${names.map((column, i) => `toString(${of(column, i)})`).join(', ')}]`;
  const buildParams = ({ after, last }: KeyRange) => ({
    ...{ tenant: selection.tenant, since: selection.since, before: selection.before },
    ...{ ...toKeyParams('after', after), ...toKeyParams('last', last) },
  });
  const select = <Row>(
    columns: string,
    range: KeyRange,
    suffix = '',
    params: object = {},
  ): Promise<Row[]> => {
    const options = { params: { ...buildParams(range), ...params }, settings: inOrderSettings, signal };
    return selectRows<Row>(client, `SELECT ${columns} ${buildSource(selection, range)} ${suffix}`, options);
  };
  const selectKeys = (...args: [range: KeyRange, suffix: string, params?: object]) =>
    select<{ key: RowKey }>(`${toTextArray()} AS key`, ...args);

  return {
    /**
     * Null: the part has all remaining rows. A part does not split a learner (or another first key column): a
     * retraction renumbers the learner's later answers, which must stay in their part.
     */
    findPartEnd: async (after: RowKey | null, size: number): Promise<RowKey | null> => {
      const rest = { after, last: null };
      const [end, next] = await selectKeys(rest, `${order('ASC')} LIMIT 2 OFFSET ${size - 1}`);
      if (end === undefined || next === undefined) return null;
      if (end.key[0] !== next.key[0]) return end.key;
      const lastLearnerSuffix = `AND ${names[0]} < {next:${key[0]?.type}} ${order('DESC')} LIMIT 1`;
      const [last = end] = await selectKeys(rest, lastLearnerSuffix, { next: next.key[0] });
      return last.key;
    },
    /** `digest` changes with the set of keys. */
    fetchPartFacts: async (range: KeyRange) => {
      const end = (of: string): string =>
        toTextArray((_, i) => `tupleElement(${of}(tuple(${names.join(', ')})), ${i + 1})`);
      const what = `toFloat64(count()) AS rows, ${end('min')} AS first, ${end('max')} AS last,
        toString(groupBitXor(cityHash64(${names.join(', ')}))) AS digest`;
      const [found] = await select<{ rows: number; first: RowKey; last: RowKey; digest: string }>(
        what,
        range,
      );
      if (found === undefined) throw new Error('ClickHouse returned no row for a count');
      return found;
    },
    /** An error arrives before the first byte, or closes the connection. */
    streamPart: async (range: KeyRange, as: ExportFormat): Promise<Readable> => {
      const { stream } = await client.exec({
        query: `SELECT * ${buildSource(selection, range)} ${order('ASC')} ${exportFormats[as]}`,
        query_params: buildParams(range),
        clickhouse_settings: { ...inOrderSettings, asterisk_include_alias_columns: 1, wait_end_of_query: 1 },
        abort_signal: signal,
      });
      return stream;
    },
  };
}
