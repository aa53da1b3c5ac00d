import {
  defineArguments,
  flag,
  integerOption,
  option,
  rejectOperands,
} from '../src/cli/support/arguments.js';
import { StartError } from '../src/lifecycle.js';
import type { BenchSettings, Pace } from './measurement/bench.js';
import type { Scenario } from './measurement/scenario.js';
import { scenarios } from './scenarios/all.js';

const toText = (text: string): string => text;
const maxCount = 1_000_000;

export const benchArguments = defineArguments({
  usage: 'npm run bench -- [options]',
  about: `Measures the throughput, latency, CPU time and memory of the service, and compares them with a bare HTTP server and
with other implementations in the same run. Takes about nine minutes.`,
  options: {
    full: flag('run all scenarios with more and longer rounds (about half an hour)'),
    only: option('NAME,NAME', 'run only these scenarios; see --list', toText),
    list: flag('list the scenarios'),
    rounds: integerOption(1, 1000, 'rounds per measurement (default: 5)'),
    seconds: integerOption(1, maxCount, 'seconds per round (default: 2 or 1; with --full: 4 or 3)'),
    'warm-up': integerOption(
      1,
      maxCount,
      `seconds of load before the first measurement of a target (default: 10; repeated up to three times
until the target has served 100,000 answers, because V8 still compiles before)`,
    ),
    connections: integerOption(1, maxCount, 'connections of the load generator (default: 64)'),
    json: option('FILE', 'file for the results (default: bench-results/DATE.json)', toText),
    report: option('FILE', 'write an HTML report', toText),
    profile:
      flag(`write CPU profiles of the Node threads, and counters of Redis and ClickHouse, for single answers,
batches of 1000 and three other implementations, to bench-results/ (two minutes)`),
  },
  examples: [
    'npm run bench -- --report bench.html',
    'npm run bench -- --only single,batches',
    'npm run bench -- --micro forecast',
  ],
  notes: `Other modes; --micro, --next-items and --movers must be the first argument:
  --url URL                       load a running deployment, find its capacity, check objectives (--url URL --help)
  --micro [FILTER]                time single steps of the models and codecs in one thread; FILTER is a regular expression
  --next-items [N] [WORLD,WORLD]  simulate how many answers N learners per school (default: 8) need to master 40 skills
                                  with next-items and with other item orders (20 minutes for all worlds)
  --movers [SEEDS] [--json]       simulate learners who improve, decline or stay the same, and print their scores,
                                  mastery, forecasts and advice, to compare two versions of the models (half a minute)

Prefer ratios to the other targets of the run: absolute times depend on the machine. In an open loop, requests are sent
at fixed times, and latency counts from the scheduled time, so it includes time in a queue.
After each scenario, the command checks that Redis and ClickHouse contain every acknowledged answer exactly once.

Exit codes: 0 success, 1 a failed request or a missing or duplicate answer. A missed goal does not change the exit code.`,
  read: (values, given) => {
    const { full, only, rounds, seconds, ...others } = rejectOperands(values, given);
    const pace = (usual: Pace): Pace => ({
      rounds: rounds ?? usual.rounds,
      seconds: seconds ?? usual.seconds,
    });
    return {
      ...others,
      full,
      connections: others.connections ?? 64,
      main: pace({ rounds: 5, seconds: full ? 4 : 2 }),
      side: pace({ rounds: 5, seconds: full ? 3 : 1 }),
      warmUp: others['warm-up'] ?? 10,
      scenarios: selectScenarios(only, full),
    } satisfies BenchSettings & Record<string, unknown>;
  },
});

export type BenchArguments = NonNullable<ReturnType<typeof benchArguments.read>>;

function selectScenarios(only: string | null, full: boolean): readonly Scenario[] {
  if (only === null) return scenarios.filter(({ isLong }) => full || !isLong);
  return only.split(',').map((name) => {
    const found = scenarios.find((scenario) => scenario.name === name.trim());
    if (found === undefined)
      throw new StartError(`--only ${JSON.stringify(name)} must be one of ${listNames()}`);
    return found;
  });
}

const listNames = (): string => scenarios.map(({ name }) => name).join(', ');

export const formatScenarios = (): string =>
  scenarios
    .map(({ name, about, isLong }) => `${name.padEnd(14)}${about}${isLong ? ' (--full)' : ''}\n`)
    .join('');
