/** Search for the highest rate that meets the objectives. */

export interface Step {
  /** Requests per second. */
  readonly rate: number;
  readonly isMet: boolean;
}

const minRate = 1;
const maxRate = 1_000_000;
/** The search ends when the rates above and below differ by less than this factor. */
const precision = 1.05;
const confirmations = 3;

/**
 * Doubles the rate until a step fails, bisects, and lowers the result until three steps in a row succeed.
 * @param measure one step at the rate
 * @returns the three confirming steps, or null if no rate meets the objectives
 */
export async function findCapacity<Measured extends Step>(
  measure: (rate: number) => Promise<Measured>,
  firstRate: number,
): Promise<readonly Measured[] | null> {
  const bracket = await findBracket(measure, firstRate);
  if (bracket === null) return null;
  let { low, high } = bracket;
  while (high / low > precision) {
    const middle = Math.sqrt(low * high);
    if ((await measure(middle)).isMet) low = middle;
    else high = middle;
  }
  for (const lowest = Math.max(minRate, low / 4); low >= lowest; low /= precision) {
    const confirmed = await confirm(measure, low);
    if (confirmed !== null) return confirmed;
  }
  return null;
}

/** @returns a rate that met the objectives, and a higher one that failed */
async function findBracket(
  measure: (rate: number) => Promise<Step>,
  firstRate: number,
): Promise<{ low: number; high: number } | null> {
  let rate = firstRate;
  if ((await measure(rate)).isMet) {
    do rate *= 2;
    while (rate <= maxRate && (await measure(rate)).isMet);
    return { low: rate / 2, high: rate };
  }
  do rate /= 2;
  while (rate >= minRate && !(await measure(rate)).isMet);
  return rate < minRate ? null : { low: rate, high: 2 * rate };
}

async function confirm<Measured extends Step>(
  measure: (rate: number) => Promise<Measured>,
  rate: number,
): Promise<readonly Measured[] | null> {
  const steps: Measured[] = [];
  while (steps.length < confirmations) {
    const step = await measure(rate);
    if (!step.isMet) return null;
    steps.push(step);
  }
  return steps;
}
