/**
 * Where the parts of a process register the figures of GET /metrics.
 *
 * A figure is asked for when somebody looks, so that keeping it costs its owner no more than a number. Labels have few
 * values that are known beforehand: never a learner, a key, or anything else that callers choose.
 */

/** One value of a figure. */
export interface Sample {
  readonly value: number;
  readonly labels?: Readonly<Record<string, string>>;
  /** Of a histogram, which of its series; else the figure's own name. */
  readonly metricName?: string;
}

export interface Figure {
  /** Without the common `skilltrace_`; a counter's ends in `_total`, a time's in `_seconds`. */
  readonly name: string;
  readonly help: string;
  /** A counter only grows as long as its process lives. */
  readonly type: 'counter' | 'gauge' | 'histogram';
  /** Asked at every look, in bounded time; where it rejects, the figure is left out of that one. */
  readonly read: () => Samples | Promise<Samples>;
}

/** One number stands for a sample without labels. */
export type Samples = number | readonly Sample[];

export interface Figures {
  /** @throws Error for a name that is taken */
  add(figure: Figure): void;
}
