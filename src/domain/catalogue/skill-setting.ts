/** What can be set of a skill, and which parameters may be set by hand. */

import { type BktParameters, guessSlipMargin, wrongAnswerShare } from '../base/params.js';
import { pStar } from '../tracing/bkt.js';
import { type SkillEntry, unplaced } from './catalogue.js';

export type SkillSetting = Pick<SkillEntry, 'name' | 'section' | 'weight' | 'parameters'>;

/** What a skill has that was never set. */
export const unsetSkill: SkillSetting = { name: null, ...unplaced, parameters: null };

export const sameSetting = (a: SkillSetting, b: SkillSetting): boolean =>
  a.name === b.name &&
  a.section === b.section &&
  a.weight === b.weight &&
  sameParameters(a.parameters, b.parameters);

function sameParameters(a: BktParameters | null, b: BktParameters | null): boolean {
  if (a === null || b === null) return a === b;
  return a.pInit === b.pInit && a.pLearn === b.pLearn && a.pGuess === b.pGuess && a.pSlip === b.pSlip;
}

/** A parameter that does not go with the others, and what it may be. */
export interface Misfit {
  readonly parameter: keyof BktParameters;
  readonly message: string;
}

/** Sums of decimals are off by less. */
const tolerance = 1e-9;

/**
 * Why parameters that are each in range cannot be served together, or null: a right answer must speak for mastery
 * (`guessSlipMargin`), and a wrong first answer must lower it (`wrongAnswerShare`).
 */
export function misfitOf(parameters: BktParameters): Misfit | null {
  const { pInit, pGuess, pSlip } = parameters;
  const most = 1 - guessSlipMargin;
  if (pGuess + pSlip > most + tolerance) {
    return { parameter: 'pSlip', message: `must be at most ${decimal(most - pGuess)}, ${most} less p_guess` };
  }
  const limit = wrongAnswerShare * pInit;
  if (pStar(parameters) < limit) return null;
  const below = (limit * (1 - pSlip - pGuess)) / (1 - pGuess);
  return {
    parameter: 'pLearn',
    message: `must be below ${decimal(below)}, ${wrongAnswerShare} * p_init * (1 - p_slip - p_guess) / (1 - p_guess)`,
  };
}

/** Cut to 4 decimals, so that the bound in the message is allowed. */
const decimal = (value: number): number => Math.max(0, Math.floor(value * 1e4 + tolerance)) / 1e4;
