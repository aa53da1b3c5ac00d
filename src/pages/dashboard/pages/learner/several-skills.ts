export const severalSkillsMeaning =
  'A correct answer is evidence for every skill of the question. An incorrect answer lowers most the skill that was probably missing.';

/** @param others names of the other skills of a question */
export const formatTogether = (others: readonly string[]): string =>
  others.length === 0 ? '' : `, together with ${others.join(', ')}`;
