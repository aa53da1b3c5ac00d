import { formatTable } from '../../src/lab/report/format.js';
import type { BenchResults, Figure, Measurement, ScenarioResult, Spread } from '../results/results.js';
import {
  compareWithBaseline,
  computeRatio,
  formatFigure,
  formatRun,
  formatScenarioTitle,
  formatSpread,
  sumAcceptingCpu,
  sumLaterCpu,
} from './section.js';

interface Entry {
  readonly name: string;
  readonly better: Better;
  readonly value: Spread;
}

/** Ratios to the echo come first: they do not depend on the machine's speed. */
export function formatComparison(old: BenchResults, now: BenchResults): string {
  const blocks = [
    `Before: ${formatRun(old)}\nNow:    ${formatRun(now)}`,
    ...findWarnings(old, now).map((warning) => `Warning: ${warning}`),
    formatBlock('Goals', listFigureEntries(old), listFigureEntries(now)),
    formatBlock('Ratios to the echo of the same run', listRatioEntries(old), listRatioEntries(now)),
    formatBlock('Absolute values', listPlainEntries(old), listPlainEntries(now)),
    formatChance(listRounds(old), listRounds(now)),
  ];
  return `${blocks.filter((text) => text !== '').join('\n\n')}\n`;
}

function findWarnings(old: BenchResults, now: BenchResults): string[] {
  const machine = formatDifferences({ ...old.machine }, { ...now.machine });
  const { skilltrace: _before, ...oldTools } = old.versions;
  const { skilltrace: _now, ...tools } = now.versions;
  const versions = formatDifferences(oldTools, tools);
  return [
    ...(machine === '' ? [] : [`different machines (${machine}); compare only ratios`]),
    ...(old.form === now.form
      ? []
      : [`different forms (${old.form} before, ${now.form} now); their loads differ`]),
    ...(versions === '' ? [] : [`different versions (${versions})`]),
  ];
}

type NamedValues = Readonly<Record<string, string | number>>;

const formatDifferences = (old: NamedValues, now: NamedValues): string =>
  [...new Set([...Object.keys(old), ...Object.keys(now)])]
    .filter((name) => old[name] !== now[name])
    .map((name) => `${name} ${old[name] ?? 'none'}, now ${now[name] ?? 'none'}`)
    .join('; ');

const listFigureEntries = ({ figures }: BenchResults): Entry[] =>
  figures.map((figure) => ({ name: figure.name, better: findDirection(figure), value: figure.value }));

const findDirection = ({ goal }: Figure): Better =>
  goal === null ? 'neither' : 'atMost' in goal ? 'less' : 'more';

const collectEntries = (
  { scenarios }: BenchResults,
  of: (
    scenario: ScenarioResult,
    measurement: Measurement,
  ) => readonly (readonly [name: string, better: Better, value: Spread | null])[],
): Entry[] =>
  scenarios.flatMap((scenario) =>
    scenario.measurements.flatMap((measurement) =>
      of(scenario, measurement).flatMap(([name, better, value]) =>
        value === null
          ? []
          : [{ name: `${formatScenarioTitle(scenario)}: ${measurement.target}, ${name}`, better, value }],
      ),
    ),
  );

const listRatioEntries = (results: BenchResults): Entry[] =>
  collectEntries(results, (scenario, measurement) => {
    const { cpu, throughput } = compareWithBaseline(scenario, measurement);
    return [
      ['CPU', 'less', cpu],
      [`${scenario.unit}s/s`, 'more', throughput],
    ];
  });

const listPlainEntries = (results: BenchResults): Entry[] =>
  collectEntries(results, ({ unit }, measurement) => [
    [`CPU µs/${unit}`, 'less', sumAcceptingCpu(measurement)],
    [`CPU µs/${unit} later`, 'less', sumLaterCpu(measurement)],
    [`${unit}s/s`, 'more', measurement.throughput],
    ['rows/s', 'more', measurement.pipeline?.rowsPerSecond ?? null],
    ['lag, s', 'less', measurement.pipeline?.lag ?? null],
  ]);

function formatBlock(title: string, old: readonly Entry[], now: readonly Entry[]): string {
  const before = new Map(old.map((entry) => [entry.name, entry]));
  const after = new Set(now.map(({ name }) => name));
  const rows = [
    ...now.map((entry) => buildChangeRow(entry, before.get(entry.name))),
    ...old
      .filter(({ name }) => !after.has(name))
      .map(({ name, value }) => [name, formatSpread(value), '', '', 'removed']),
  ];
  if (rows.length === 0) return '';
  return `${title}\n${formatTable([['', 'before', 'now', 'now/before', ''], ...rows])}`;
}

function buildChangeRow({ name, better, value }: Entry, old: Entry | undefined): string[] {
  if (old === undefined) return [name, '', formatSpread(value), '', 'new'];
  const ratio = computeRatio(value, old.value);
  return [
    name,
    formatSpread(old.value),
    formatSpread(value),
    ratio === null ? '' : formatFigure(ratio.median),
    judgeChange(old.value, value, better),
  ];
}

const listRounds = (results: BenchResults): number[] =>
  [...listFigureEntries(results), ...listPlainEntries(results)].map(({ value }) => value.rounds);

/** Runs of the same program differ by this much. */
const minChange = 0.03;

/** Fewer rounds give no usable spread. */
const minRounds = 3;

type Better = 'less' | 'more' | 'neither';

function judgeChange(old: Spread, now: Spread, better: Better): string {
  if (Math.min(old.rounds, now.rounds) < minRounds) return 'too few rounds';
  const areSeparate = now.low > old.high || now.high < old.low;
  const change = Math.abs(now.median - old.median);
  if (!areSeparate || change < minChange * old.median) return 'within noise';
  const direction = now.median < old.median ? 'less' : 'more';
  if (better === 'neither') return direction;
  return direction === better ? 'better' : 'worse';
}

/** Chance alone separates two runs in 2 of all orders of their rounds. */
function formatChance(old: readonly number[], now: readonly number[]): string {
  const fewest = (rounds: readonly number[]): number =>
    Math.min(...rounds.filter((count) => count >= minRounds));
  const [before, after] = [fewest(old), fewest(now)];
  if (!Number.isFinite(before + after)) return '';
  const arrangements = countCombinations(before + after, before);
  return `With ${before} and ${after} rounds, chance alone separates the spreads of about 1 in ${formatFigure(arrangements / 2)} rows.`;
}

const countCombinations = (n: number, k: number): number =>
  Array.from({ length: k }, (_, i) => (n - i) / (k - i)).reduce((product, factor) => product * factor, 1);
