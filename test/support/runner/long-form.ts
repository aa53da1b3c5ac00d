/**
 * How much a fault test does: a short form in `npm test`, the long one in `npm run test:full`, which also tells how
 * many rounds are wanted and the seed of every random choice.
 */
import { randomInt } from 'node:crypto';

const names = { rounds: 'TEST_FAULT_ROUNDS', seed: 'TEST_FAULT_SEED', progress: 'TEST_FAULT_PROGRESS' };
const given = (name: string): number | null => {
  const text = process.env[name] ?? '';
  return text === '' ? null : Number(text);
};

/** What `npm run test:full` tells the tests' processes. */
export interface LongForm {
  /** Null: each test's own number. */
  readonly rounds: number | null;
  readonly seed: number;
  /** Whether somebody watches. */
  readonly progress: boolean;
}

export const longFormEnv = ({ rounds, seed, progress }: LongForm): Record<string, string> => ({
  [names.rounds]: `${rounds ?? 0}`,
  [names.seed]: `${seed}`,
  [names.progress]: progress ? '1' : '0',
});

const wantedRounds = given(names.rounds);

export const isLongForm = wantedRounds !== null;

/** Rounds, cases or requests of a test: in `npm test`, and in the long form where nobody asks for another number; one of test/full has the long form alone. */
export const roundsOf = (short: number, long = short): number =>
  wantedRounds === null ? short : wantedRounds || long;

/** Every `step`-th of a list of cases, beginning with the first: all of them in the long form. */
export const casesOf = <Case>(cases: readonly Case[], step: number): Case[] =>
  cases.filter((_, i) => isLongForm || i % step === 0);

/** Seed of all random choices of this process; a test that fails tells it. */
export const faultSeed = given(names.seed) ?? randomInt(2 ** 32 - 1);

/** A line for who watches. */
export function progress(line: string): void {
  if (given(names.progress) === 1) process.stderr.write(`${line}\n`);
}
