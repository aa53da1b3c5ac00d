/** Above `maxSize`, evicts the least recently used value. */
export function setRecentlyUsed<Value>(
  cache: Map<string, Value>,
  key: string,
  value: Value,
  maxSize: number,
) {
  cache.delete(key);
  cache.set(key, value);
  if (cache.size > maxSize) cache.delete(cache.keys().next().value ?? '');
}

type Report<State> = (error: unknown, tenant: string, state: State) => void;

export function reportOnce<State>(report: Report<State>, maxTenants: number): Report<State> {
  const reported = new Map<string, State>();
  return (error, tenant, state) => {
    if (reported.has(tenant) && Object.is(reported.get(tenant), state)) return;
    if (reported.size > maxTenants) reported.clear();
    reported.set(tenant, state);
    report(error, tenant, state);
  };
}
