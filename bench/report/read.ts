/** Results of an earlier run, from their file. */
import { readFileSync } from 'node:fs';
import { Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { checked } from '../../src/contracts/checked.js';
import type { BenchResults } from '../results.js';

const positive = Type.Number({ minimum: 0 });
const Spread = Type.Object({
  median: positive,
  low: positive,
  high: positive,
  rounds: Type.Integer({ minimum: 1 }),
});
const orNull = <T extends Type.TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

const Latency = Type.Object({
  offered: positive,
  achieved: positive,
  refused: Type.Optional(positive),
  p50: positive,
  p90: positive,
  p99: positive,
  p999: positive,
  max: positive,
});

const Ledger = Type.Object({
  acknowledged: positive,
  unanswered: positive,
  inRedis: positive,
  inClickHouse: positive,
  distinctInClickHouse: positive,
});

const Measurement = Type.Object({
  target: Type.String(),
  throughput: orNull(Spread),
  cpu: Type.Record(Type.String(), Spread),
  latencies: Type.Array(Latency),
  memory: Type.Record(Type.String(), positive),
  pipeline: orNull(Type.Object({ rowsPerSecond: Spread, lag: Spread })),
  ledger: orNull(Ledger),
});

const Scenario = Type.Object({
  name: Type.String(),
  about: Type.String(),
  axis: orNull(Type.Object({ label: Type.String(), value: Type.Number() })),
  unit: Type.Union([Type.Literal('answer'), Type.Literal('request')]),
  measurements: Type.Array(Measurement),
});

const Figure = Type.Object({
  name: Type.String(),
  about: Type.String(),
  unit: Type.String(),
  value: Spread,
  goal: Type.Union([
    Type.Object({ atMost: Type.Number() }),
    Type.Object({ atLeast: Type.Number() }),
    Type.Null(),
  ]),
  aim: Type.Optional(Type.Number()),
});

const Results = Type.Object({
  format: Type.Literal(1),
  startedAt: Type.String(),
  form: Type.Union([Type.Literal('short'), Type.Literal('full')]),
  seconds: positive,
  machine: Type.Object({
    processor: Type.String(),
    cores: positive,
    memoryMb: positive,
    system: Type.String(),
  }),
  noise: Type.Optional(Type.Object({ cpu: Type.Array(positive), perSecond: Type.Array(positive) })),
  versions: Type.Record(Type.String(), Type.String()),
  commit: orNull(Type.String()),
  scenarios: Type.Array(Scenario),
  figures: Type.Array(Figure),
});
const resultsCheck = Compile(Results);

/**
 * The results that a run has written as JSON.
 *
 * @throws Error that names the file and what is wrong with it: unreadable, no JSON, or of another format
 */
export function readResults(file: string): BenchResults {
  try {
    return checked(resultsCheck, JSON.parse(readFileSync(file, 'utf8')), 'results of a benchmark');
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`${file} cannot be compared with: ${reason}`, { cause });
  }
}
