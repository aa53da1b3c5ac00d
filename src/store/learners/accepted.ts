import { acceptedField } from '../redis/keys.js';
import type { LearnerCommit } from './learner-records.js';

/**
 * Counts the answers of commits by tenant and day of arrival, for the audit (ADR 23).
 * @param commits of one partition
 * @returns what to add to which field of the partition's hash of accepted answers
 */
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
