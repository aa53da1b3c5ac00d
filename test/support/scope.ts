/** Hooks at the end of a test, a file or a process. */

type Hook = () => Promise<unknown> | unknown;

/** A test's context, a file's hooks, or `createHooks()`. */
export interface Scoped {
  after(hook: Hook): void;
}

/** Hooks that `run` calls in the reverse order of their registration. */
export function createHooks() {
  const hooks: Hook[] = [];
  return {
    after: (hook: Hook): void => {
      hooks.push(hook);
    },
    run: async (): Promise<void> => {
      for (const hook of hooks.splice(0).reverse()) await hook();
    },
  };
}

/** A scope that runs its hooks in reverse order at the end of `t`: what starts last ends first. */
export function reversed(t: Scoped): Scoped {
  const hooks = createHooks();
  t.after(hooks.run);
  return hooks;
}
