/** Learners of a class who need the teacher today. */
import { withNames } from '../advice/advice-texts.js';
import { countDaysUntil } from '../score/goal.js';
import { classConstants } from './class-constants.js';
import type { Status, StatusInput } from './learner-status.js';

/**
 * Most urgent first. Without answers, no other help works. Fast answers show nothing. A fall is new, a plateau may be old.
 * A goal comes last, because the other reasons are causes.
 */
export const attentionCodes = ['IDLE', 'RAPID', 'DECLINE', 'STUCK', 'GOAL_UNLIKELY'] as const;
type AttentionCode = (typeof attentionCodes)[number];

/** Latest answers of a learner to a skill. `answers` 0: unknown. */
export type LatestAnswers = Readonly<Record<'answers' | 'correct', number> & Record<'skillId', string>>;

export interface AttentionSubject extends Pick<StatusInput, 'idleDays' | 'targetDate' | 'chance'> {
  readonly userId: string;
  readonly status: Status;
  /** Points that recent accuracy is below earlier accuracy; null: no clear fall. */
  readonly fallPoints: number | null;
  /** Skills with many answers that are too fast to be solutions. */
  readonly rapidSkills: readonly string[];
  readonly stuck: LatestAnswers | null;
}

interface Reason {
  readonly code: AttentionCode;
  /** Smaller is more urgent. Compares reasons with the same code. */
  readonly rank: number;
  readonly text: string;
  readonly skillId: string | null;
}
type NameSkill = (skillId: string) => string;

function findCause(subject: AttentionSubject, nameSkill: NameSkill): Reason | null {
  const { rapidSkills, fallPoints, stuck } = subject;
  const idleDays = subject.idleDays ?? 0;
  const { days, activeDays } = classConstants.idle;
  if (idleDays >= days + activeDays) return null;
  if (idleDays >= days)
    return { code: 'IDLE', rank: idleDays, text: `no answers for ${idleDays} days`, skillId: null };
  const [rapid] = rapidSkills;
  if (rapid !== undefined) {
    const text = withNames(
      (name) => `many answers on ${name} are too fast to be solutions`,
      nameSkill(rapid),
    );
    return { code: 'RAPID', rank: -rapidSkills.length, text, skillId: rapid };
  }
  if (fallPoints !== null) {
    const text = `recent accuracy ${fallPoints} points below earlier accuracy`;
    return { code: 'DECLINE', rank: -fallPoints, text, skillId: null };
  }
  return stuck && describeStuck(stuck, nameSkill);
}

function describeStuck(stuck: LatestAnswers, nameSkill: NameSkill): Reason {
  const { answers, correct, skillId } = stuck;
  const results = answers === 0 ? '' : `: ${correct} of the last ${answers} right`;
  const text = withNames((name) => `stuck on ${name}${results}`, nameSkill(skillId));
  return { code: 'STUCK', rank: computeShare(stuck), text, skillId };
}

const computeShare = ({ answers, correct }: LatestAnswers): number => (answers === 0 ? 1 : correct / answers);

/** A goal that is soon and unlikely; else null. */
function describeGoal({ status, targetDate, chance }: AttentionSubject, today: number): Reason | null {
  const { withinDays, below } = classConstants.goal;
  const days = countDaysUntil(targetDate, today);
  const isOpen = status === 'at_risk' || status === 'unlikely';
  if (!isOpen || chance === null || chance >= below || days === null || days > withinDays) return null;
  const due = days === 0 ? 'today' : days === 1 ? 'tomorrow' : `in ${days} days`;
  return {
    code: 'GOAL_UNLIKELY',
    rank: days,
    text: `goal ${due}, ${describeChance(chance)}`,
    skillId: null,
  };
}

/** Rounds down, so that a chance below a limit never reads like the limit. @param chance 0 to 1 */
export const describeChance = (chance: number): string =>
  `${chance < 0.01 ? 'less than 1' : Math.floor(100 * chance + 1e-9)} % likely`;

/** The most urgent reason of a learner. Its text adds a goal that is near. */
function findReason(subject: AttentionSubject, nameSkill: NameSkill, today: number) {
  const [cause, goal] = [findCause(subject, nameSkill), describeGoal(subject, today)];
  const reason = cause ?? goal;
  if (reason === null) return null;
  const text = cause && goal ? `${cause.text}; ${goal.text}` : reason.text;
  return { ...reason, userId: subject.userId, text };
}

/** Codes take turns, so that ten idle learners do not hide the others. @param today local day since 1970 */
export function selectAttention(subjects: readonly AttentionSubject[], nameSkill: NameSkill, today: number) {
  const found = subjects.flatMap((subject) => findReason(subject, nameSkill, today) ?? []);
  const inTurns = attentionCodes.flatMap((code, order) =>
    found
      .filter((one) => one.code === code)
      .sort((a, b) => a.rank - b.rank || (a.userId < b.userId ? -1 : 1))
      .map((one, turn) => ({ one, place: attentionCodes.length * turn + order })),
  );
  const sorted = inTurns.sort((a, b) => a.place - b.place).map(({ one }) => one);
  return sorted.slice(0, classConstants.listed.attention);
}

/** The plateau with the fewest right answers. @param plateaus lowest mastery first @param latest null: unknown */
export function selectStuckSkill(
  plateaus: readonly string[],
  latest: readonly LatestAnswers[] | null,
): LatestAnswers | null {
  const unknown = plateaus.map((skillId) => ({ skillId, answers: 0, correct: 0 }));
  const known = latest?.filter((one) => plateaus.includes(one.skillId)) ?? unknown;
  const [worst] = known.toSorted((a, b) => computeShare(a) - computeShare(b));
  return worst === undefined || worst.correct > classConstants.stuck.atMost ? null : worst;
}
