/** The command line of the benchmark. */
import { parseArguments, usageOf } from '../src/cli/arguments.js';
import { StartError } from '../src/lifecycle.js';
import type { Pace, Settings } from './bench.js';
import { wrkVersion } from './load/wrk.js';
import { readResults } from './report/read.js';
import type { BenchResults } from './results.js';
import type { Scenario } from './scenario.js';
import { scenarios } from './scenarios/all.js';

export interface Arguments extends Settings {
  readonly scenarios: readonly Scenario[];
  readonly useWrk: boolean;
  /** Where the results go; null: `bench-results/` with the date in the name. */
  readonly json: string | null;
  readonly report: string | null;
  readonly compare: BenchResults | null;
  readonly profile: boolean;
}

export const help = `Usage: npm run bench -- [options]

Measures the service beside a bare uWebSockets.js server (the ceiling) and beside what one would write instead, in
the same run and in turns. Ratios come first: absolute times are the machine's. After each scenario every answer that
was acknowledged is looked for in Redis and, when the pipeline is through, in ClickHouse; the run fails if one is
missing.

  --full              everything: growth, sittings, cores, sustained load, overload, curves
                      (about forty minutes)
  --only NAME,NAME    these scenarios; --list names them
  --rounds N          rounds of each measurement (5, of what is only looked at 2)
  --seconds N         length of a round (2, of minor ones 1; with --full 4, 3 and 3)
  --warm-up N         seconds of load before a target's first measurement (10; up to three times as many until it has
                      had 100,000 answers: until then V8 compiles, which costs an answer a tenth and more). Of the short
                      form it takes four of eight minutes
  --connections N     (64)
  --generator NAME    of closed loops with single answers: wrk where it is installed, or node
  --json FILE         results (bench-results/DATE.json)
  --report FILE       HTML page
  --compare OLD.json  changes since an earlier run, with noise in mind
  --profile           instead: flame graphs of Node's threads, commands of Redis, sums of ClickHouse, for single answers,
                      batches of 1000 and three peers, in a folder of bench-results/ (two minutes)
  --micro [FILTER]    single steps of the models and records instead, in one thread

In an open loop requests are due at fixed times whatever comes back, and latency counts from the time at which they
were due: a request that had to wait is not hidden.
`;

const usage = usageOf('npm run bench -- [options]');

const strings = [
  'only',
  'rounds',
  'seconds',
  'warm-up',
  'connections',
  'generator',
  'json',
  'report',
  'compare',
] as const;
const flags = ['help', 'list', 'full', 'profile'] as const;

/** @returns null where only help was asked for. @throws StartError */
export function readArguments(argv: readonly string[]): Arguments | null {
  const values = parse(argv);
  if (values.help) return null;
  const full = values.full === true;
  const pace = (usual: Pace): Pace => ({
    rounds: numberOf('rounds', values.rounds, usual.rounds),
    seconds: numberOf('seconds', values.seconds, usual.seconds),
  });
  return {
    full,
    connections: numberOf('connections', values.connections, 64),
    main: pace({ rounds: 5, seconds: full ? 4 : 2 }),
    side: pace({ rounds: 5, seconds: full ? 3 : 1 }),
    glance: pace(full ? { rounds: 5, seconds: 3 } : { rounds: 2, seconds: 1 }),
    warmUp: numberOf('warm-up', values['warm-up'], 10),
    scenarios: chosen(values.only, full),
    useWrk: wantsWrk(values.generator),
    json: values.json ?? null,
    report: values.report ?? null,
    profile: values.profile === true,
    compare: values.compare === undefined ? null : readOld(values.compare),
  };
}

type Values = Partial<Record<(typeof strings)[number], string> & Record<(typeof flags)[number], boolean>>;

function parse(argv: readonly string[]): Values {
  const options = {
    ...Object.fromEntries(strings.map((name) => [name, { type: 'string' as const }])),
    ...Object.fromEntries(flags.map((name) => [name, { type: 'boolean' as const }])),
  };
  const { values, positionals } = parseArguments(usage, argv, options);
  if (positionals.length > 0) throw usage(`${JSON.stringify(positionals[0])} is no option`);
  return values as Values;
}

function numberOf(name: string, text: string | undefined, otherwise: number): number {
  const value = text === undefined ? otherwise : Number(text);
  if (!Number.isInteger(value) || value < 1)
    throw new StartError(`--${name}: ${text} is not a whole number above 0`);
  return value;
}

function chosen(only: string | undefined, full: boolean): readonly Scenario[] {
  if (only === undefined) return scenarios.filter(({ long }) => full || !long);
  return only.split(',').map((name) => {
    const found = scenarios.find((scenario) => scenario.name === name.trim());
    if (found === undefined) throw new StartError(`--only: ${name} is none of ${names()}`);
    return found;
  });
}

function readOld(file: string): BenchResults {
  try {
    return readResults(file);
  } catch (error) {
    throw new StartError(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

const names = (): string => scenarios.map(({ name }) => name).join(', ');

function wantsWrk(generator: string | undefined): boolean {
  if (generator !== undefined && generator !== 'wrk' && generator !== 'node')
    throw new StartError(`--generator: ${generator} is neither wrk nor node`);
  const installed = wrkVersion() !== null;
  if (generator === 'wrk' && !installed) throw new StartError('--generator: wrk is not installed');
  return generator !== 'node' && installed;
}

export const listScenarios = (): string =>
  scenarios.map(({ name, about, long }) => `${name.padEnd(14)}${about}${long ? ' (--full)' : ''}\n`).join('');
