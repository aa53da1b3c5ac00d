/** Since the last `take`. `errors`: statuses from 400, except `rejected` (429). */
export interface KeyCounts {
  requests: number;
  answers: number;
  errors: number;
  rejected: number;
}

export type KeyTraffic = ReturnType<typeof createKeyTraffic>;

/** Counts requests and counted answers by key hash. Costs a map lookup per request. */
export function createKeyTraffic() {
  let countsByKey = new Map<string, KeyCounts>();
  const find = (keyHash: string): KeyCounts => {
    const found = countsByKey.get(keyHash);
    if (found !== undefined) return found;
    const counts = { requests: 0, answers: 0, errors: 0, rejected: 0 };
    countsByKey.set(keyHash, counts);
    return counts;
  };
  return {
    countAnswers: (keyHash: string, answers: number): void => {
      find(keyHash).answers += answers;
    },
    countResponse: (keyHash: string, status: number): void => {
      const counts = find(keyHash);
      counts.requests += 1;
      if (status === 429) counts.rejected += 1;
      else if (status >= 400) counts.errors += 1;
    },
    take: (): ReadonlyMap<string, KeyCounts> => {
      const taken = countsByKey;
      countsByKey = new Map();
      return taken;
    },
  };
}
