/** How many answers were counted, by tenant and day of arrival: one side of the audit. */

import type { LearnerCommit } from '../learners/learner-records.js';
import { acceptedField } from '../redis/keys.js';

/** @param commits of one partition. @returns what to add to which field of its hash */
export function countAccepted(
  commits: readonly Pick<LearnerCommit, 'tenant' | 'arrivalDays'>[],
): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { tenant, arrivalDays } of commits) {
    for (const day of arrivalDays) {
      const field = acceptedField(tenant, day);
      counts.set(field, (counts.get(field) ?? 0) + 1);
    }
  }
  return counts;
}
