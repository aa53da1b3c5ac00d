/** How many answers were counted, by partition, tenant and day of arrival: one side of the audit. */
import { acceptedField } from './keys.js';
import type { LearnerCommit } from './learner-records.js';

/** @returns by partition: what to add to which field of its hash */
export function countAccepted(
  commits: readonly Pick<LearnerCommit, 'partition' | 'tenant' | 'arrivalDays'>[],
): Map<number, Map<string, number>> {
  const counts = new Map<number, Map<string, number>>();
  for (const { partition, tenant, arrivalDays } of commits) {
    const fields = counts.get(partition) ?? new Map<string, number>();
    counts.set(partition, fields);
    for (const day of arrivalDays) {
      const field = acceptedField(tenant, day);
      fields.set(field, (fields.get(field) ?? 0) + 1);
    }
  }
  return counts;
}
