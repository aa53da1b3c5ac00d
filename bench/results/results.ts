/** Median and interval of the median over the rounds; see `computeSpread`. */
export interface Spread {
  readonly median: number;
  readonly low: number;
  readonly high: number;
  /** One per round, in order. */
  readonly values: readonly number[];
}

/** Milliseconds from the time when a request was due; in a closed loop, from the time when it was sent. */
export interface Latency {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
}

/** Answers of all loads on one tenant, with warm-up and seeding. */
export interface Ledger {
  /** With status 200. */
  readonly acknowledged: number;
  /** Attempts of all learners and skills. */
  readonly inRedis: number;
  /** Rows, and distinct outbox ids. */
  readonly inClickHouse: number;
  readonly distinctInClickHouse: number;
}

export interface Measurement {
  /** `skilltrace`, also with a kind of load, or a peer such as `echo`. */
  readonly target: string;
  /** Requests per second of an open loop; null in a closed loop. */
  readonly offered: number | null;
  /** Units per second; null if not measured. */
  readonly throughput: Spread | null;
  /**
   * CPU µs per unit by part: `front end` (main threads), `workers`, `forecast`, `runtime` (V8's compiler and
   * garbage collector), `libuv`, `rest` (other threads, and children), `redis`, `postgres`, `pipeline`,
   * `clickhouse`; `server` if threads cannot be distinguished. The sum covers all processes.
   */
  readonly cpu: Readonly<Record<string, Spread>>;
  /** Null if not measured. */
  readonly latency: Readonly<Record<keyof Latency, Spread>> | null;
  /** Maximum MB by part. */
  readonly memory: Readonly<Record<string, number>>;
  /**
   * Rows per second until ClickHouse has the last row; maximum lag in seconds. Null for peers and if paused.
   */
  readonly pipeline: { readonly rowsPerSecond: Spread; readonly lag: Spread } | null;
  /** Null for a peer. */
  readonly ledger: Ledger | null;
}

export interface ScenarioResult {
  readonly name: string;
  readonly about: string;
  readonly unit: 'answer' | 'request';
  readonly measurements: readonly Measurement[];
}

export type Goal = { readonly atMost: number } | { readonly atLeast: number };

/** A ratio if the absolute value depends on the machine. */
export interface Figure {
  readonly name: string;
  readonly about: string;
  /** `times`: a ratio, computed round by round. */
  readonly unit: string;
  readonly value: Spread;
  /** Null if the figure is only shown. */
  readonly goal: Goal | null;
}

/** The echo before, between and after the scenarios: µs per request, and requests per second. */
export interface Noise {
  readonly cpu: readonly number[];
  readonly perSecond: readonly number[];
}

/** Name of the scenario with all comparable servers. */
export const peersScenario = 'peers';

export interface BenchResults {
  readonly format: 2;
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
  readonly noise: Noise;
  readonly versions: Readonly<Record<string, string>>;
  /** With `+` if files are changed; null outside a repository. */
  readonly commit: string | null;
  readonly scenarios: readonly ScenarioResult[];
  readonly figures: readonly Figure[];
}
