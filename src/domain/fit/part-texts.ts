/** The parts of the served probability that a fit publishes only where they help, in words. */
import type { PartName } from './prediction/parts.js';

export const partTexts: Readonly<Record<PartName, string>> = {
  streaks: 'streaks on a skill',
  before: 'what was practised just before',
  course: 'the skill that a course begins with',
  retries: 'first tries and retries of questions',
  itemsBefore: 'which question came before',
};
