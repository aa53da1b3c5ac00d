/** The dashboards of docs/compose/grafana as they are used: their shape, and what Grafana makes of their texts. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import Type, { type Static, type TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { root } from '../runner/root.js';

const exactly = <Properties extends Record<string, TSchema>>(properties: Properties) =>
  Type.Object(properties, { additionalProperties: false });
const text = Type.String({ minLength: 1 });
const settings = Type.Record(Type.String(), Type.Unknown());

const dataSource = exactly({ type: text, uid: text });
const sqlTarget = exactly({
  refId: text,
  datasource: dataSource,
  editorType: Type.Literal('sql'),
  // 0: a time series, whose column of times is called time; 1: a table.
  format: Type.Union([Type.Literal(0), Type.Literal(1)]),
  rawSql: text,
});
const promTarget = exactly({ refId: text, datasource: dataSource, expr: text, legendFormat: text });
const gridPos = exactly({
  h: Type.Integer({ minimum: 1 }),
  w: Type.Integer({ minimum: 1, maximum: 24 }),
  x: Type.Integer({ minimum: 0 }),
  y: Type.Integer({ minimum: 0 }),
});
const override = exactly({
  matcher: exactly({ id: Type.Literal('byName'), options: text }),
  properties: Type.Array(exactly({ id: text, value: Type.Unknown() }), { minItems: 1 }),
});
const panel = exactly({
  id: Type.Integer({ minimum: 1 }),
  type: Type.Union(['stat', 'timeseries', 'barchart', 'table', 'trend'].map((kind) => Type.Literal(kind))),
  title: text,
  description: Type.Optional(text),
  gridPos,
  datasource: dataSource,
  fieldConfig: exactly({ defaults: settings, overrides: Type.Array(override) }),
  options: settings,
  targets: Type.Array(Type.Union([sqlTarget, promTarget]), { minItems: 1 }),
});
const row = exactly({
  id: Type.Integer({ minimum: 1 }),
  type: Type.Literal('row'),
  title: text,
  collapsed: Type.Literal(false),
  gridPos,
  panels: Type.Array(Type.Never(), { maxItems: 0 }),
});
const choice = { name: text, label: text, includeAll: Type.Boolean(), multi: Type.Boolean() };
const variable = Type.Union([
  exactly({
    ...choice,
    type: Type.Literal('query'),
    datasource: dataSource,
    query: exactly({ refId: text, editorType: Type.Literal('sql'), rawSql: text }),
    // 1: when the dashboard is loaded.
    refresh: Type.Literal(1),
    sort: Type.Integer(),
    regex: Type.String(),
    options: Type.Array(Type.Unknown()),
    current: settings,
  }),
  exactly({
    ...choice,
    type: Type.Literal('custom'),
    query: text,
    options: Type.Array(settings),
    current: settings,
  }),
]);
const dashboard = exactly({
  uid: text,
  title: text,
  description: text,
  tags: Type.Array(text),
  // 39 is that of Grafana 11, the oldest that the ClickHouse plugin runs in; newer ones bring it to theirs.
  schemaVersion: Type.Literal(39),
  editable: Type.Literal(false),
  timezone: text,
  refresh: Type.String(),
  graphTooltip: Type.Integer(),
  time: exactly({ from: text, to: text }),
  timepicker: settings,
  links: Type.Array(settings),
  annotations: exactly({
    list: Type.Array(
      exactly({
        name: text,
        datasource: dataSource,
        enable: Type.Boolean(),
        iconColor: text,
        target: sqlTarget,
      }),
    ),
  }),
  templating: exactly({ list: Type.Array(variable) }),
  panels: Type.Array(Type.Union([row, panel]), { minItems: 1 }),
});

export type Dashboard = Static<typeof dashboard>;
export type Panel = Static<typeof panel>;
export type SqlTarget = Static<typeof sqlTarget>;

const check = Compile(dashboard);
const folder = join(root, 'docs/compose/grafana');

/** @throws Error for what is not of the shape above */
export function readDashboards(): Dashboard[] {
  const files = readdirSync(folder).filter((name) => name.endsWith('.json'));
  return files.map((name) => {
    const found: unknown = JSON.parse(readFileSync(join(folder, name), 'utf8'));
    if (check.Check(found)) return found;
    const [first] = check.Errors(found);
    throw new Error(`${name}${first?.instancePath}: ${first?.message}`);
  });
}

export const panelsOf = ({ panels }: Dashboard): Panel[] =>
  panels.filter((one): one is Panel => one.type !== 'row');

export const isSql = (target: Panel['targets'][number]): target is SqlTarget => 'rawSql' in target;

export interface Chosen {
  /** Days, UTC, as YYYY-MM-DD. */
  readonly from: string;
  readonly to: string;
  readonly variables: Readonly<Record<string, readonly string[]>>;
}

const sqlString = (value: string): string => `'${value.replaceAll("'", "''")}'`;
const seconds = (day: string): string => `toDateTime(${Date.parse(day) / 1000})`;

/**
 * The SQL that Grafana sends: variables as its own documentation writes them, macros as pkg/macros/macros.go of
 * grafana/clickhouse-datasource 4.20 does. @throws Error for any other macro or variable
 */
export function expandSql(sql: string, { from, to, variables }: Chosen): string {
  const valuesOf = (name: string): readonly string[] => {
    const values = variables[name];
    if (values === undefined) throw new Error(`no variable ${name}: ${sql}`);
    return values;
  };
  const expanded = sql
    .replace(/\$\{(\w+):sqlstring\}/g, (_, name) => valuesOf(name).map(sqlString).join(','))
    .replace(/\$\{(\w+)\}/g, (_, name) => valuesOf(name).join(','))
    .replace(/\$__dateFilter\((\w+)\)/g, `$1 >= toDate('${from}') AND $1 <= toDate('${to}')`)
    .replace(/\$__timeFilter\((\w+)\)/g, `$1 >= ${seconds(from)} AND $1 <= ${seconds(to)}`);
  if (expanded.includes('$')) throw new Error(`a macro that nobody expands: ${expanded}`);
  return expanded;
}
