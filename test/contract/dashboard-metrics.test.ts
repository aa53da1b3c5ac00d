/** Every question that the dashboards have for Prometheus is PromQL, about figures and labels that GET /metrics has. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parser } from '@prometheus-io/lezer-promql';
import { metricDescriptions } from '../../src/services/operations/metric-registry.js';
import { createAuditStore } from '../../src/store/audit/audit-store.js';
import { callerOf, event } from '../support/http/http.js';
import { panelsOf, readDashboards } from '../support/inspect/dashboards.js';
import { exitAfterTests } from '../support/servers/linger.js';
import { redisOf, sharedService } from '../support/servers/service.js';

const service = await sharedService();

exitAfterTests();

/** What Prometheus puts beside the labels of a figure. */
const ofPrometheus = ['job', 'instance'];

interface Selector {
  readonly name: string;
  readonly matchers: readonly { readonly label: string; readonly operator: string; readonly value: string }[];
}

interface Parsed {
  readonly selectors: readonly Selector[];
  /** Labels by which anything is summed up, and those of the legend. */
  readonly labels: readonly string[];
}

type Node = ReturnType<typeof parser.parse>['topNode'];

const textOf = (query: string, node: Node | null | undefined): string =>
  node ? query.slice(node.from, node.to) : '';

function selectorOf(query: string, node: Node): Selector {
  const matchers = node.getChild('LabelMatchers')?.getChildren('UnquotedLabelMatcher') ?? [];
  return {
    name: textOf(query, node.getChild('Identifier')),
    matchers: matchers.map((matcher) => ({
      label: textOf(query, matcher.getChild('LabelName')),
      operator: textOf(query, matcher.getChild('MatchOp')),
      value: textOf(query, matcher.getChild('StringLiteral')).slice(1, -1),
    })),
  };
}

/** @throws Error where it is no PromQL */
function parsed(query: string): Parsed {
  const selectors: Selector[] = [];
  const labels: string[] = [];
  parser.parse(query).iterate({
    enter: ({ type, node }) => {
      if (type.isError) throw new Error(`no PromQL at ${node.from}: ${query}`);
      if (type.name === 'VectorSelector') selectors.push(selectorOf(query, node));
      if (type.name === 'GroupingLabels')
        labels.push(...node.getChildren('LabelName').map((label) => textOf(query, label)));
    },
  });
  return { selectors, labels };
}

/** Times as Grafana fills them in. */
const expanded = (expr: string): string =>
  expr.replaceAll('$__rate_interval', '1m').replaceAll('$__range', '3h');

const questions = readDashboards()
  .flatMap(panelsOf)
  .flatMap(({ title, targets }) =>
    targets.flatMap((target) => ('expr' in target ? [{ title, ...target }] : [])),
  );

/** Labels of each series, by the name of its figure. */
type Series = ReadonlyMap<string, readonly ReadonlyMap<string, string>[]>;

function seriesOf(text: string): Series {
  const series = new Map<string, Map<string, string>[]>([['up', [new Map()]]]);
  for (const [, name = '', labels = ''] of text.matchAll(/^(\w+)(?:\{(.*)\})? \S+$/gm)) {
    const pairs = [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, label = '', value = '']) => [
      label,
      value,
    ]);
    series.set(name, [...(series.get(name) ?? []), new Map(pairs as [string, string][])]);
  }
  return series;
}

function assertSelected({ name, matchers }: Selector, series: Series): void {
  const found = series.get(name);
  assert.ok(found !== undefined, `no figure ${name}`);
  for (const { label, operator, value } of matchers) {
    if (ofPrometheus.includes(label)) continue;
    const values = found.map((labels) => labels.get(label));
    assert.ok(!values.includes(undefined), `${name} has no label ${label}`);
    if (operator === '=') assert.ok(values.includes(value), `no ${name} has ${label} ${value}`);
  }
}

test('questions are PromQL', () => {
  assert.ok(questions.length >= 30);
  for (const { expr } of questions) assert.ok(parsed(expanded(expr)).selectors.length > 0, expr);
  assert.throws(() => parsed('sum by (le (up)'), /no PromQL/);
});

test('every figure is on a dashboard but those that a deployment of containers has not', () => {
  const elsewhere = ['clickhouse_restarts_total', 'api_processes_answering', 'api_processes_hung_total'];
  const asked = questions.map(({ expr }) => expr).join('\n');
  const missing = Object.keys(metricDescriptions).filter((name) => !asked.includes(`skilltrace_${name}`));
  assert.deepEqual(missing.sort(), elsewhere.sort());
});

test('they ask for figures, labels and values that a service has', async (t) => {
  const caller = callerOf(service, service.key);
  assert.equal((await caller.track(event())).status, 200);
  // As an audit ends: tests' services make none by themselves.
  const audits = createAuditStore(await redisOf(t, service.redisUrl), 0);
  await audits.save({ at: Date.now(), seconds: 1, mismatches: {}, notCompared: 0 });
  const series = seriesOf((await caller.raw({ method: 'GET', path: '/metrics' })).text);
  for (const { title, expr, legendFormat } of questions) {
    const { selectors, labels } = parsed(expanded(expr));
    for (const selector of selectors) assertSelected(selector, series);
    const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = '']) => label);
    assert.deepEqual(
      shown.filter((label) => !labels.includes(label)),
      [],
      `${title}: legend`,
    );
    const own = selectors.flatMap(({ name }) => [...(series.get(name)?.[0]?.keys() ?? [])]);
    for (const label of labels) assert.ok([...own, ...ofPrometheus].includes(label), `${title}: ${label}`);
  }
});
