/**
 * Entries are loaded with `import()`: Piscina tries `require` first, and Node 20 aborts the process if a thread ends
 * during that ("IsGraphAsync must be used on an instantiated module").
 */
const names = ['track', 'forecast', 'rebuild', 'rewrite', 'deliver', 'fit'];

/** Starts to load before the first task. */
function entry(name: string) {
  const loading = import(`./${name}.js`);
  return async (task: unknown): Promise<unknown> => (await loading).default(task);
}

// Piscina reads the entry's property only once.
export = Object.defineProperties(
  {},
  Object.fromEntries(names.map((name) => [name, { get: () => entry(name) }])),
);
