export const learn = 0.15;
export const guess = 0.2;
export const slip = 0.1;

export interface SkillRecord {
  readonly mastery: number;
  readonly attempts: number;
  readonly correct: number;
}

const newRecord: SkillRecord = { mastery: 0.3, attempts: 0, correct: 0 };

/** Bayes' rule, then learning. */
export function updateMastery(mastery: number, isCorrect: boolean): number {
  const known = mastery * (isCorrect ? 1 - slip : slip);
  const unknown = (1 - mastery) * (isCorrect ? guess : 1 - guess);
  const posterior = known / (known + unknown);
  return posterior + (1 - posterior) * learn;
}

export function applyAnswer({ mastery, attempts, correct }: SkillRecord, isCorrect: boolean): SkillRecord {
  return {
    mastery: updateMastery(mastery, isCorrect),
    attempts: attempts + 1,
    correct: correct + (isCorrect ? 1 : 0),
  };
}

export const parseRecord = (stored: string | null | undefined): SkillRecord =>
  stored ? (JSON.parse(stored) as SkillRecord) : newRecord;

export interface TracedAnswer {
  readonly masteryBefore: number;
  readonly after: SkillRecord;
}

export const buildResponse = ({ masteryBefore, after }: TracedAnswer): object => ({
  success: true,
  data: {
    mastery_before: masteryBefore,
    mastery_after: after.mastery,
    velocity: after.mastery - masteryBefore,
    plateau_detected: false,
    total_attempts: after.attempts,
    correct_attempts: after.correct,
    recommendation: null,
  },
});
