import { UsageError } from '../../src/cli/support/arguments.js';
import { formatFigure } from '../report/section.js';

/** Figures that an objective can limit: latencies in milliseconds, errors in percent, rates per second. */
export const metrics = ['p50', 'p90', 'p99', 'p99.9', 'max', 'errors', 'rate', 'capacity'] as const;
export type Metric = (typeof metrics)[number];

export interface Objective {
  readonly metric: Metric;
  readonly comparison: '<' | '<=' | '>' | '>=';
  readonly limit: number;
  /** As given. */
  readonly text: string;
}

const pattern = /^(p50|p90|p99|p99\.9|max|errors|rate|capacity)(<=|>=|<|>|=)(\d+(?:\.\d+)?)(ms|s|%|\/s)?$/;
const units: Readonly<Record<string, readonly string[]>> = { errors: ['%'], rate: ['/s'], capacity: ['/s'] };
const timeUnits = ['ms', 's'];

/** `=` means "at most". @throws UsageError */
export const parseObjectives = (text: string, option: string): Objective[] =>
  text.split(',').map((part) => {
    const [, metric = '', comparison, number, unit] = pattern.exec(part.trim()) ?? [];
    const allowed = units[metric] ?? timeUnits;
    if (comparison === undefined || (unit !== undefined && !allowed.includes(unit)))
      throw new UsageError(
        `${option} ${JSON.stringify(part)} must be like p99<50ms, errors<0.1% or rate>1000; figures: ${metrics.join(', ')}`,
      );
    return {
      metric: metric as Metric,
      comparison: comparison === '=' ? '<=' : (comparison as Objective['comparison']),
      limit: Number(number) * (unit === 's' ? 1000 : 1),
      text: part.trim(),
    };
  });

export type Figures = Readonly<Partial<Record<Metric, number>>>;

/** @returns the measured value of each missed objective, as text. Objectives without a figure are skipped. */
export const findMissed = (objectives: readonly Objective[], figures: Figures): string[] =>
  objectives.flatMap(({ metric, comparison, limit, text }) => {
    const value = figures[metric];
    if (value === undefined || isMet(value, comparison, limit)) return [];
    return [`${metric} is ${formatFigure(value)}${unitOf(metric)}, not ${text}`];
  });

function isMet(value: number, comparison: Objective['comparison'], limit: number): boolean {
  if (comparison === '<') return value < limit;
  if (comparison === '<=') return value <= limit;
  return comparison === '>' ? value > limit : value >= limit;
}

const unitOf = (metric: Metric): string => units[metric]?.[0] ?? ' ms';
