/** Keeps the value as the one used last, and of too many forgets the longest unused. */
export function keepRecent<Value>(
  kept: Map<string, Value>,
  tenant: string,
  value: Value,
  atMost: number,
): void {
  kept.delete(tenant);
  kept.set(tenant, value);
  if (kept.size > atMost) kept.delete(kept.keys().next().value ?? '');
}

type Report<State> = (error: unknown, tenant: string, state: State) => void;

/**
 * Reports what cannot be read, once for each state of a tenant's that it stands for.
 * @param atMost tenants that are remembered; beyond it some are reported again
 */
export function reportOnce<State>(report: Report<State>, atMost: number): Report<State> {
  /** State that was reported last. */
  const reported = new Map<string, State>();
  return (error, tenant, state) => {
    if (reported.has(tenant) && Object.is(reported.get(tenant), state)) return;
    if (reported.size > atMost) reported.clear();
    reported.set(tenant, state);
    report(error, tenant, state);
  };
}
