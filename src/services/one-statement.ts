/** How many learners one statement to ClickHouse names. */
import type { CorrectedRows } from './correction-ports.js';

type Learner = Pick<CorrectedRows, 'tenant' | 'userId'>;

/** Learners, whom answers wait for, and characters of their names, which a statement of 256 KB has a dozen times. */
const together = 100;
const togetherChars = 6000;

/** @returns the first ones, as many as a statement takes, and each learner once */
export function oneStatement<One>(all: readonly One[], learnerOf: (one: One) => Learner): One[] {
  const names = new Set<string>();
  let chars = 0;
  return all.filter((one) => {
    const { tenant, userId } = learnerOf(one);
    const name = `${tenant}:${userId}`;
    if (names.has(name) || names.size === together) return false;
    chars += name.length;
    if (names.size > 0 && chars > togetherChars) return false;
    names.add(name);
    return true;
  });
}
