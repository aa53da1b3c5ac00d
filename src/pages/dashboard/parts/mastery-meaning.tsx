export const masteryMeaning =
  'Mastery is the probability that the learner knows the skill, estimated from the answers on this skill only. A skill is mastered if mastery is at least 95 % and the expected accuracy is at least 75 %.';

export const MasteryMeaning = () => (
  <details>
    <summary>What mastery means</summary>
    <p>{masteryMeaning}</p>
  </details>
);
