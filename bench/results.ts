/** What a run of the benchmark found: written as JSON, shown as a table and a page, compared with another run. */

/** One server under one load. All figures are medians over rounds, with the smallest and the largest. */
export interface Spread {
  readonly median: number;
  readonly low: number;
  readonly high: number;
  readonly rounds: number;
}

/**
 * CPU microseconds per answer (or per request, see `unit`) by part: `front end` (main threads), `workers` (that count
 * answers), `forecast`, `runtime` (threads of V8 that compile and collect garbage), `libuv` (its pool), `rest` (of the same processes and
 * their children), `redis`, `pipeline`, `clickhouse`; `server` for what is not split. Their sum is the CPU of all processes.
 */
export type CpuSplit = Readonly<Record<string, Spread>>;

/** Milliseconds from the moment at which a request was due, so that waiting is not hidden (coordinated omission). */
export interface Latency {
  /** Requests per second: what was offered, and what was answered. */
  readonly offered: number;
  readonly achieved: number;
  /** Refused with 503, per second, where that is an outcome. */
  readonly refused?: number;
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
}

/** One target in one scenario. */
export interface Measurement {
  /** `skilltrace`, `skilltrace, pipeline paused`, or a peer: `echo`, `fastify`, `fastify-outbox` and others. */
  readonly target: string;
  /** Answers (or requests, see `unit`) per second in a closed loop, all connections busy; null where not measured. */
  readonly throughput: Spread | null;
  readonly cpu: CpuSplit;
  /** Open loop, one entry for each offered rate, ascending. */
  readonly latencies: readonly Latency[];
  /** Largest memory of the processes, MB, by part. */
  readonly memory: Readonly<Record<string, number>>;
  /** What moved the answers on to ClickHouse; null for a peer, and where it was paused. */
  readonly pipeline: PipelineFigures | null;
  /** What became of the answers; null for a peer. */
  readonly ledger: Ledger | null;
}

export interface PipelineFigures {
  /** From the first answer of a load to the last row in ClickHouse. */
  readonly rowsPerSecond: Spread;
  /** Seconds that the oldest answer waited for ClickHouse, at the worst moment of each round. */
  readonly lag: Spread;
}

/** Answers of all loads on one tenant, warm-up and seeding included. */
export interface Ledger {
  /** Answered with 200. */
  readonly acknowledged: number;
  /** Cut off by the end of a load while they were on their way: counted or not. Only an external generator does so. */
  readonly unanswered: number;
  /** Sum of the attempts in the states of all learners and skills. */
  readonly inRedis: number;
  /** Rows, and how many different outbox ids they have. */
  readonly inClickHouse: number;
  readonly distinctInClickHouse: number;
}

export interface ScenarioResult {
  /** Short name, as for --only. */
  readonly name: string;
  /** One line for people. */
  readonly about: string;
  /** What changes within the scenario, for plots over it (learners, API processes); null where nothing does. */
  readonly axis: { readonly label: string; readonly value: number } | null;
  /** What throughput and CPU are counted in. */
  readonly unit: 'answer' | 'request';
  readonly measurements: readonly Measurement[];
}

/** A figure with a goal, for people first: a ratio wherever the absolute value is the machine's. */
export interface Figure {
  readonly name: string;
  readonly about: string;
  readonly unit: string;
  readonly value: Spread;
  /** What must be reached; null: only shown. */
  readonly goal: Goal | null;
  /** What is aimed at beyond it. */
  readonly aim?: number;
}

export type Goal = { readonly atMost: number } | { readonly atLeast: number };

/** The bare echo through a run: first, between the scenarios and last. The machine's noise, with nothing of ours in it. */
export interface Noise {
  /** CPU µs a request, and requests a second, in the order of the run. */
  readonly cpu: readonly number[];
  readonly perSecond: readonly number[];
}

export interface BenchResults {
  readonly format: 1;
  /** ISO time. */
  readonly startedAt: string;
  readonly form: 'short' | 'full';
  readonly seconds: number;
  readonly machine: {
    readonly processor: string;
    readonly cores: number;
    readonly memoryMb: number;
    readonly system: string;
  };
  /** Absent in results of earlier versions. */
  readonly noise?: Noise;
  /** Of node, skilltrace, redis, clickhouse and packages; and which load generator drove the closed loop. */
  readonly versions: Readonly<Record<string, string>>;
  /** Commit of the working tree, with `+` where it was changed; null outside a repository. */
  readonly commit: string | null;
  readonly scenarios: readonly ScenarioResult[];
  readonly figures: readonly Figure[];
}
