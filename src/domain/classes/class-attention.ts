/** Learners of a class who need the teacher today. */
import { withNames } from '../advice/advice-texts.js';
import { countDaysUntil } from '../score/goal.js';
import { classConstants } from './class-constants.js';
import { countIdleDays, type Status, type StatusInput } from './learner-status.js';

/** Most urgent first: without answers no other help works, a goal has a date, a fall is new, a plateau may be old. */
export const attentionCodes = ['IDLE', 'GOAL_UNLIKELY', 'DECLINE', 'STUCK'] as const;

/** Of the latest answers of a learner to a skill. */
export interface LatestAnswers {
  readonly skillId: string;
  readonly answers: number;
  readonly correct: number;
}

export interface AttentionSubject extends Pick<StatusInput, 'lastAnswerAt' | 'targetDate' | 'chance'> {
  readonly userId: string;
  readonly status: Status;
  /** Points that recent accuracy is below earlier accuracy; null: no clear fall. */
  readonly fallPoints: number | null;
  /** `answers` 0: unknown. Null: not stuck. */
  readonly stuck: (LatestAnswers & { readonly skillName: string }) | null;
}

export type Attention = NonNullable<ReturnType<typeof findAttention>>;

/** The most urgent reason of a learner; null: none. A smaller `rank` is more urgent within the code. */
function findAttention({ userId, stuck, ...subject }: AttentionSubject, now: number) {
  const build = (code: (typeof attentionCodes)[number], rank: number, text: string) => ({
    ...{ userId, code, rank, text, skillId: code === 'STUCK' && stuck !== null ? stuck.skillId : null },
  });
  const idleDays = countIdleDays(subject, now) ?? 0;
  const { days, activeDays } = classConstants.idle;
  if (idleDays >= days + activeDays) return null;
  if (idleDays >= days) return build('IDLE', -idleDays, `no answers for ${idleDays} days`);
  const daysLeft = countUrgentDays(subject, now);
  if (daysLeft !== null) return build('GOAL_UNLIKELY', daysLeft, describeGoal(daysLeft, subject.chance ?? 0));
  const { fallPoints } = subject;
  if (fallPoints !== null)
    return build('DECLINE', -fallPoints, `recent accuracy ${fallPoints} points below earlier accuracy`);
  if (stuck === null) return null;
  const { skillName, answers, correct } = stuck;
  const results = answers === 0 ? '' : `: ${correct} of the last ${answers} right`;
  const text = withNames((name) => `stuck on ${name}${results}`, skillName);
  return build('STUCK', answers === 0 ? 1 : correct / answers, text);
}

/** Days to a goal that is soon and unlikely; else null. */
function countUrgentDays(
  { status, targetDate, chance }: Pick<AttentionSubject, 'status' | 'targetDate' | 'chance'>,
  now: number,
): number | null {
  const { withinDays, below } = classConstants.goal;
  if ((status !== 'at_risk' && status !== 'unlikely') || chance === null || chance >= below) return null;
  const days = countDaysUntil(targetDate, now);
  return days !== null && days <= withinDays ? days : null;
}

function describeGoal(days: number, chance: number): string {
  const due = days === 0 ? 'today' : days === 1 ? 'tomorrow' : `in ${days} days`;
  return `goal ${due}, ${chance < 0.01 ? 'less than 1' : Math.floor(100 * chance)} % likely`;
}

/** Codes take turns, so that ten idle learners do not hide the others. @param now Unix milliseconds */
export function selectAttention(subjects: readonly AttentionSubject[], now: number): Attention[] {
  const found = subjects.flatMap((subject) => findAttention(subject, now) ?? []);
  const byUrgency = (a: Attention, b: Attention) => a.rank - b.rank || (a.userId < b.userId ? -1 : 1);
  const inTurns = attentionCodes.flatMap((code, order) => {
    const ofCode = found.filter((one) => one.code === code).sort(byUrgency);
    return ofCode.map((one, turn) => ({ one, place: attentionCodes.length * turn + order }));
  });
  const sorted = inTurns.sort((a, b) => a.place - b.place);
  return sorted.slice(0, classConstants.listed.attention).map(({ one }) => one);
}

/** The plateau with the fewest right answers. @param plateaus lowest mastery first @param latest null: unknown */
export function selectStuckSkill(
  plateaus: readonly string[],
  latest: readonly LatestAnswers[] | null,
): LatestAnswers | null {
  const [skillId] = plateaus;
  if (latest === null) return skillId === undefined ? null : { skillId, answers: 0, correct: 0 };
  const [worst] = latest
    .filter((one) => plateaus.includes(one.skillId))
    .sort((a, b) => a.correct / a.answers - b.correct / b.answers);
  return worst === undefined || worst.correct > classConstants.stuck.atMost ? null : worst;
}
