/** Results of a run of the benchmark: a JSON file, shown as a table and as a page, and compared with another run. */
import { readFileSync } from 'node:fs';
import { Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { checked } from '../src/contracts/checked.js';
import { StartError } from '../src/lifecycle.js';

type DeepReadonly<Of> = { readonly [Key in keyof Of]: DeepReadonly<Of[Key]> };
type Static<Schema extends Type.TSchema> = DeepReadonly<Type.Static<Schema>>;

const positive = Type.Number({ minimum: 0 });
const orNull = <T extends Type.TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

/** The median over rounds, with the smallest and the largest value. */
export type Spread = Static<typeof Spread>;
const Spread = Type.Object({
  median: positive,
  low: positive,
  high: positive,
  rounds: Type.Integer({ minimum: 1 }),
});

/** Milliseconds from the moment at which a request was due, so that waiting is not hidden (coordinated omission). */
export type Latency = Static<typeof Latency>;
const Latency = Type.Object({
  /** Requests per second: offered, answered, and rejected with 503 if that is an outcome. */
  offered: positive,
  achieved: positive,
  refused: Type.Optional(positive),
  p50: positive,
  p90: positive,
  p99: positive,
  p999: positive,
  max: positive,
});

/** Answers of all loads on one tenant, warm-up and seeding included. */
export type Ledger = Static<typeof Ledger>;
const Ledger = Type.Object({
  /** Responses with status 200. */
  acknowledged: positive,
  /** Answers rejected under overload. The service may have counted some of them. */
  unanswered: positive,
  /** Sum of the attempts in the states of all learners and skills. */
  inRedis: positive,
  /** Rows, and the number of their distinct outbox ids. */
  inClickHouse: positive,
  distinctInClickHouse: positive,
});

/** One target in one scenario. */
export type Measurement = Static<typeof Measurement>;
const Measurement = Type.Object({
  /** `skilltrace`, `skilltrace, pipeline paused`, or a peer: `echo`, `fastify`, `fastify-outbox` and others. */
  target: Type.String(),
  /** Answers (or requests, see `unit`) per second in a closed loop; null if not measured. */
  throughput: orNull(Spread),
  /**
   * CPU microseconds per answer (or per request, see `unit`) by part: `front end` (main threads), `workers`, `forecast`,
   * `runtime` (threads of V8 that compile and collect garbage), `libuv` (its pool), `rest` (of the same processes and
   * their children), `redis`, `pipeline`, `clickhouse`; `server` if the threads cannot be distinguished. The sum is the CPU
   * time of all processes.
   */
  cpu: Type.Record(Type.String(), Spread),
  /** Open loop, one entry for each offered rate, ascending. */
  latencies: Type.Array(Latency),
  /** Largest memory of the processes, MB, by part. */
  memory: Type.Record(Type.String(), positive),
  /**
   * Rows per second from the first answer of a load to the last row in ClickHouse, and the seconds that the oldest answer
   * waited at the worst moment of each round. Null for a peer and for a paused pipeline.
   */
  pipeline: orNull(Type.Object({ rowsPerSecond: Spread, lag: Spread })),
  /** Null for a peer. */
  ledger: orNull(Ledger),
});

export type ScenarioResult = Static<typeof ScenarioResult>;
const ScenarioResult = Type.Object({
  /** Short name, as for --only. */
  name: Type.String(),
  about: Type.String(),
  /** The variable within the scenario, for plots (learners, API processes); null if nothing changes. */
  axis: orNull(Type.Object({ label: Type.String(), value: Type.Number() })),
  /** Unit of throughput and CPU. */
  unit: Type.Union([Type.Literal('answer'), Type.Literal('request')]),
  measurements: Type.Array(Measurement),
});

const Goal = Type.Union([Type.Object({ atMost: Type.Number() }), Type.Object({ atLeast: Type.Number() })]);
export type Goal = Static<typeof Goal>;

/** A figure that a run reports first: a ratio if the absolute value depends on the machine. */
export type Figure = Static<typeof Figure>;
const Figure = Type.Object({
  name: Type.String(),
  about: Type.String(),
  unit: Type.String(),
  value: Spread,
  /** The required value; null for a figure without a goal. */
  goal: orNull(Goal),
  /** A further target beyond the goal. */
  aim: Type.Optional(Type.Number()),
});

/** The bare echo at the start, between the scenarios and at the end: µs a request and requests a second. */
export type Noise = Static<typeof Noise>;
const Noise = Type.Object({ cpu: Type.Array(positive), perSecond: Type.Array(positive) });

export type BenchResults = Static<typeof BenchResults>;
const BenchResults = Type.Object({
  format: Type.Literal(1),
  /** ISO time. */
  startedAt: Type.String(),
  form: Type.Union([Type.Literal('short'), Type.Literal('full')]),
  seconds: positive,
  machine: Type.Object({
    processor: Type.String(),
    cores: positive,
    memoryMb: positive,
    system: Type.String(),
  }),
  /** Absent in results of earlier versions. */
  noise: Type.Optional(Noise),
  /** Of node, skilltrace, redis, clickhouse and packages, and of the load generator of closed loops. */
  versions: Type.Record(Type.String(), Type.String()),
  /** Commit of the working tree, with `+` if files are changed; null outside a repository. */
  commit: orNull(Type.String()),
  scenarios: Type.Array(ScenarioResult),
  figures: Type.Array(Figure),
});
const resultsCheck = Compile(BenchResults);

/** @throws StartError with the file and the reason: unreadable, not JSON, or another format */
export function readResults(file: string): BenchResults {
  try {
    return checked(resultsCheck, JSON.parse(readFileSync(file, 'utf8')), 'results of a benchmark');
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new StartError(`${file} cannot be compared with: ${reason}`, { cause });
  }
}
