import fc from 'fast-check';

/** Limits a property with its shrinking to less time than a test has, so that a failure prints its seed. */
fc.configureGlobal({ ...fc.readConfigureGlobal(), interruptAfterTimeLimit: 15_000 });

export { fc };

/** The last argument is the predicate. */
type PropertyArguments<Values extends [unknown, ...unknown[]]> = [
  ...{ [Place in keyof Values]: fc.Arbitrary<Values[Place]> },
  predicate: (...values: Values) => void,
];

export function forAll<Values extends [unknown, ...unknown[]]>(...args: PropertyArguments<Values>): void {
  fc.assert(fc.property(...args));
}

export function forRuns<Values extends [unknown, ...unknown[]]>(
  numRuns: number,
  ...args: PropertyArguments<Values>
): void {
  fc.assert(fc.property(...args), { numRuns });
}

/**
 * Checks an asynchronous property. At the time limit fast-check abandons the current run; this function waits for it,
 * because the run would change the state that the next test reads.
 */
export async function assertAsync<Values>(
  property: fc.IAsyncProperty<Values>,
  parameters: fc.Parameters<Values>,
): Promise<void> {
  const run = property.run.bind(property);
  let last: ReturnType<typeof run> | null = null;
  property.run = (values) => {
    last = run(values);
    return last;
  };
  await fc.assert(property, parameters);
  await last;
}
