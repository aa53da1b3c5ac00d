export const masteryMeaning =
  'Mastery is the probability that the learner knows the skill, estimated from the answers on this skill alone. A skill counts as mastered from 95 % on, when at least 75 % of the next answers are expected to be right.';

export const MasteryMeaning = () => (
  <details>
    <summary>What mastery means</summary>
    <p>{masteryMeaning}</p>
  </details>
);
