/** The PromQL of Grafana's dashboards, against the metrics of GET /metrics. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parser } from '@prometheus-io/lezer-promql';
import { metricDescriptions } from '../../src/services/operations/metric-registry.js';
import { createAuditStore } from '../../src/store/audit/audit-store.js';
import { callerOf, event } from '../support/http/http.js';
import { panelsOf, readDashboards } from '../support/inspect/dashboards.js';
import { redisOf, sharedService } from '../support/servers/service.js';

const service = await sharedService();

/** Labels that Prometheus adds. */
const addedLabels = ['job', 'instance'];

type Node = ReturnType<typeof parser.parse>['topNode'];

/** Selected metrics, with their conditions on labels, and the labels by which a query groups. @throws Error for invalid PromQL */
function parseQuery(expr: string) {
  const query = expr.replaceAll('$__rate_interval', '1m').replaceAll('$__range', '3h');
  const textOf = (node: Node | null): string => (node ? query.slice(node.from, node.to) : '');
  const selectors: { name: string; matchers: { label: string; operator: string; value: string }[] }[] = [];
  const labels: string[] = [];
  parser.parse(query).iterate({
    enter: ({ type, node }) => {
      if (type.isError) throw new Error(`no PromQL at ${node.from}: ${query}`);
      if (type.name === 'GroupingLabels') labels.push(...node.getChildren('LabelName').map(textOf));
      if (type.name !== 'VectorSelector') return;
      const matchers = node.getChild('LabelMatchers')?.getChildren('UnquotedLabelMatcher') ?? [];
      selectors.push({
        name: textOf(node.getChild('Identifier')),
        matchers: matchers.map((matcher) => ({
          label: textOf(matcher.getChild('LabelName')),
          operator: textOf(matcher.getChild('MatchOp')),
          value: textOf(matcher.getChild('StringLiteral')).slice(1, -1),
        })),
      });
    },
  });
  return { selectors, labels };
}

const queries = readDashboards()
  .flatMap(panelsOf)
  .flatMap(({ title, targets }) =>
    targets.flatMap((target) => ('expr' in target ? [{ title, ...target }] : [])),
  );

/** Labels of each time series, by name of the metric. */
function parseSeries(text: string): Map<string, Map<string, string>[]> {
  const series = new Map<string, Map<string, string>[]>([['up', [new Map()]]]);
  for (const [, name = '', labels = ''] of text.matchAll(/^(\w+)(?:\{(.*)\})? \S+$/gm)) {
    const pairs = [...labels.matchAll(/(\w+)="([^"]*)"/g)];
    const values = new Map(pairs.map(([, label = '', value = '']) => [label, value]));
    series.set(name, [...(series.get(name) ?? []), values]);
  }
  return series;
}

test('Grafana shows every metric, except those that a deployment of containers does not have', () => {
  const absent = ['clickhouse_restarts_total', 'api_processes_answering', 'api_processes_hung_total'];
  const shown = queries.map(({ expr }) => expr).join('\n');
  const missing = Object.keys(metricDescriptions).filter((name) => !shown.includes(`skilltrace_${name}`));
  assert.deepEqual(missing.sort(), absent.sort());
});

test('Grafana queries only metrics, labels and values that GET /metrics has', async (t) => {
  const caller = callerOf(service, service.key);
  assert.equal((await caller.track(event())).status, 200);
  // Services of tests make no audit.
  const audits = createAuditStore(await redisOf(t, service.redisUrl), 0);
  await audits.save({ at: Date.now(), seconds: 1, mismatches: {}, notCompared: 0 });
  const series = parseSeries((await caller.raw({ method: 'GET', path: '/metrics' })).text);
  assert.ok(queries.length >= 30);
  for (const { title, expr, legendFormat } of queries) {
    const { selectors, labels } = parseQuery(expr);
    assert.notEqual(selectors.length, 0, expr);
    const known = new Set(addedLabels);
    for (const { name, matchers } of selectors) {
      const found = series.get(name) ?? assert.fail(`no metric ${name}`);
      for (const label of found[0]?.keys() ?? []) known.add(label);
      for (const { label, operator, value } of matchers) {
        if (addedLabels.includes(label)) continue;
        const values = found.map((one) => one.get(label));
        assert.ok(!values.includes(undefined), `${name} has no label ${label}`);
        if (operator === '=') assert.ok(values.includes(value), `no ${name} has ${label} ${value}`);
      }
    }
    for (const label of labels) assert.ok(known.has(label), `${title}: ${label}`);
    for (const [, label = ''] of legendFormat.matchAll(/\{\{(\w+)\}\}/g))
      assert.ok(labels.includes(label), `${title}: legend ${label}`);
  }
});
