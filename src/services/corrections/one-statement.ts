/** How many learners one statement to ClickHouse names. */
import { learnerName } from '../../contracts/learner-name.js';
import type { CorrectedRows } from './correction-ports.js';

type Learner = Pick<CorrectedRows, 'tenant' | 'userId'>;

/**
 * Learners, whom answers wait for, and bytes of their names: a statement of at most 256 KB (max_query_size) has them
 * twenty times, with a backslash before every quote.
 */
const together = 100;
const togetherBytes = 5000;

/** @returns the first ones, as many as a statement takes, and each learner once */
export function oneStatement<One>(all: readonly One[], learnerOf: (one: One) => Learner): One[] {
  const names = new Set<string>();
  let bytes = 0;
  return all.filter((one) => {
    const { tenant, userId } = learnerOf(one);
    const name = learnerName(tenant, userId);
    if (names.has(name) || names.size === together) return false;
    bytes += Buffer.byteLength(name);
    if (names.size > 0 && bytes > togetherBytes) return false;
    names.add(name);
    return true;
  });
}
