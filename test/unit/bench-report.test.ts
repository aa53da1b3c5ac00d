/** Tables, comparisons and the page of `npm run bench`. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { formatComparison } from '../../bench/report/compare.js';
import { writeReport } from '../../bench/report/page.js';
import { computeRatio } from '../../bench/report/section.js';
import { formatTables } from '../../bench/report/table.js';
import { readResults } from '../../bench/results/results.js';
import { benchResults, figure, service, single, spread } from '../support/builders/bench-results.js';
import { assertSelfContained } from '../support/commands/log-commands.js';
import { tempDir } from '../support/temp.js';

/** The first line after `heading` that begins with the name. */
function findLine(text: string, name: string, heading = ''): string {
  const lines = text.slice(text.indexOf(heading)).split('\n');
  return lines.find((line) => line.trimStart().startsWith(name)) ?? assert.fail(`no line ${name} in ${text}`);
}

const goals = (lag: number, rate: number, rounds = 5, noise = 0.02) =>
  benchResults({
    figures: [
      figure('lag', spread(lag, noise, rounds), { atMost: 5 }, 's'),
      figure('rate', spread(rate, noise, rounds), { atLeast: 1 }),
      figure('shown', spread(rate, noise, rounds), null),
    ],
  });

test('formatComparison rates a change by its goal, unless spreads overlap, are close, or have few rounds', () => {
  const text = formatComparison(goals(2, 10), goals(1.8, 9));
  assert.match(findLine(text, 'lag'), /2 \[1\.96, 2\.04\] +1\.8 \[1\.76, 1\.84\] +0\.9 +better$/);
  assert.match(findLine(text, 'rate'), /0\.9 +worse$/);
  assert.match(findLine(text, 'shown'), /0\.9 +less$/);
  assert.match(text, /With 5 and 5 rounds, chance alone separates the spreads of about 1 in 126 rows\./);
  const overlapping = formatComparison(goals(2, 10), goals(2.06, 10));
  assert.match(findLine(overlapping, 'lag'), /1\.03 +within noise$/);
  assert.match(findLine(overlapping, 'rate'), /1 +within noise$/);
  const narrow = goals(2, 10, 5, 0.001);
  const close = formatComparison(narrow, goals(2.04, 10, 5, 0.001));
  assert.match(findLine(close, 'lag'), /within noise$/);
  assert.match(findLine(formatComparison(narrow, goals(2.08, 10, 5, 0.001)), 'lag'), /worse$/);
  const few = formatComparison({ ...goals(2, 10, 2), scenarios: [] }, goals(1, 10));
  assert.match(findLine(few, 'lag'), /0\.5 +too few rounds$/);
  assert.doesNotMatch(few, /chance alone/);
});

test('formatComparison compares ratios to the echo between machines, and warns of the other machine', () => {
  const slow = { ...benchResults().machine, processor: 'Slow processor' };
  const now = benchResults({ machine: slow, form: 'full', scenarios: [single(service(2), 2)] });
  const text = formatComparison(benchResults({ scenarios: [single(service())] }), now);
  const ratios = 'Ratios to the echo';
  assert.match(findLine(text, 'single: skilltrace, CPU ', ratios), /3 \[.* +1 +within noise$/);
  assert.match(findLine(text, 'single: skilltrace, answers/s ', ratios), /within noise$/);
  assert.match(findLine(text, 'single: skilltrace, CPU µs/answer ', 'Absolute values'), /2 +worse$/);
  assert.ok(text.indexOf('Goals') < text.indexOf(ratios));
  assert.ok(text.indexOf(ratios) < text.indexOf('Absolute values'));
  assert.match(text, /Warning: different machines \(processor Test processor, now Slow processor\)/);
  assert.match(text, /Warning: different forms \(short before, full now\)/);
  assert.doesNotMatch(formatComparison(now, now), /Warning/);
});

test('computeRatio returns the spread of two independent values, and null for a ratio to 0', () => {
  const ratio = computeRatio(spread(30, 0.03), { ...spread(10, 0.04), rounds: 3 });
  assert.ok(ratio !== null);
  const rounded = [ratio.median, ratio.low, ratio.high].map((value) => Number(value.toFixed(6)));
  assert.deepEqual([...rounded, ratio.rounds], [3, 2.85, 3.15, 3]);
  assert.equal(computeRatio(spread(1), spread(0)), null);
});

test('formatTables shows each measurement, lost or repeated answers, and which goals were reached', () => {
  const text = formatTables(benchResults());
  assert.match(findLine(text, 'CPU to the echo'), /2\.9 \[.*\] times +≤ 3\.5 +3 +aim reached$/);
  assert.match(findLine(text, 'CPU to Fastify'), / ≤ 1\.2 +1 +reached$/);
  assert.match(findLine(text, 'throughput to Fastify'), /1\.5 \[.*\] times +≥ 1\.8 +MISSED$/);
  assert.match(findLine(text, 'saturation'), /answers\/s$/);
  const unmeasured =
    /\n2 of 3 goals reached\nNot measured in this run: CPU per single answer, relative to echo; /;
  assert.match(text, unmeasured);
  assert.match(text, /echo before, .*: 10, 12, 11 µs of CPU \(range 18\.2 % of the median\)/);
  const name = 'single, skilltrace ';
  assert.match(findLine(text, name, 'Throughput'), /answer +24,000 \[.*\] +0\.4 +30 \[.*\] +3 +18 \[/);
  // Front end, workers, rest, Redis, pipeline, ClickHouse; other targets have one `server`.
  assert.match(findLine(text, name, 'CPU time'), / 14 +– +9 +0\.5 +6\.5 +8 +10 +48 +47\.5$/);
  assert.match(findLine(text, name, 'Memory'), / server 80$/);
  const correct = / 5,000 +3 +5,001 +5,001 +5,001 +complete, no duplicates$/;
  assert.match(findLine(text, name, 'Correctness'), correct);
  const lost = { acknowledged: 10, unanswered: 0, inRedis: 9, inClickHouse: 10, distinctInClickHouse: 8 };
  const wrong = formatTables(benchResults({ scenarios: [single(service(1, lost))] }));
  const problems =
    /FAILED: 1 acknowledged answers missing in Redis; 1 answers of Redis missing in ClickHouse; 2 duplicate rows/;
  assert.match(wrong, problems);
});

test('writeReport writes a page without network that has a plot per measurement and escapes texts', async (t) => {
  const file = join(await tempDir(t), 'page.html');
  const [scenario, ...others] = benchResults().scenarios;
  assert.ok(scenario !== undefined);
  const hostile = { ...scenario, about: '<script>alert(1)</script>' };
  writeReport(benchResults({ scenarios: [hostile, ...others] }), file);
  const html = readFileSync(file, 'utf8');
  // Goals; percentiles and offered load; throughput; CPU by target; two for each of two growing numbers.
  assertSelfContained(html, 1 + 2 + 1 + 1 + 4);
  for (const plot of html.match(/<svg [^>]*viewBox="0 0 520[^>]*>/g) ?? [])
    for (const attribute of [/ role="img"/, / aria-label="[^"]+"/, / aria-description="[^"]+"/])
      assert.match(plot, attribute);
  for (const text of ['Test processor', 'abcdef123456+', 'Open loop', 'p99 by offered load'])
    assert.ok(html.includes(text), text);

  const alone = { ...service(), latencies: [], throughput: null };
  writeReport(benchResults({ scenarios: [{ ...scenario, measurements: [alone] }], figures: [] }), file);
  const small = readFileSync(file, 'utf8');
  assert.doesNotMatch(small, /<figure>|NaN|undefined/);
  assert.match(small, /complete, no duplicates/);
});

test('readResults returns written results, and names the fault of other files', async (t) => {
  const dir = await tempDir(t);
  const readContent = (content: string) => {
    const file = join(dir, 'results.json');
    writeFileSync(file, content);
    return readResults(file);
  };
  assert.deepEqual(readContent(JSON.stringify(benchResults())), benchResults());
  const format2 = JSON.stringify({ ...benchResults(), format: 2 });
  const incomplete = JSON.stringify({ ...benchResults(), figures: [{ name: 'x' }] });
  assert.throws(() => readContent(format2), /Cannot read the benchmark results .*results\.json: .*format/);
  assert.throws(() => readContent(incomplete), /figures\/0\/value is required/);
  assert.throws(() => readContent('{"format":'), /Cannot read the benchmark results .*results\.json: .*JSON/);
  const missing = join(dir, 'missing.json');
  assert.throws(() => readResults(missing), /Cannot read the benchmark results .*missing\.json: ENOENT/);
});
