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
import { readResults } from './results/results.js';
import { scenarios } from './scenarios/all.js';

const toText = (text: string): string => text;
const maxCount = 1_000_000;

export const benchArguments = defineArguments({
  usage: 'npm run bench -- [options]',
  about: `Measures the service beside a bare uWebSockets.js server (the ceiling) and beside what one would write instead, in
the same run and in turns. Ratios come first: absolute times are the machine's. After each scenario every answer that
was acknowledged is looked for in Redis and, when the pipeline is through, in ClickHouse; the run fails if one is
missing.`,
  options: {
    full: flag(
      'everything: growth, sittings, cores, sustained load, overload, curves\n(about forty minutes)',
    ),
    only: option('NAME,NAME', 'these scenarios; --list names them', toText),
    list: flag('names the scenarios'),
    rounds: integerOption(1, maxCount, 'rounds of each measurement (5, of what is only looked at 2)'),
    seconds: integerOption(1, maxCount, 'length of a round (2, of minor ones 1; with --full 4, 3 and 3)'),
    'warm-up': integerOption(
      1,
      maxCount,
      `seconds of load before a target's first measurement (10; up to three times as many until it has
had 100,000 answers: until then V8 compiles, which costs an answer a tenth and more). Of the short
form it takes four of eight minutes`,
    ),
    connections: integerOption(1, maxCount, 'connections (64)'),
    json: option('FILE', 'results (bench-results/DATE.json)', toText),
    report: option('FILE', 'HTML page', toText),
    compare: option('OLD.json', 'changes since an earlier run, with noise in mind', readResults),
    profile:
      flag(`instead: flame graphs of Node's threads, commands of Redis, sums of ClickHouse, for single answers,
batches of 1000 and three peers, in a folder of bench-results/ (two minutes)`),
  },
  notes: `  --micro [FILTER]  instead, as the first argument: single steps of the models and records, in one thread
  --next-items [N] [WORLD,WORLD]
                    instead, as the first argument: answers that simulated learners, N of each school (8), need to
                    master 40 skills with POST next-items and with other orders (20 min for all worlds)
  --movers [SEEDS] [--json]
                    instead, as the first argument: scores, mastery, forecasts and advice of simulated learners who
                    improve, decline or stay the same, to compare two versions of the models (half a minute)

In an open loop requests are due at fixed times whatever comes back, and latency counts from the time at which they
were due: a request that had to wait is not hidden.`,
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
      glance: pace(full ? { rounds: 5, seconds: 3 } : { rounds: 2, seconds: 1 }),
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
    if (found === undefined) throw new StartError(`--only: ${name} is none of ${listNames()}`);
    return found;
  });
}

const listNames = (): string => scenarios.map(({ name }) => name).join(', ');

export const formatScenarios = (): string =>
  scenarios
    .map(({ name, about, isLong }) => `${name.padEnd(14)}${about}${isLong ? ' (--full)' : ''}\n`)
    .join('');
