/** Learners whose last order is remembered: a bound on memory. */
const maxLearners = 50_000;

/**
 * Tells of each row whether its order is lower than that of the row before of the same learner. Only the learners
 * seen last are remembered, so that rows far apart may be taken for a first one.
 */
export function createBackwardsCounter(
  learners = maxLearners,
): (userId: string, order: number | null) => boolean {
  const last = new Map<string, number>();
  return (userId, order) => {
    if (order === null) return false;
    const before = last.get(userId);
    // A Map keeps the order of insertion: the first key is the learner not seen for longest.
    last.delete(userId);
    last.set(userId, order);
    if (last.size > learners) last.delete(last.keys().next().value as string);
    return before !== undefined && order < before;
  };
}
