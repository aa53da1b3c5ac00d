/** Statistics, tables and the page of `npm run bench`. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { writeReport } from '../../bench/report/page.js';
import { formatRatio } from '../../bench/report/section.js';
import { formatTables } from '../../bench/report/table.js';
import { computeRatioSpread, computeSpread, computeSumSpread } from '../../bench/results/spread.js';
import { indices } from '../../src/lists.js';
import { benchResults, peers, service, single, spread } from '../support/builders/bench-results.js';
import { assertSelfContained } from '../support/commands/log-commands.js';
import { tempDir } from '../support/temp.js';

/** The first line after `heading` that begins with the name. */
function findLine(text: string, name: string, heading = ''): string {
  const lines = text.slice(text.indexOf(heading)).split('\n');
  return lines.find((line) => line.trimStart().startsWith(name)) ?? assert.fail(`no line ${name} in ${text}`);
}

test('computeSpread returns the median and the narrowest interval that covers it with at least 90 %', () => {
  const values = [5, 1, 3];
  assert.deepEqual(computeSpread(values), { median: 3, low: 1, high: 5, values });
  assert.deepEqual(computeSpread([4, 1]), { median: 2.5, low: 1, high: 4, values: [4, 1] });
  // Conover, Practical Nonparametric Statistics, table A3: P(Binomial(n, 1/2) < k).
  const orders = { 1: 1, 4: 1, 5: 1, 7: 1, 8: 2, 10: 2, 11: 3, 13: 4, 16: 5, 20: 6, 1000: 474 };
  for (const [rounds, order] of Object.entries(orders)) {
    const { low, high } = computeSpread(indices(Number(rounds)));
    assert.deepEqual([low, high], [order - 1, Number(rounds) - order], `${rounds} rounds`);
  }
});

test('computeRatioSpread and computeSumSpread compute round by round', () => {
  // The machine was half as fast in the second round.
  const { median, low, high, values } = computeRatioSpread([6, 12], [3, 6]);
  assert.deepEqual([median, low, high, values], [2, 2, 2, [2, 2]]);
  assert.deepEqual(computeSumSpread([computeSpread([1, 5]), computeSpread([4, 0])]).values, [5, 5]);
});

test('formatRatio reports a difference only if the interval excludes 1 and there are five rounds', () => {
  assert.equal(formatRatio(spread(0.62, 0.05)), '0.62 times [0.589, 0.651]');
  assert.equal(formatRatio(spread(1.03, 0.05)), 'no difference [0.978, 1.08]');
  assert.equal(formatRatio(computeSpread([1, 2, 3, 4, 5])), 'no difference [1, 5]');
  assert.equal(formatRatio(spread(4, 0.05, 4)), 'too few rounds [3.8, 4.2]');
});

test('formatTables shows each measurement, lost or repeated answers, and which goals were reached', () => {
  const text = formatTables(benchResults());
  assert.match(findLine(text, 'CPU to the echo'), /2\.9 times \[.*\] +≤ 3\.5 +reached$/);
  assert.match(findLine(text, 'CPU to Fastify'), / ≤ 1\.2 +reached$/);
  assert.match(findLine(text, 'throughput to Fastify'), /1\.5 times \[.*\] +≥ 1\.8 +MISSED$/);
  assert.match(findLine(text, 'saturation'), /answers\/s$/);
  const unmeasured =
    /\n2 of 3 goals reached\nNot measured in this run: CPU per single answer, relative to echo; /;
  assert.match(text, unmeasured);
  assert.match(text, /echo before, .*: 10, 12, 11 µs of CPU \(range 18\.2 % of the median\)/);
  const name = 'single, skilltrace ';
  const costs =
    / 24,000 \[.*\] +2\.67 \[.*\] +13\.3 \[.*\] +30 \[.*\] +18 \[.*\] +48 \[.*\] +4\.8 times \[4\.8, 4\.8\]$/;
  assert.match(findLine(text, name, 'Loads'), costs);
  // Front end, workers, rest, Redis, pipeline, ClickHouse; other targets have one `server`.
  assert.match(findLine(text, name, 'CPU time'), / 14 +– +9 +0\.5 +6\.5 +– +8 +10$/);
  assert.match(findLine(text, name, 'Memory'), / server 80$/);
  assert.match(findLine(text, name, 'Correctness'), / 5,001 +5,001 +5,001 +5,001 +complete, no duplicates$/);
  const lost = { acknowledged: 10, inRedis: 9, inClickHouse: 10, distinctInClickHouse: 8 };
  const wrong = formatTables(benchResults({ scenarios: [single(service(1, lost))] }));
  const problems =
    /FAILED: 1 acknowledged answers missing in Redis; 1 answers of Redis missing in ClickHouse; 2 duplicate rows/;
  assert.match(wrong, problems);
});

test('formatTables compares the CPU time of all processes of each peer and load with the service', () => {
  const text = formatTables(benchResults());
  assert.match(findLine(text, 'fastify-postgres ', 'Peers'), / 192 \[.*\] +– +192 \[.*\] +4 times \[4, 4\]$/);
  assert.match(findLine(text, 'fastify-postgres, 1,000/s', 'Peers'), / 1,000 \[.*\] +2 times \[2, 2\]$/);
  assert.match(findLine(text, 'skilltrace ', 'Peers'), / 30 \[.*\] +18 \[.*\] +48 \[[^\]]*\]$/);
  assert.match(text, /“fastify-outbox” has the service’s guarantees/);
  assert.doesNotMatch(text, /PostgreSQL is not installed/);
  const other = peers('fastify');
  const measurements = other.measurements.map(({ cpu: { postgres: _, ...cpu }, ...one }) => ({
    ...one,
    cpu,
  }));
  const without = formatTables(benchResults({ scenarios: [{ ...other, measurements }] }));
  assert.match(without, /\nPostgreSQL is not installed\. .*apt install postgresql/);
});

test('writeReport writes a page without network that has a plot per measurement and escapes texts', async (t) => {
  const file = join(await tempDir(t), 'page.html');
  const [scenario, ...others] = benchResults().scenarios;
  assert.ok(scenario !== undefined);
  const hostile = { ...scenario, about: '<script>alert(1)</script>' };
  writeReport(benchResults({ scenarios: [hostile, ...others] }), file);
  const html = readFileSync(file, 'utf8');
  // Goals; CPU, and throughput or p99, for two loads of the peers; CPU and throughput of two scenarios.
  assertSelfContained(html, 1 + 4 + 4);
  for (const plot of html.match(/<svg [^>]*viewBox="0 0 520[^>]*>/g) ?? [])
    for (const attribute of [/ role="img"/, / aria-label="[^"]+"/, / aria-description="[^"]+"/])
      assert.match(plot, attribute);
  for (const text of ['Test processor', 'abcdef123456+', 'closed loop', '1,000 per second: p99'])
    assert.ok(html.includes(text), text);

  const alone = { ...service(), latency: null, throughput: null };
  writeReport(benchResults({ scenarios: [{ ...scenario, measurements: [alone] }], figures: [] }), file);
  const small = readFileSync(file, 'utf8');
  assert.doesNotMatch(small, /<figure>|NaN|undefined/);
  assert.match(small, /complete, no duplicates/);
});
