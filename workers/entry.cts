/**
 * What Piscina loads into a thread: entries by name, with `import()`. Piscina would try `require` first, and
 * Node 20 aborts the process if a thread ends during that ("IsGraphAsync must be used on an instantiated
 * module").
 */
const names = ['track', 'forecast', 'rebuild', 'retract', 'deliver', 'fit'];

/** Begins to load at once, so that the first task finds it there. */
function entry(name: string) {
  const loading = import(`./${name}.js`);
  return async (task: unknown): Promise<unknown> => (await loading).default(task);
}

// Piscina reads the one that it was told to, once.
export = Object.defineProperties(
  {},
  Object.fromEntries(names.map((name) => [name, { get: () => entry(name) }])),
);
