import type { GoalStatus } from '../score/goal.js';

/** Local days without an answer; minimum number of answers to judge a forecast. */
export const statusRule = { idleDays: 14, fewAnswers: 20 } as const;

export type Status = GoalStatus | 'idle' | 'few';

/** Most urgent first. */
export const statusTexts: Readonly<Record<Status, string>> = {
  unlikely: 'Unlikely',
  at_risk: 'At risk',
  expired: 'Goal date passed',
  idle: 'Idle',
  few: 'Too few answers',
  none: 'No goal set',
  on_track: 'On track',
  reached: 'Reached',
};

export interface StatusInput {
  readonly answers: number;
  /** Local days since the last answer; null without an answer. */
  readonly idleDays: number | null;
  readonly goalStatus: GoalStatus;
  readonly isOnTrack: boolean;
  readonly currentTotal: number;
  /** Null if no goal is set. */
  readonly targetScore: number | null;
  /** Local day; null without a date. */
  readonly targetDate: string | null;
  /** Null if the forecast does not reach the target within a year. */
  readonly daysToGoal: number | null;
  /** Probability of the target; null without a goal, or after its date. */
  readonly chance: number | null;
  /** Assumed by the forecast for both sections. */
  readonly answersPerDay: number;
  /** Recent results are weaker than earlier ones. */
  readonly isFalling: boolean;
  readonly plateaus: readonly string[];
}

/** Is a goal set whose date has not passed? A goal that is reached stays open. */
export const hasOpenGoal = ({ status }: { readonly status: GoalStatus }): boolean =>
  status !== 'none' && status !== 'expired';

/** Ignores the forecast of idle learners and beginners. */
export function computeStatus({
  goalStatus,
  answers,
  idleDays,
}: Pick<StatusInput, 'answers' | 'idleDays' | 'goalStatus'>): Status {
  const hasAnswers = answers >= statusRule.fewAnswers;
  if (goalStatus === 'expired' || (goalStatus === 'reached' && hasAnswers)) return goalStatus;
  if (idleDays !== null && idleDays >= statusRule.idleDays) return 'idle';
  return hasAnswers ? goalStatus : 'few';
}

/** Null if there is nothing to explain. @param isBrief omits the answers per day */
export function explainStatus(input: StatusInput, isBrief = false): string | null {
  const gap = countMissingPoints(input);
  switch (computeStatus(input)) {
    case 'idle':
      return `no answer for ${input.idleDays} days`;
    case 'few':
      return `${input.answers} of ${statusRule.fewAnswers} answers`;
    case 'expired':
      return `${gap} below goal`;
    case 'reached':
      return gap > 0 ? `${gap} below goal again` : input.isOnTrack ? null : 'forecast falls below the goal';
    case 'at_risk':
    case 'unlikely':
      return [describeGap(input, gap), ...describePace(input, isBrief), ...describeResults(input)].join('; ');
    default:
      return describeResults(input).join('; ') || null;
  }
}

const countMissingPoints = ({ targetScore, currentTotal }: StatusInput): number =>
  Math.max(0, (targetScore ?? 0) - currentTotal);

function describeGap({ daysToGoal, isOnTrack }: StatusInput, gap: number): string {
  if (isOnTrack) return 'forecast barely meets the goal';
  if (daysToGoal !== null)
    return `forecast meets the goal in ${daysToGoal} days: too late or only temporarily`;
  return `${gap} below goal`;
}

function describePace({ answersPerDay }: StatusInput, isBrief: boolean): string[] {
  if (answersPerDay < 0.1) return ['almost no practice'];
  return isBrief ? [] : [`${answersPerDay.toFixed(1)} answers per day over 14 days`];
}

function describeResults({ isFalling, plateaus: [first, ...others] }: StatusInput): string[] {
  const more = others.length === 0 ? '' : ` and ${others.length} more`;
  return [
    ...(isFalling ? ['recent results are weaker'] : []),
    ...(first === undefined ? [] : [`plateau on ${first}${more}`]),
  ];
}
