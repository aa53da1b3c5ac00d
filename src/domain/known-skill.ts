/**
 * So many learners make a skill known that was never set. Below it the skill is rare: what is answered once, or misspelt,
 * must not lower everybody's coverage.
 */
export const learnersOfKnownSkill = 5;
