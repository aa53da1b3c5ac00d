/** Grafana and Prometheus as docker-compose.yml provisions them: no name may refer to something that does not exist. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { panelsOf, readDashboards } from '../support/inspect/dashboards.js';
import { root } from '../support/runner/root.js';

const parseYaml = (name: string) => parse(readFileSync(join(root, name), 'utf8'), { merge: true });
const { datasources } = parseYaml('docs/compose/grafana/datasources.yml');
const { services } = parseYaml('docker-compose.yml');
const dashboards = readDashboards();

test('Grafana has the dashboards Learning and Operations, which link to each other', () => {
  assert.deepEqual(
    dashboards.map(({ uid, title }) => [uid, title]),
    [
      ['skilltrace-learning', 'Learning'],
      ['skilltrace-operations', 'Operations'],
    ],
  );
  for (const { tags, links } of dashboards) assert.deepEqual(links[0]?.tags, tags);
});

test('Panels of a dashboard have unique ids and do not overlap', () => {
  for (const { title, panels } of dashboards) {
    assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length, title);
    const covered = panels.flatMap(({ gridPos: { x, y, w, h } }) => {
      assert.ok(x + w <= 24, `${title}: wider than the page`);
      return Array.from({ length: w * h }, (_, i) => `${x + (i % w)},${y + Math.floor(i / w)}`);
    });
    assert.equal(new Set(covered).size, covered.length, title);
  }
});

test('Every query of a dashboard names a provisioned data source and existing variables', () => {
  const sources = (datasources as { uid: string; type: string }[]).map(({ type, uid }) => `${type} ${uid}`);
  for (const dashboard of dashboards) {
    const { title, templating, ...rest } = dashboard;
    const marks = dashboard.annotations.list.map(({ target }) => target);
    for (const { datasource } of [...marks, ...panelsOf(dashboard).flatMap(({ targets }) => targets)])
      assert.ok(sources.includes(`${datasource.type} ${datasource.uid}`), `${title}: ${datasource.uid}`);
    for (const { title: name, datasource, targets } of panelsOf(dashboard)) {
      assert.equal(new Set(targets.map(({ refId }) => refId)).size, targets.length, name);
      for (const target of targets) assert.deepEqual(target.datasource, datasource, name);
    }
    const used = [...JSON.stringify(rest).matchAll(/\$\{(\w+)(?::\w+)?\}/g)].map(([, name = '']) => name);
    const own = [...new Set(used)].filter((name) => !name.startsWith('__')).sort();
    assert.deepEqual(own, templating.list.map(({ name }) => name).sort(), title);
  }
});

test('Grafana reads ClickHouse and Prometheus of docker-compose.yml, ClickHouse as the analyst', () => {
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

test('Prometheus scrapes each container with /metrics at its port and at the interval that Grafana assumes', () => {
  const { global, scrape_configs } = parseYaml('docs/compose/prometheus.yml');
  assert.equal(datasources[1].jsonData.timeInterval, global.scrape_interval);
  const [{ names, type, port }] = scrape_configs[0].dns_sd_configs;
  // Services with a profile run a command and end.
  const built = Object.entries<{ build?: string; profiles?: string[]; environment: { PORT: number } }>(
    services,
  ).filter(([, { build, profiles }]) => build !== undefined && profiles === undefined);
  assert.deepEqual([names, type], [built.map(([name]) => name), 'A']);
  for (const [name, { environment }] of built) assert.equal(environment.PORT, port, name);
});
