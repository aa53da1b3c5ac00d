import { readFileSync } from 'node:fs';
import { Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { validate } from '../../src/contracts/schema/validate.js';
import { StartError } from '../../src/lifecycle.js';

type DeepReadonly<Of> = { readonly [Key in keyof Of]: DeepReadonly<Of[Key]> };
type Static<Schema extends Type.TSchema> = DeepReadonly<Type.Static<Schema>>;

const nonNegative = Type.Number({ minimum: 0 });
const nullable = <T extends Type.TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

/** Median, smallest and largest value of the rounds. */
export type Spread = Static<typeof Spread>;
const Spread = Type.Object({
  median: nonNegative,
  low: nonNegative,
  high: nonNegative,
  rounds: Type.Integer({ minimum: 1 }),
});

/** Milliseconds since a request was due, so that waiting counts (coordinated omission). */
export type Latency = Static<typeof Latency>;
const Latency = Type.Object({
  /** Requests per second. `refused`: with 503, if allowed. */
  offered: nonNegative,
  achieved: nonNegative,
  refused: Type.Optional(nonNegative),
  p50: nonNegative,
  p90: nonNegative,
  p99: nonNegative,
  p999: nonNegative,
  max: nonNegative,
});

/** Answers of all loads on one tenant, with warm-up and seeding. */
export type Ledger = Static<typeof Ledger>;
const Ledger = Type.Object({
  /** With status 200. */
  acknowledged: nonNegative,
  /** Rejected under overload. The service may have counted some. */
  unanswered: nonNegative,
  /** Attempts of all learners and skills. */
  inRedis: nonNegative,
  /** Rows, and distinct outbox ids. */
  inClickHouse: nonNegative,
  distinctInClickHouse: nonNegative,
});

export type Measurement = Static<typeof Measurement>;
const Measurement = Type.Object({
  /** `skilltrace`, `skilltrace, pipeline paused`, or a peer such as `echo`. */
  target: Type.String(),
  /** Per second in a closed loop; null if not measured. */
  throughput: nullable(Spread),
  /**
   * CPU µs per unit by part: `front end` (main threads), `workers`, `forecast`, `runtime` (V8's compiler and
   * garbage collector), `libuv`, `rest` (other threads, and children), `redis`, `pipeline`, `clickhouse`;
   * `server` if threads cannot be distinguished. The sum covers all processes.
   */
  cpu: Type.Record(Type.String(), Spread),
  /** Ascending by offered rate. */
  latencies: Type.Array(Latency),
  /** Maximum MB by part. */
  memory: Type.Record(Type.String(), nonNegative),
  /**
   * Rows per second until ClickHouse has the last row; maximum lag in seconds. Null for peers and if paused.
   */
  pipeline: nullable(Type.Object({ rowsPerSecond: Spread, lag: Spread })),
  /** Null for a peer. */
  ledger: nullable(Ledger),
});

export type ScenarioResult = Static<typeof ScenarioResult>;
const ScenarioResult = Type.Object({
  name: Type.String(),
  about: Type.String(),
  /** Variable of plots (learners, API processes); null: no variable. */
  axis: nullable(Type.Object({ label: Type.String(), value: Type.Number() })),
  unit: Type.Union([Type.Literal('answer'), Type.Literal('request')]),
  measurements: Type.Array(Measurement),
});

const Goal = Type.Union([Type.Object({ atMost: Type.Number() }), Type.Object({ atLeast: Type.Number() })]);
export type Goal = Static<typeof Goal>;

/** A ratio if the absolute value depends on the machine. */
export type Figure = Static<typeof Figure>;
const Figure = Type.Object({
  name: Type.String(),
  about: Type.String(),
  unit: Type.String(),
  value: Spread,
  /** Null if the figure is only shown. */
  goal: nullable(Goal),
  aim: Type.Optional(Type.Number()),
});

/** The echo before, between and after the scenarios: µs per request, and requests per second. */
export type Noise = Static<typeof Noise>;
const Noise = Type.Object({ cpu: Type.Array(nonNegative), perSecond: Type.Array(nonNegative) });

export type BenchResults = Static<typeof BenchResults>;
const BenchResults = Type.Object({
  format: Type.Literal(1),
  /** ISO time. */
  startedAt: Type.String(),
  form: Type.Union([Type.Literal('short'), Type.Literal('full')]),
  seconds: nonNegative,
  machine: Type.Object({
    processor: Type.String(),
    cores: nonNegative,
    memoryMb: nonNegative,
    system: Type.String(),
  }),
  /** Absent in results of earlier versions. */
  noise: Type.Optional(Noise),
  versions: Type.Record(Type.String(), Type.String()),
  /** With `+` if files are changed; null outside a repository. */
  commit: nullable(Type.String()),
  scenarios: Type.Array(ScenarioResult),
  figures: Type.Array(Figure),
});
const resultsCheck = Compile(BenchResults);

/** @throws StartError */
export function readResults(file: string): BenchResults {
  try {
    return validate(resultsCheck, JSON.parse(readFileSync(file, 'utf8')), 'results of a benchmark');
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new StartError(`Cannot read the benchmark results ${file}: ${reason}`, { cause });
  }
}
