/** The dashboards of docs/compose/grafana, and the SQL that Grafana makes of their queries. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../runner/root.js';

type Fields = Readonly<Record<string, unknown>>;

interface Target {
  readonly refId: string;
  readonly datasource: { readonly type: string; readonly uid: string };
}

export interface SqlTarget extends Target {
  /** 0: a time series with the column `time`; 1: a table. */
  readonly format: 0 | 1;
  readonly rawSql: string;
}

type PromqlTarget = Target & { readonly expr: string; readonly legendFormat: string };

export interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: Readonly<Record<'h' | 'w' | 'x' | 'y', number>>;
  readonly datasource: Target['datasource'];
  readonly fieldConfig: {
    readonly defaults: Fields;
    readonly overrides: readonly { readonly matcher: { readonly options: string } }[];
  };
  readonly options: Fields;
  readonly targets: readonly (SqlTarget | PromqlTarget)[];
}

export interface Dashboard {
  readonly uid: string;
  readonly title: string;
  readonly tags: readonly string[];
  readonly links: readonly Fields[];
  readonly annotations: { readonly list: readonly { readonly target: SqlTarget }[] };
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly query: { readonly rawSql?: string } }[];
  };
  readonly panels: readonly Panel[];
}

const folder = join(root, 'docs/compose/grafana');

export function readDashboards(): Dashboard[] {
  const files = readdirSync(folder).filter((name) => name.endsWith('.json'));
  return files.map((name) => {
    const { schemaVersion, editable, ...dashboard } = JSON.parse(readFileSync(join(folder, name), 'utf8'));
    // 39 is the version of Grafana 11, the oldest with the ClickHouse plugin.
    assert.deepEqual([schemaVersion, editable], [39, false], name);
    return dashboard;
  });
}

/** All panels except row headings. */
export const panelsOf = ({ panels }: Dashboard): Panel[] => panels.filter(({ type }) => type !== 'row');

export const isSql = (target: Panel['targets'][number]): target is SqlTarget => 'rawSql' in target;

export interface Chosen {
  /** UTC days as YYYY-MM-DD. */
  readonly from: string;
  readonly to: string;
  readonly variables: Readonly<Record<string, readonly string[]>>;
}

const sqlString = (value: string): string => `'${value.replaceAll("'", "''")}'`;
const seconds = (day: string): string => `toDateTime(${Date.parse(day) / 1000})`;

/**
 * Expands variables like Grafana, and macros like pkg/macros/macros.go of grafana/clickhouse-datasource 4.20.
 * @throws Error for any other macro or variable
 */
export function expandSql(sql: string, { from, to, variables }: Chosen): string {
  const valuesOf = (name: string): readonly string[] => {
    const values = variables[name];
    if (values === undefined) throw new Error(`unknown variable ${name}: ${sql}`);
    return values;
  };
  const expanded = sql
    .replace(/\$\{(\w+):sqlstring\}/g, (_, name) => valuesOf(name).map(sqlString).join(','))
    .replace(/\$\{(\w+)\}/g, (_, name) => valuesOf(name).join(','))
    .replace(/\$__dateFilter\((\w+)\)/g, `$1 >= toDate('${from}') AND $1 <= toDate('${to}')`)
    .replace(/\$__timeFilter\((\w+)\)/g, `$1 >= ${seconds(from)} AND $1 <= ${seconds(to)}`);
  if (expanded.includes('$')) throw new Error(`unknown macro: ${expanded}`);
  return expanded;
}
