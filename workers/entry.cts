/**
 * What Piscina loads into a worker thread: the entries by name, each brought in by `import()`.
 *
 * Given a module, Piscina tries `require` first, and Node 20 aborts the whole process where a thread is ended during that
 * ("IsGraphAsync must be used on an instantiated module"; Node 22 does not): any start that failed early might.
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
