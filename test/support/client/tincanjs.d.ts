/** The used part of the package, which has no types. */
declare module 'tincanjs' {
  type Done = { readonly callback: (error: unknown, result: unknown) => void };

  class LRS {
    constructor(options: { endpoint: string; username: string; password: string; allowFail: boolean });
    about(done: Done): void;
    saveStatement(statement: Statement, done: Done): void;
    saveStatements(statements: readonly Statement[], done: Done): void;
  }
  class Statement {
    constructor(content: object);
  }
  const TinCan: { readonly LRS: typeof LRS; readonly Statement: typeof Statement };
  export default TinCan;
}
