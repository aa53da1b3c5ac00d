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

/** The line of a text that begins with the name, and nothing before it but spaces. */
function lineOf(text: string, name: string, after = ''): string {
  const line = text
    .slice(text.indexOf(after))
    .split('\n')
    .find((one) => one.trimStart().startsWith(name));
  assert.ok(line !== undefined, `no line ${name} in ${text}`);
  return line;
}

const figures = (lag: number, rate: number, rounds = 5) => ({
  figures: [
    figure('lag', spread(lag, 0.02, rounds), { atMost: 5 }, 's'),
    figure('rate', spread(rate, 0.02, rounds), { atLeast: 1 }),
    figure('shown', spread(rate, 0.02, rounds), null),
  ],
});

test('a comparison tells better from worse by the goal, and neither where spreads overlap', () => {
  const old = benchResults(figures(2, 10));
  const less = formatComparison(old, benchResults(figures(1.8, 9)));
  assert.match(lineOf(less, 'lag'), /2 \[1\.96, 2\.04\] +1\.8 \[1\.76, 1\.84\] +0\.9 +better$/);
  assert.match(lineOf(less, 'rate'), /0\.9 +worse$/);
  assert.match(lineOf(less, 'shown'), /0\.9 +less$/);
  const close = formatComparison(old, benchResults(figures(2.06, 10)));
  assert.match(lineOf(close, 'lag'), /1\.03 +no difference beyond noise$/);
  assert.match(lineOf(close, 'rate'), /1 +no difference beyond noise$/);
  assert.match(close, /Spreads of 5 and 5 rounds part by chance alone in about one row of 126\./);
});

test('spreads that part by less than runs differ, and those of few rounds, tell nothing', () => {
  const narrow = (lag: number) =>
    benchResults({ figures: [figure('lag', spread(lag, 0.001), { atMost: 5 })] });
  assert.match(lineOf(formatComparison(narrow(2), narrow(2.04)), 'lag'), /no difference beyond noise$/);
  assert.match(lineOf(formatComparison(narrow(2), narrow(2.08)), 'lag'), /worse$/);
  const few = formatComparison(
    benchResults({ ...figures(2, 10, 2), scenarios: [] }),
    benchResults(figures(1, 10, 5)),
  );
  assert.match(lineOf(few, 'lag'), /0\.5 +too few rounds to tell$/);
  assert.doesNotMatch(few, /by chance alone/);
});

test('on a machine of half the pace ratios to the echo stay, and stand before what was measured', () => {
  const slow = { ...benchResults().machine, processor: 'Slow processor' };
  const now = benchResults({ machine: slow, form: 'full', scenarios: [single(service(2), 2)] });
  const text = formatComparison(benchResults({ scenarios: [single(service())] }), now);
  const ratios = 'Against the echo';
  assert.match(lineOf(text, 'single: skilltrace, CPU ', ratios), /3 \[.* +1 +no difference beyond noise$/);
  assert.match(lineOf(text, 'single: skilltrace, answers/s ', ratios), /no difference beyond noise$/);
  assert.match(lineOf(text, 'single: skilltrace, CPU µs/answer ', 'As measured'), /2 +worse$/);
  assert.ok(
    text.indexOf('Goals') < text.indexOf(ratios) && text.indexOf(ratios) < text.indexOf('As measured'),
  );
  assert.match(text, /Careful: another machine \(processor Test processor, now Slow processor\)/);
  assert.match(text, /Careful: a short run before, a full one now/);
  assert.doesNotMatch(formatComparison(now, now), /Careful/);
});

test('what only one of two runs has is told as new or gone', () => {
  const text = formatComparison(benchResults({ scenarios: [] }), benchResults({ figures: [] }));
  assert.match(lineOf(text, 'CPU to the echo'), /gone$/);
  assert.match(lineOf(text, 'single: echo, answers/s'), /new$/);
});

test('the spread of a ratio is that of two independent values; there is none to 0', () => {
  const ratio = computeRatio({ ...spread(30, 0.03) }, { ...spread(10, 0.04), rounds: 3 });
  assert.ok(ratio !== null);
  const rounded = [ratio.median, ratio.low, ratio.high].map((value) => Number(value.toFixed(6)));
  assert.deepEqual([...rounded, ratio.rounds], [3, 2.85, 3.15, 3]);
  assert.equal(computeRatio(spread(1), spread(0)), null);
});

test('the table ends with the goals, tells which are reached, and what is wrong with the books', () => {
  const text = formatTables(benchResults());
  assert.match(lineOf(text, 'CPU to the echo'), /2\.9 \[.*\] times +≤ 3\.5 +3 +aim reached$/);
  assert.match(lineOf(text, 'CPU to Fastify'), / ≤ 1\.2 +1 +reached$/);
  assert.match(lineOf(text, 'throughput to Fastify'), /1\.5 \[.*\] times +≥ 1\.8 +MISSED$/);
  assert.match(lineOf(text, 'saturation'), /answers\/s$/);
  assert.match(
    text,
    /\n2 of 3 goals reached\nNot measured in this run: CPU of a single answer, to the echo; /,
  );
  assert.ok(text.indexOf('Goals') > text.indexOf('Correctness'));
  assert.match(text, /single: single answers\n/);
  assert.match(text, /bare echo, .*: 10, 12, 11 µs of CPU \(range 18\.2 % of the median\)/);
  const name = 'single, skilltrace ';
  assert.match(lineOf(text, name, 'Throughput'), /answer +24,000 \[.*\] +0\.4 +30 \[.*\] +3 +18 \[/);
  // Parts in their order: front end, workers, rest, redis, pipeline, clickhouse; the other targets have a `server`.
  assert.match(lineOf(text, name, 'CPU time'), / 14 +– +9 +0\.5 +6\.5 +8 +10 +48 +47\.5$/);
  assert.match(lineOf(text, name, 'Memory'), / server 80$/);
  assert.match(lineOf(text, name, 'Correctness'), / 5,000 +3 +5,001 +5,001 +5,001 +all there, once$/);
  const lost = { acknowledged: 10, unanswered: 0, inRedis: 9, inClickHouse: 10, distinctInClickHouse: 8 };
  const wrong = formatTables(benchResults({ scenarios: [single(service(1, lost))] }));
  assert.match(
    wrong,
    /WRONG: 1 acknowledged are not in Redis; 1 in Redis are not in ClickHouse; 2 rows twice/,
  );
});

test('the page has a plot for everything, needs no network and escapes what it tells', async (t) => {
  const file = join(await tempDir(t), 'page.html');
  const [scenario, ...others] = benchResults().scenarios;
  assert.ok(scenario !== undefined);
  const hostile = { ...scenario, about: '<script>alert(1)</script>' };
  writeReport(benchResults({ scenarios: [hostile, ...others] }), file);
  const html = readFileSync(file, 'utf8');
  // Goals; percentiles and offered load; throughput; CPU by target; two for each of two things that grow.
  assertSelfContained(html, 1 + 2 + 1 + 1 + 4);
  for (const plot of html.match(/<svg [^>]*viewBox="0 0 520[^>]*>/g) ?? []) {
    for (const attribute of [/ role="img"/, / aria-label="[^"]+"/, / aria-description="[^"]+"/]) {
      assert.match(plot, attribute);
    }
  }
  for (const told of ['Test processor', 'abcdef123456+', 'open loop', 'p99 against offered load']) {
    assert.ok(html.includes(told), told);
  }
});

test('a page of a run without latencies, growth and peers is made of what there is', async (t) => {
  const file = join(await tempDir(t), 'page.html');
  const alone = { ...service(), latencies: [], throughput: null };
  const scenario = { ...single(alone), measurements: [alone] };
  writeReport(benchResults({ scenarios: [scenario], figures: [] }), file);
  const html = readFileSync(file, 'utf8');
  assert.doesNotMatch(html, /<figure>|NaN|undefined/);
  assert.match(html, /all there, once/);
});

test('results are read as they were written; anything else is refused with what is wrong', async (t) => {
  const dir = await tempDir(t);
  const written = (content: string): string => {
    const file = join(dir, 'results.json');
    writeFileSync(file, content);
    return file;
  };
  assert.deepEqual(readResults(written(JSON.stringify(benchResults()))), benchResults());
  const format2 = JSON.stringify({ ...benchResults(), format: 2 });
  const holed = JSON.stringify({ ...benchResults(), figures: [{ name: 'x' }] });
  assert.throws(() => readResults(written(format2)), /results\.json cannot be compared with: .*format/);
  assert.throws(() => readResults(written(holed)), /figures\/0\/value is required/);
  assert.throws(() => readResults(written('{"format":')), /results\.json cannot be compared with: .*JSON/);
  assert.throws(
    () => readResults(join(dir, 'missing.json')),
    /missing\.json cannot be compared with: ENOENT/,
  );
});
