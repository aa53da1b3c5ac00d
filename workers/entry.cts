/**
 * What Piscina loads into a worker thread: the entries by name, each brought in by `import()`.
 *
 * Given a module, Piscina tries `require` first, and Node 20 aborts the whole process where a thread is ended during that
 * ("IsGraphAsync must be used on an instantiated module"; Node 22 does not): any start that failed early might.
 */
type Entry = (task: never) => Promise<unknown>;

/** Begins to load at once, so that the first task finds it there. */
function entry(loading: Promise<{ readonly default: Entry }>): Entry {
  return async (task) => (await loading).default(task);
}

// Piscina reads the one that it was told to, once.
export = {
  get track() {
    return entry(import('./track.js'));
  },
  get forecast() {
    return entry(import('./forecast.js'));
  },
  get rebuild() {
    return entry(import('./rebuild.js'));
  },
  get retract() {
    return entry(import('./retract.js'));
  },
  get fit() {
    return entry(import('./fit.js'));
  },
};
