import fc from 'fast-check';

/**
 * How long a property is tried, its shrinking included: less than its test may take, so that a failure is told with
 * its seed.
 */
const interruptAfterTimeLimit = 15_000;

fc.configureGlobal({ ...fc.readConfigureGlobal(), interruptAfterTimeLimit });

export { fc };
