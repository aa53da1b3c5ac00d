/** Above `maxSize`, evicts the least recently used value. */
export function keepRecent<Value>(kept: Map<string, Value>, key: string, value: Value, atMost: number) {
  kept.delete(key);
  kept.set(key, value);
  if (kept.size > atMost) kept.delete(kept.keys().next().value ?? '');
}

type Report<State> = (error: unknown, tenant: string, state: State) => void;

export function reportOnce<State>(report: Report<State>, atMost: number): Report<State> {
  const reported = new Map<string, State>();
  return (error, tenant, state) => {
    if (reported.has(tenant) && Object.is(reported.get(tenant), state)) return;
    if (reported.size > atMost) reported.clear();
    reported.set(tenant, state);
    report(error, tenant, state);
  };
}
