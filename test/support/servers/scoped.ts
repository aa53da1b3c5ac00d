/** A test's context, a file's hooks, or `testProcess`. */
export interface Scoped {
  after(fn: () => Promise<unknown> | unknown): void;
}
