/** Size and seed of the fault tests: short in `npm test`, long in `npm run test:full`, which sets the variables below. */
import { randomInt } from 'node:crypto';

const names = { rounds: 'TEST_FAULT_ROUNDS', seed: 'TEST_FAULT_SEED', progress: 'TEST_FAULT_PROGRESS' };
const readNumber = (name: string): number | null => {
  const text = process.env[name] ?? '';
  return text === '' ? null : Number(text);
};

export interface LongForm {
  /** Null: the default of each test. */
  readonly rounds: number | null;
  readonly seed: number;
  /** Whether to print progress lines. */
  readonly progress: boolean;
}

export const longFormEnv = ({ rounds, seed, progress }: LongForm): Record<string, string> => ({
  [names.rounds]: `${rounds ?? 0}`,
  [names.seed]: `${seed}`,
  [names.progress]: progress ? '1' : '0',
});

const rounds = readNumber(names.rounds);

export const isLongForm = rounds !== null;

/** Rounds, cases or requests of a test. @param long default of the long form, replaced by `--rounds` */
export const roundsOf = (short: number, long = short): number => (rounds === null ? short : rounds || long);

/** All cases in the long form; otherwise each `step`-th, starting with the first. */
export const casesOf = <Case>(cases: readonly Case[], step: number): Case[] =>
  cases.filter((_, i) => isLongForm || i % step === 0);

/** Seed of all random choices of this process. */
export const faultSeed = readNumber(names.seed) ?? randomInt(2 ** 32 - 1);

/** Prints a line if `longFormEnv` asked for it. */
export function progress(line: string): void {
  if (readNumber(names.progress) === 1) process.stderr.write(`${line}\n`);
}
