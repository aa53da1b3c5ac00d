import type { Scoped } from './servers/scoped.js';

/** A scope that runs its hooks in reverse order at the end of `t`: what starts last ends first. */
export function reversed(t: Scoped): Scoped {
  const hooks: Parameters<Scoped['after']>[0][] = [];
  t.after(async () => {
    for (const hook of hooks.reverse()) await hook();
  });
  return { after: (hook) => hooks.push(hook) };
}
