/** From values to places on a drawing. */

export interface Scale {
  readonly low: number;
  readonly high: number;
  /** Values where the axis has a mark, ascending. */
  readonly ticks: readonly number[];
  /** Place of a value. */
  at(value: number): number;
}

/** A range of values that a chart shows. */
export interface Domain {
  readonly low: number;
  readonly high: number;
  /** Equal ratios, not equal differences, are equally far apart; `low` must then be above 0. */
  readonly logarithmic?: boolean;
}

/** @param from place of the lowest value @param to place of the highest */
export function scaleOf({ low, high, logarithmic = false }: Domain, from: number, to: number): Scale {
  const turned = logarithmic ? Math.log : (value: number): number => value;
  const span = turned(high) - turned(low) || 1;
  return {
    low,
    high,
    ticks: logarithmic ? powerTicks(low, high) : evenTicks(low, high),
    at: (value) => from + ((turned(value) - turned(low)) / span) * (to - from),
  };
}

const wantedTicks = 6;

/** Multiples of 1, 2 or 5 times a power of ten. */
function evenTicks(low: number, high: number): number[] {
  const rough = (high - low || 1) / wantedTicks;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10) * power;
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  // The product of two decimals is not the nearest number to a decimal; twelve digits are.
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

/** 1, 2 and 5 times powers of ten, or the powers alone where the range is wide. */
function powerTicks(low: number, high: number): number[] {
  const factors = high / low > 1000 ? [1] : [1, 2, 5];
  const ticks: number[] = [];
  for (let power = 10 ** Math.floor(Math.log10(low)); power <= high; power *= 10) {
    ticks.push(...factors.map((factor) => factor * power).filter((tick) => tick >= low && tick <= high));
  }
  return ticks;
}

/**
 * The least round range around values, at least `least` wide.
 *
 * @param within bounds that it never leaves
 */
export function domainAround(values: readonly number[], within: Domain, least: number): Domain {
  const [smallest, greatest] = [Math.min(...values), Math.max(...values)];
  const missing = Math.max(0, least - (greatest - smallest)) / 2;
  const unit = least / 4;
  const low = Math.floor((smallest - missing) / unit) * unit;
  const high = Math.ceil((greatest + missing) / unit) * unit;
  return { low: Math.max(within.low, low), high: Math.min(within.high, high) };
}
