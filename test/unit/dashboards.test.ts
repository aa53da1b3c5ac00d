/** Grafana as docker-compose.yml provisions it: what names what. Grafana itself was not there to try it. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { type Dashboard, panelsOf, readDashboards } from '../support/inspect/dashboards.js';
import { root } from '../support/runner/root.js';

const yamlOf = (name: string) => parse(readFileSync(join(root, name), 'utf8'), { merge: true });
const { datasources } = yamlOf('docs/compose/grafana/datasources.yml');
const { services } = yamlOf('docker-compose.yml');
const dashboards = readDashboards();

interface DataSource {
  readonly uid: string;
  readonly type: string;
}

const known = (datasources as DataSource[]).map(({ type, uid }) => ({ type, uid }));

test('there are two dashboards, and a link of each shows the other', () => {
  assert.deepEqual(
    dashboards.map(({ uid, title }) => [uid, title]),
    [
      ['skilltrace-learning', 'Learning'],
      ['skilltrace-operations', 'Operations'],
    ],
  );
  for (const { tags, links } of dashboards) assert.deepEqual(links[0]?.tags, tags);
});

test('panels have numbers and titles of their own, and none covers another', () => {
  for (const { title, panels } of dashboards) {
    assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length, title);
    const covered = panels.flatMap(({ gridPos: { x, y, w, h } }) => {
      assert.ok(x + w <= 24, `${title}: wider than the page`);
      return Array.from({ length: w * h }, (_, i) => `${x + (i % w)},${y + Math.floor(i / w)}`);
    });
    assert.equal(new Set(covered).size, covered.length, title);
  }
});

const targetsOf = (dashboard: Dashboard) => [
  ...panelsOf(dashboard).flatMap(({ targets }) => targets),
  ...dashboard.annotations.list.map(({ target }) => target),
];

test('every query goes to a data source that is provisioned, and has a letter of its own in its panel', () => {
  for (const dashboard of dashboards) {
    for (const { datasource } of targetsOf(dashboard))
      assert.ok(
        known.some(({ uid, type }) => uid === datasource.uid && type === datasource.type),
        datasource.uid,
      );
    for (const { title, datasource, targets } of panelsOf(dashboard)) {
      assert.equal(new Set(targets.map(({ refId }) => refId)).size, targets.length, title);
      for (const target of targets) assert.deepEqual(target.datasource, datasource, title);
    }
  }
});

test('every variable is used, and every one that is used is there', () => {
  for (const { title, templating, ...rest } of dashboards) {
    const names = templating.list.map(({ name }) => name).sort();
    const used = [...JSON.stringify(rest).matchAll(/\$\{(\w+)(?::\w+)?\}/g)].map(([, name]) => name);
    const own = [...new Set(used)].filter((name) => !name?.startsWith('__')).sort();
    assert.deepEqual(own, names, title);
  }
});

test('the data sources are the services of docker-compose.yml, the account and its password its own', () => {
  const [clickhouse, prometheus] = datasources;
  assert.ok(clickhouse.jsonData.host in services);
  assert.equal(clickhouse.jsonData.defaultDatabase, services.clickhouse.environment.CLICKHOUSE_DB);
  assert.match(readFileSync(join(root, 'docs/compose/analyst.xml'), 'utf8'), /^ {4}<analyst>$/m);
  assert.equal(clickhouse.jsonData.username, 'analyst');
  assert.equal(clickhouse.secureJsonData.password, '$__file{/run/secrets/analyst_password}');
  assert.ok(new URL(prometheus.url).hostname in services);
  const { environment } = services.grafana;
  assert.ok(environment.GF_PLUGINS_PREINSTALL_SYNC.startsWith(`${clickhouse.type}@`));
});

test('Prometheus asks each container that serves /metrics, at its port and as often as Grafana believes', () => {
  const { global, scrape_configs } = yamlOf('docs/compose/prometheus.yml');
  assert.equal(datasources[1].jsonData.timeInterval, global.scrape_interval);
  const [{ names, type, port }] = scrape_configs[0].dns_sd_configs;
  const built = Object.entries<{ build?: string; environment: { PORT: number } }>(services).filter(
    ([, { build }]) => build !== undefined,
  );
  assert.deepEqual(
    names,
    built.map(([name]) => name),
  );
  assert.equal(type, 'A');
  for (const [name, { environment }] of built) assert.equal(environment.PORT, port, name);
});
