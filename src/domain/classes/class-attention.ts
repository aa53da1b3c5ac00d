/** Learners of a class who need the teacher today. */
import { withNames } from '../advice/advice-texts.js';
import { countDaysUntil } from '../score/goal.js';
import { classConstants } from './class-constants.js';
import { countIdleDays, type Status, type StatusInput } from './learner-status.js';

/**
 * Most urgent first: without answers no other help works; fast answers show nothing; a fall is new, a plateau may be old.
 * A goal comes last, because the other reasons are causes.
 */
export const attentionCodes = ['IDLE', 'RAPID', 'DECLINE', 'STUCK', 'GOAL_UNLIKELY'] as const;
type AttentionCode = (typeof attentionCodes)[number];

interface NamedSkill {
  readonly skillId: string;
  readonly skillName: string;
}

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
  /** With answers that are too fast to be solutions; null: none. */
  readonly rapid: (NamedSkill & { readonly rapidSkills: number }) | null;
  /** `answers` 0: unknown. Null: not stuck. */
  readonly stuck: (NamedSkill & LatestAnswers) | null;
}

export interface Attention {
  readonly userId: string;
  readonly code: AttentionCode;
  readonly skill: NamedSkill | null;
  readonly text: string;
  /** Smaller is more urgent. Compares entries with the same code. */
  readonly rank: number;
}

/** The most urgent reason of a learner; null: none. */
function findAttention(subject: AttentionSubject, now: number): Attention | null {
  const { userId, rapid, fallPoints, stuck } = subject;
  const goal = describeGoal(subject, now);
  const build = (code: AttentionCode, rank: number, text: string, skill: NamedSkill | null = null) => ({
    ...{ userId, code, rank, skill, text: goal === null ? text : `${text}; ${goal.text}` },
  });
  const idleDays = countIdleDays(subject, now) ?? 0;
  const { days, activeDays } = classConstants.idle;
  if (idleDays >= days + activeDays) return null;
  if (idleDays >= days) return build('IDLE', idleDays, `no answers for ${idleDays} days`);
  if (rapid !== null)
    return build('RAPID', -rapid.rapidSkills, withNames(texts.rapid, rapid.skillName), rapid);
  if (fallPoints !== null) return build('DECLINE', -fallPoints, texts.fall(fallPoints));
  if (stuck !== null) return build('STUCK', computeShare(stuck), describeStuck(stuck), stuck);
  return goal && { userId, code: 'GOAL_UNLIKELY', rank: goal.days, skill: null, text: goal.text };
}

const texts = {
  rapid: (skill: string) => `many answers on ${skill} are too fast to be solutions`,
  fall: (points: number) => `recent accuracy ${points} points below earlier accuracy`,
};

const computeShare = ({ answers, correct }: LatestAnswers): number => (answers === 0 ? 1 : correct / answers);

function describeStuck({ skillName, answers, correct }: NamedSkill & LatestAnswers): string {
  const results = answers === 0 ? '' : `: ${correct} of the last ${answers} right`;
  return withNames((name) => `stuck on ${name}${results}`, skillName);
}

/** A goal that is soon and unlikely; else null. */
function describeGoal({ status, targetDate, chance }: AttentionSubject, now: number) {
  const { withinDays, below } = classConstants.goal;
  const days = countDaysUntil(targetDate, now);
  const isOpen = status === 'at_risk' || status === 'unlikely';
  if (!isOpen || chance === null || chance >= below || days === null || days > withinDays) return null;
  const due = days === 0 ? 'today' : days === 1 ? 'tomorrow' : `in ${days} days`;
  return { days, text: `goal ${due}, ${describeChance(chance)}` };
}

/** Rounds down, so that a chance below a limit never reads like the limit. @param chance 0 to 1 */
export const describeChance = (chance: number): string =>
  `${chance < 0.01 ? 'less than 1' : Math.floor(100 * chance)} % likely`;

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
  const ofPlateaus = latest.filter((one) => plateaus.includes(one.skillId));
  const [worst] = ofPlateaus.sort((a, b) => computeShare(a) - computeShare(b));
  return worst === undefined || worst.correct > classConstants.stuck.atMost ? null : worst;
}
