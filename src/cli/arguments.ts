/** The arguments of a command: one table of options gives what --help lists, what is read, and its types. */
import { parseArgs } from 'node:util';
import { plainName } from '../contracts/ids.js';
import { StartError } from '../lifecycle.js';

/** Makes the error for wrong arguments: one line, and a hint at --help. */
export type Usage = (problem: string) => StartError;

interface Option<Value> {
  /** What stands for the value in --help; '' for a flag. */
  readonly form: string;
  /** Lines of --help. */
  readonly about: string;
  /** @param name with its dashes */
  readonly read: (given: string | boolean | undefined, name: string, usage: Usage) => Value;
}

export const flag = (about: string): Option<boolean> => ({
  form: '',
  about,
  read: (given) => given === true,
});

/** An option with a value; null where it is not given. */
export const option = <Value>(
  form: string,
  about: string,
  read: (text: string, name: string, usage: Usage) => Value,
): Option<Value | null> => ({
  form,
  about,
  read: (given, name, usage) => (typeof given === 'string' ? read(given, name, usage) : null),
});

export const integerOption = (low: number, high: number, about: string): Option<number | null> =>
  option('N', about, (text, name, usage) => {
    const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= low && value <= high) return value;
    throw usage(`${name} ${JSON.stringify(text)}: an integer from ${low} to ${high} is needed`);
  });

export const jsonFlag = flag('result as one line of JSON');

export const defaultTenant = 'default';

export const tenantOption = (about: string): Option<string | null> =>
  option('T', about, (text, name) => {
    if (plainName.test(text)) return text;
    throw new StartError(`${name} ${JSON.stringify(text)}: 1 to 128 of A-Za-z0-9._~- are allowed`);
  });

type OptionTable = Readonly<Record<string, Option<unknown>>>;

/** What the options of a table were read as. */
export type Values<Options extends OptionTable> = {
  readonly [Name in keyof Options]: ReturnType<Options[Name]['read']>;
};

/** What was given beside the options. */
interface Given {
  readonly operands: readonly string[];
  readonly argv: readonly string[];
  readonly usage: Usage;
}

interface Specification<Options extends OptionTable, Arguments> {
  /** One line: the command with its arguments. */
  readonly form: string;
  /** Texts of --help before and after the options. */
  readonly about: string;
  readonly notes: string;
  readonly options: Options;
  /** @throws StartError for values that do not go together */
  readonly read: (values: Values<Options>, given: Given) => Arguments;
}

/** @returns the text of --help, and what reads the arguments: null where help is asked for */
export function argumentsOf<Options extends OptionTable, Arguments>({
  form,
  about,
  notes,
  options,
  read,
}: Specification<Options, Arguments>) {
  const table = Object.entries<Option<unknown>>({ ...options, help: flag('this text') });
  const heads = table.map(([name, { form }]) => `  --${name} ${form}`.trimEnd());
  const width = Math.max(...heads.map((head) => head.length)) + 2;
  const indent = `\n${' '.repeat(width)}`;
  const lines = table.map(
    ([, { about }], i) => `${heads[i]?.padEnd(width)}${about.replaceAll('\n', indent)}`,
  );
  const usage: Usage = (problem) => new StartError(`${problem}\nUsage: ${form}; --help explains them`);
  return {
    help: `Usage: ${form}\n\n${about}\n\nOptions:\n${lines.join('\n')}\n\n${notes}\n`,
    read: (argv: readonly string[]): Arguments | null => {
      const { values, positionals } = parse(argv, table, usage);
      if (values.help) return null;
      const found = table.map(([name, option]) => [name, option.read(values[name], `--${name}`, usage)]);
      const { help: _, ...own } = Object.fromEntries(found);
      // Each value has the type that its own option reads.
      return read(own as Values<Options>, { operands: positionals, argv, usage });
    },
  };
}

/** @throws StartError for an unknown option, or one without its value */
function parse(argv: readonly string[], table: readonly [string, Option<unknown>][], usage: Usage) {
  const options = table.map(([name, { form }]) => {
    const type: 'boolean' | 'string' = form === '' ? 'boolean' : 'string';
    return [name, { type, ...(name === 'help' && { short: 'h' }) }] as const;
  });
  try {
    return parseArgs({ args: [...argv], allowPositionals: true, options: Object.fromEntries(options) });
  } catch (error) {
    throw usage(error instanceof Error ? error.message : String(error));
  }
}

/** For a command without operands. @throws StartError */
export function onlyOptions<Values>(values: Values, { operands: [first], usage }: Given): Values {
  if (first !== undefined) throw usage(`${JSON.stringify(first)} is no option`);
  return values;
}

/** For a command on one FILE. @throws StartError */
export function withFile<Values>(values: Values, { operands: [file, ...more], usage }: Given) {
  if (file === undefined || more.length > 0) throw usage('exactly one FILE is needed');
  return { ...values, file };
}
