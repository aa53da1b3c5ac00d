/** A table of options defines the --help text, the parsing and the types. */
import { parseArgs } from 'node:util';
import { parseTime } from '../contracts/events.js';
import { plainName } from '../contracts/ids.js';
import { StartError } from '../lifecycle.js';

export class Misuse extends StartError {}

interface Option<Value> {
  /** Shown in --help; '' for a flag. */
  readonly form: string;
  readonly about: string;
  /**
   * @param name with its dashes
   * @throws StartError
   */
  readonly read: (given: string | boolean | undefined, name: string) => Value;
}

export const flag = (about: string): Option<boolean> => ({
  form: '',
  about,
  read: (given) => given === true,
});

export const option = <Value>(
  form: string,
  about: string,
  read: (text: string, name: string) => Value,
): Option<Value | null> => ({
  form,
  about,
  read: (given, name) => (typeof given === 'string' ? read(given, name) : null),
});

export const integerOption = (low: number, high: number, about: string): Option<number | null> =>
  option('N', about, (text, name) => {
    const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= low && value <= high) return value;
    throw new Misuse(`${name} ${JSON.stringify(text)}: an integer from ${low} to ${high} is needed`);
  });

export const choiceOption = <Choice extends string>(
  form: string,
  about: string,
  choices: readonly Choice[],
): Option<Choice | null> =>
  option(form, about, (text, name) => {
    const chosen = choices.find((choice) => choice === text);
    if (chosen !== undefined) return chosen;
    throw new Misuse(`${name} ${JSON.stringify(text)}: one of ${choices.join(', ')} is needed`);
  });

/**
 * Unix milliseconds; a date means 0:00 UTC.
 * @param findProblem returns why a time is rejected, or null
 */
export const momentOption = (
  form: string,
  about: string,
  problemOf: (ms: number) => string | null = () => null,
): Option<number | null> =>
  option(form, about, (text, name) => {
    const ms = parseTime(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text);
    const problem = ms === null ? 'must be a date (YYYY-MM-DD) or an RFC 3339 time' : problemOf(ms);
    if (ms === null || problem !== null) throw new Misuse(`${name} ${JSON.stringify(text)} ${problem}`);
    return ms;
  });

export const jsonFlag = flag('result as one line of JSON');

export const defaultTenant = 'default';

export const tenantOption = (about: string): Option<string | null> =>
  option('T', about, (text, name) => {
    if (plainName.test(text)) return text;
    throw new StartError(`${name} ${JSON.stringify(text)}: 1 to 128 of A-Za-z0-9._~- are allowed`);
  });

type OptionTable = Readonly<Record<string, Option<unknown>>>;

export type Values<Options extends OptionTable> = {
  readonly [Name in keyof Options]: ReturnType<Options[Name]['read']>;
};

interface Given {
  readonly operands: readonly string[];
  readonly argv: readonly string[];
}

interface Specification<Options extends OptionTable, Arguments> {
  readonly form: string;
  readonly about: string;
  readonly notes: string;
  readonly options: Options;
  /** @throws StartError */
  readonly read: (values: Values<Options>, given: Given) => Arguments;
}

/** `read` returns null for --help. */
export function argumentsOf<Options extends OptionTable, Arguments>(
  specification: Specification<Options, Arguments>,
) {
  const { form, about, notes, options, read } = specification;
  const table = Object.entries<Option<unknown>>({ ...options, help: flag('this text') });
  const heads = table.map(([name, { form }]) => `  --${name} ${form}`.trimEnd());
  const width = Math.max(...heads.map((head) => head.length)) + 2;
  const indent = `\n${' '.repeat(width)}`;
  const lines = table.map(
    ([, { about }], i) => `${heads[i]?.padEnd(width)}${about.replaceAll('\n', indent)}`,
  );
  return {
    help: `Usage: ${form}\n\n${about}\n\nOptions:\n${lines.join('\n')}\n\n${notes}\n`,
    /** @throws StartError */
    read: (argv: readonly string[]): Arguments | null => {
      try {
        const { values, positionals } = parse(argv, table);
        if (values.help) return null;
        const found = table.map(([name, option]) => [name, option.read(values[name], `--${name}`)]);
        const { help: _, ...own } = Object.fromEntries(found);
        return read(own as Values<Options>, { operands: positionals, argv });
      } catch (error) {
        if (!(error instanceof Misuse)) throw error;
        throw new StartError(`${error.message}\nUsage: ${form}; --help explains them`);
      }
    },
  };
}

function parse(argv: readonly string[], table: readonly [string, Option<unknown>][]) {
  const options = table.map(([name, { form }]) => {
    const type: 'boolean' | 'string' = form === '' ? 'boolean' : 'string';
    return [name, { type, ...(name === 'help' && { short: 'h' }) }] as const;
  });
  try {
    return parseArgs({ args: [...argv], allowPositionals: true, options: Object.fromEntries(options) });
  } catch (error) {
    throw new Misuse(error instanceof Error ? error.message : String(error));
  }
}

/** @throws UsageError */
export function onlyOptions<Values>(values: Values, { operands: [first] }: Given): Values {
  if (first !== undefined) throw new Misuse(`${JSON.stringify(first)} is no option`);
  return values;
}

/** Requires exactly one operand. @throws UsageError */
export function withFile<Values>(values: Values, { operands: [file, ...more] }: Given) {
  if (file === undefined || more.length > 0) throw new Misuse('exactly one FILE is needed');
  return { ...values, file };
}
