/** What caches by tenant have in common. */

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

/** Tells what cannot be read, once for each state of a tenant's that it stands for. */
export type TellOnce<State> = (error: unknown, tenant: string, state: State) => void;

/** @param atMost tenants that are remembered; beyond it some are told of again */
export function tellOnce<State>(tell: TellOnce<State>, atMost: number): TellOnce<State> {
  /** State that was told last. */
  const told = new Map<string, State>();
  return (error, tenant, state) => {
    if (told.has(tenant) && Object.is(told.get(tenant), state)) return;
    if (told.size > atMost) told.clear();
    told.set(tenant, state);
    tell(error, tenant, state);
  };
}
