import { aligned } from '../../src/lab/report/numbers.js';
import type { BenchResults, Figure, Measurement, ScenarioResult, Spread } from '../results.js';
import {
  acceptingCpu,
  againstBaseline,
  laterCpu,
  ratioOf,
  runText,
  scenarioTitle,
  shown,
  spreadText,
} from './view.js';

interface Entry {
  readonly name: string;
  readonly better: Better;
  readonly value: Spread;
}

/** Ratios to the echo come first: they do not depend on the machine's speed. */
export function comparison(old: BenchResults, now: BenchResults): string {
  const blocks = [
    `Before: ${runText(old)}\nNow:    ${runText(now)}`,
    ...warningsOf(old, now).map((warning) => `Careful: ${warning}`),
    block('Goals', figureEntries(old), figureEntries(now)),
    block('Against the echo of the same run', ratioEntries(old), ratioEntries(now)),
    block('As measured', plainEntries(old), plainEntries(now)),
    chanceText(roundsOf(old), roundsOf(now)),
  ];
  return `${blocks.filter((text) => text !== '').join('\n\n')}\n`;
}

function warningsOf(old: BenchResults, now: BenchResults): string[] {
  const machine = differences({ ...old.machine }, { ...now.machine });
  const { skilltrace: _before, ...oldTools } = old.versions;
  const { skilltrace: _now, ...tools } = now.versions;
  const versions = differences(oldTools, tools);
  return [
    ...(machine === '' ? [] : [`another machine (${machine}): only ratios can be compared`]),
    ...(old.form === now.form ? [] : [`a ${old.form} run before, a ${now.form} one now: other loads`]),
    ...(versions === '' ? [] : [`other versions (${versions})`]),
  ];
}

type Named = Readonly<Record<string, string | number>>;

const differences = (old: Named, now: Named): string =>
  [...new Set([...Object.keys(old), ...Object.keys(now)])]
    .filter((name) => old[name] !== now[name])
    .map((name) => `${name} ${old[name] ?? 'none'}, now ${now[name] ?? 'none'}`)
    .join('; ');

const figureEntries = ({ figures }: BenchResults): Entry[] =>
  figures.map((figure) => ({ name: figure.name, better: directionOf(figure), value: figure.value }));

const directionOf = ({ goal }: Figure): Better =>
  goal === null ? 'neither' : 'atMost' in goal ? 'less' : 'more';

const entriesOf = (
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
          : [{ name: `${scenarioTitle(scenario)}: ${measurement.target}, ${name}`, better, value }],
      ),
    ),
  );

const ratioEntries = (results: BenchResults): Entry[] =>
  entriesOf(results, (scenario, measurement) => {
    const { cpu, throughput } = againstBaseline(scenario, measurement);
    return [
      ['CPU', 'less', cpu],
      [`${scenario.unit}s/s`, 'more', throughput],
    ];
  });

const plainEntries = (results: BenchResults): Entry[] =>
  entriesOf(results, ({ unit }, measurement) => [
    [`CPU µs/${unit}`, 'less', acceptingCpu(measurement)],
    [`CPU µs/${unit} later`, 'less', laterCpu(measurement)],
    [`${unit}s/s`, 'more', measurement.throughput],
    ['rows/s', 'more', measurement.pipeline?.rowsPerSecond ?? null],
    ['lag, s', 'less', measurement.pipeline?.lag ?? null],
  ]);

function block(title: string, old: readonly Entry[], now: readonly Entry[]): string {
  const before = new Map(old.map((entry) => [entry.name, entry]));
  const after = new Set(now.map(({ name }) => name));
  const rows = [
    ...now.map((entry) => changeRow(entry, before.get(entry.name))),
    ...old
      .filter(({ name }) => !after.has(name))
      .map(({ name, value }) => [name, spreadText(value), '', '', 'gone']),
  ];
  if (rows.length === 0) return '';
  return `${title}\n${aligned([['', 'before', 'now', 'now/before', ''], ...rows])}`;
}

function changeRow({ name, better, value }: Entry, old: Entry | undefined): string[] {
  if (old === undefined) return [name, '', spreadText(value), '', 'new'];
  const ratio = ratioOf(value, old.value);
  return [
    name,
    spreadText(old.value),
    spreadText(value),
    ratio === null ? '' : shown(ratio.median),
    verdictOf(old.value, value, better),
  ];
}

const roundsOf = (results: BenchResults): number[] =>
  [...figureEntries(results), ...plainEntries(results)].map(({ value }) => value.rounds);

/** Runs of the same program differ by this much. */
const leastChange = 0.03;

/** Fewer rounds give no usable spread. */
const leastRounds = 3;

type Better = 'less' | 'more' | 'neither';

function verdictOf(old: Spread, now: Spread, better: Better): string {
  if (Math.min(old.rounds, now.rounds) < leastRounds) return 'too few rounds to tell';
  const apart = now.low > old.high || now.high < old.low;
  const change = Math.abs(now.median - old.median);
  if (!apart || change < leastChange * old.median) return 'no difference beyond noise';
  const direction = now.median < old.median ? 'less' : 'more';
  if (better === 'neither') return direction;
  return direction === better ? 'better' : 'worse';
}

/** Chance alone separates two runs in 2 of all orders of their rounds. */
function chanceText(old: readonly number[], now: readonly number[]): string {
  const fewest = (rounds: readonly number[]): number =>
    Math.min(...rounds.filter((count) => count >= leastRounds));
  const [before, after] = [fewest(old), fewest(now)];
  if (!Number.isFinite(before + after)) return '';
  const arrangements = choose(before + after, before);
  return `Spreads of ${before} and ${after} rounds part by chance alone in about one row of ${shown(arrangements / 2)}.`;
}

const choose = (n: number, k: number): number =>
  Array.from({ length: k }, (_, i) => (n - i) / (k - i)).reduce((product, factor) => product * factor, 1);
