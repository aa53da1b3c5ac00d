import fc from 'fast-check';

/**
 * How long a property is tried, its shrinking included: less than its test may take, so that a failure is told with
 * its seed.
 */
const interruptAfterTimeLimit = 15_000;

fc.configureGlobal({ ...fc.readConfigureGlobal(), interruptAfterTimeLimit });

export { fc };

/**
 * Tries a property whose runs are asynchronous. At the limit of time fast-check leaves the run on its way to itself; here it is
 * waited for, for it would change what the next test looks at.
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
