/** Reading a command's arguments: one that does not fit ends it with one line and a hint at --help. */
import { type ParseArgsConfig, parseArgs } from 'node:util';
import { StartError } from '../lifecycle.js';

/** Makes the error for arguments that do not fit. */
export type Usage = (problem: string) => StartError;

/** @param form of the command, for instance `npm run fit [-- options]` */
export const usageOf =
  (form: string): Usage =>
  (problem) =>
    new StartError(`${problem}\nUsage: ${form}; --help explains them`);

/** @throws StartError for an unknown option, or one without its value */
export function parseArguments<Options extends NonNullable<ParseArgsConfig['options']>>(
  usage: Usage,
  argv: readonly string[],
  options: Options,
) {
  try {
    return parseArgs({ args: [...argv], allowPositionals: true, options });
  } catch (error) {
    throw usage(error instanceof Error ? error.message : String(error));
  }
}

/** @throws StartError for what is no integer within the bounds */
export function readInteger(usage: Usage, name: string, text: string, low: number, high: number): number {
  const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= low && value <= high) return value;
  throw usage(`${name} ${JSON.stringify(text)}: an integer from ${low} to ${high} is needed`);
}

/** The FILE of a command that takes just one. @throws StartError */
export function onlyFile(usage: Usage, [file, ...more]: readonly string[]): string {
  if (file === undefined || more.length > 0) throw usage('exactly one FILE is needed');
  return file;
}

const tenantPattern = /^[A-Za-z0-9._~-]{1,128}$/;

/** @throws StartError for what cannot be a tenant */
export function readTenant(tenant: string): string {
  if (!tenantPattern.test(tenant)) {
    throw new StartError(`--tenant ${JSON.stringify(tenant)}: 1 to 128 of A-Za-z0-9._~- are allowed`);
  }
  return tenant;
}
