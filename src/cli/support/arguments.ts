/** A table of options defines the --help text, the parsing and the types. */
import { parseArgs } from 'node:util';
import { parseTime } from '../../contracts/answers/events.js';
import { plainName } from '../../contracts/schema/ids.js';
import { StartError } from '../../lifecycle.js';

export class UsageError extends StartError {}

interface Option<Value> {
  /** Shown in --help; '' for a flag. */
  readonly placeholder: string;
  readonly about: string;
  /**
   * @param name with its dashes
   * @throws StartError
   */
  readonly parse: (given: string | boolean | undefined, name: string) => Value;
}

export const flag = (about: string): Option<boolean> => ({
  placeholder: '',
  about,
  parse: (given) => given === true,
});

export const option = <Value>(
  placeholder: string,
  about: string,
  parse: (text: string, name: string) => Value,
): Option<Value | null> => ({
  placeholder,
  about,
  parse: (given, name) => (typeof given === 'string' ? parse(given, name) : null),
});

export const integerOption = (low: number, high: number, about: string): Option<number | null> =>
  option('N', about, (text, name) => {
    const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= low && value <= high) return value;
    throw new UsageError(`${name} ${JSON.stringify(text)} must be an integer from ${low} to ${high}`);
  });

export const choiceOption = <Choice extends string>(
  placeholder: string,
  about: string,
  choices: readonly Choice[],
): Option<Choice | null> =>
  option(placeholder, about, (text, name) => {
    const chosen = choices.find((choice) => choice === text);
    if (chosen !== undefined) return chosen;
    throw new UsageError(`${name} ${JSON.stringify(text)} must be one of ${choices.join(', ')}`);
  });

/**
 * Unix milliseconds; a date means 0:00 UTC.
 * @param findProblem returns why a time is rejected, or null
 */
export const timeOption = (
  placeholder: string,
  about: string,
  findProblem: (ms: number) => string | null = () => null,
): Option<number | null> =>
  option(placeholder, about, (text, name) => {
    const ms = parseTime(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text);
    const problem = ms === null ? 'must be a date (YYYY-MM-DD) or an RFC 3339 time' : findProblem(ms);
    if (ms === null || problem !== null) throw new UsageError(`${name} ${JSON.stringify(text)} ${problem}`);
    return ms;
  });

export const jsonFlag = flag('print the result as one line of JSON');

export const defaultTenant = 'default';

export const tenantOption = (about: string): Option<string | null> =>
  option('T', about, (text, name) => {
    if (plainName.test(text)) return text;
    throw new StartError(`${name} ${JSON.stringify(text)} must have 1 to 128 characters of A-Za-z0-9._~-`);
  });

export type OptionTable = Readonly<Record<string, Option<unknown>>>;

export type OptionValues<Options extends OptionTable> = {
  readonly [Name in keyof Options]: ReturnType<Options[Name]['parse']>;
};

interface CommandLine {
  readonly operands: readonly string[];
  readonly argv: readonly string[];
}

interface ArgumentsSpec<Options extends OptionTable, Arguments> {
  readonly usage: string;
  readonly about: string;
  readonly examples?: readonly string[];
  readonly notes: string;
  readonly options: Options;
  /** @throws StartError */
  readonly read: (values: OptionValues<Options>, given: CommandLine) => Arguments;
}

/** `read` returns null for --help. */
export function defineArguments<Options extends OptionTable, Arguments>(
  specification: ArgumentsSpec<Options, Arguments>,
) {
  const { usage, about, examples = [], notes, options, read } = specification;
  const table = Object.entries<Option<unknown>>({ ...options, help: flag('print this help') });
  const heads = table.map(([name, { placeholder }]) => `  --${name} ${placeholder}`.trimEnd());
  const width = Math.max(...heads.map((head) => head.length)) + 2;
  const indent = `\n${' '.repeat(width)}`;
  const lines = table.map(
    ([, { about }], i) => `${heads[i]?.padEnd(width)}${about.replaceAll('\n', indent)}`,
  );
  return {
    help: `${[
      `Usage: ${usage}`,
      about,
      `Options:\n${lines.join('\n')}`,
      ...(examples.length > 0 ? [`Examples:\n${examples.map((one) => `  ${one}`).join('\n')}`] : []),
      notes,
    ].join('\n\n')}\n`,
    /** @throws StartError */
    read: (argv: readonly string[]): Arguments | null => {
      try {
        const { values, positionals } = parseOptions(argv, table);
        if (values.help) return null;
        const parsed = table.map(([name, option]) => [name, option.parse(values[name], `--${name}`)]);
        const { help: _, ...optionValues } = Object.fromEntries(parsed);
        return read(optionValues as OptionValues<Options>, { operands: positionals, argv });
      } catch (error) {
        if (!(error instanceof UsageError)) throw error;
        throw new StartError(`${error.message}\nUsage: ${usage} (--help lists the options)`);
      }
    },
  };
}

function parseOptions(argv: readonly string[], table: readonly [string, Option<unknown>][]) {
  const options = table.map(([name, { placeholder }]) => {
    const type: 'boolean' | 'string' = placeholder === '' ? 'boolean' : 'string';
    return [name, { type, ...(name === 'help' && { short: 'h' }) }] as const;
  });
  try {
    return parseArgs({ args: [...argv], allowPositionals: true, options: Object.fromEntries(options) });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

/** @throws UsageError */
export function rejectOperands<Values>(values: Values, { operands: [first] }: CommandLine): Values {
  if (first !== undefined)
    throw new UsageError(`Unexpected argument ${JSON.stringify(first)}: this command takes only options`);
  return values;
}

/** Requires exactly one operand. @throws UsageError */
export function requireFile<Values>(values: Values, { operands: [file, ...more] }: CommandLine) {
  if (file === undefined || more.length > 0) throw new UsageError('Pass exactly one FILE');
  return { ...values, file };
}
