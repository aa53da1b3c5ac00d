import { conditionsFor } from '../answer/conditions.js';
import { clamp, logit, wholeDays } from '../base/common.js';
import type { ItemModel } from '../catalogue/tenant-model.js';
import { isMastered } from '../learner/expected.js';
import { viewUnseen } from '../learner/skill-view.js';
import type { Standing } from '../score/assessment.js';
import { askedOf } from '../tracing/course.js';
import { type AnswerStates, type LearnerState, recallItem } from '../tracing/states.js';
import { nextItemsModel } from './advice-constants.js';
import { type Judged, judge, nameOf } from './study-advice.js';
import { texts as allTexts, withNames } from './texts.js';

export interface Candidate {
  readonly index: number;
  readonly skillId: string;
  readonly pCorrect: number;
  readonly mastery: number;
  /** Points of its section per hour. */
  readonly gain: number;
  readonly rightLastHour: boolean;
}

/**
 * Orders by gain x exp(-(logit p - logit target)^2 / 2). Items answered correctly within the hour come last.
 * @param target between 0 and 1
 */
export function orderCandidates<Of extends Candidate>(
  candidates: readonly Of[],
  target: number,
  limit: number,
): Of[] {
  const ranked = candidates.map((candidate) => rank(candidate, target)).sort(byRank);
  const parts = [false, true].map((isRecent) =>
    ranked.flatMap(({ candidate }) => (candidate.rightLastHour === isRecent ? [candidate] : [])),
  );
  return spread(parts, limit);
}

/** Logarithms: products of small numbers would tie at 0. */
function rank<Of extends Candidate>(candidate: Of, target: number) {
  const distance = Math.abs(distanceOf(candidate, target));
  return { candidate, distance, worth: Math.log(candidate.gain) - distance ** 2 / 2 };
}

type Ranked = ReturnType<typeof rank<Candidate>>;

/** Compares the values, because Infinity - Infinity is NaN. */
function byRank(a: Ranked, b: Ranked): number {
  if (a.worth !== b.worth) return a.worth > b.worth ? -1 : 1;
  return a.distance - b.distance || a.candidate.index - b.candidate.index;
}

const { surest } = nextItemsModel;

/** Logits; positive if easier. */
const distanceOf = ({ pCorrect }: Pick<Candidate, 'pCorrect'>, target: number): number =>
  logit(clamp(pCorrect, 1 - surest, surest)) - logit(target);

/** Allows at most three items of a skill in a row. */
function spread<Of extends Candidate>(parts: readonly (readonly Of[])[], limit: number): Of[] {
  const order: Of[] = [];
  for (const part of parts) {
    const held: Of[] = [];
    for (const candidate of part) {
      if (isRowFull(order, candidate)) {
        held.push(candidate);
        continue;
      }
      order.push(candidate);
      while (held[0] && !isRowFull(order, held[0])) order.push(held.shift() as Of);
    }
    order.push(...held);
  }
  return order.slice(0, limit);
}

const { maxInRow } = nextItemsModel;

const isRowFull = (order: readonly Candidate[], { skillId }: Candidate): boolean =>
  order.length >= maxInRow && order.slice(-maxInRow).every((one) => one.skillId === skillId);

export interface Question {
  readonly skillId: string;
  readonly itemId: string | null;
  /** Logits; null if not supplied. */
  readonly questionDifficulty: number | null;
  readonly item: ItemModel | null;
  /** The learner's record; null without an item id, undefined if not stored. */
  readonly met: AnswerStates['item'];
}

export interface JudgedCandidate extends Candidate, Pick<Judged, 'view' | 'code'> {}

export function judgeQuestions(standing: Standing, questions: readonly Question[]): JudgedCandidate[] {
  const { learner, views, model, now } = standing;
  const viewOf = new Map(views.map((view) => [view.skillId, view]));
  const judged = new Map<string, Judged>();
  const judgedOf = (skillId: string): Judged => {
    const known =
      judged.get(skillId) ?? judge(viewOf.get(skillId) ?? viewUnseen(skillId, model, now), standing);
    judged.set(skillId, known);
    return known;
  };
  return questions.map((question, index) => {
    const { skillId, questionDifficulty, item, met } = question;
    const { view, code, gain } = judgedOf(skillId);
    const states = { asked: askedOf(skillId, question.itemId), learner, skill: view.state, item: met };
    const { pCorrect } = conditionsFor(model, skillId, item, states, { occurredAt: now, questionDifficulty });
    const rightLastHour = wasRightLately(learner, met, now);
    return { index, skillId, pCorrect, mastery: view.mastery, gain, rightLastHour, view, code };
  });
}

function wasRightLately({ items }: LearnerState, met: AnswerStates['item'], now: number): boolean {
  const trace = met === null ? null : recallItem(items, met);
  return trace !== null && trace.wrongRun === 0 && now - trace.at * 1000 < nextItemsModel.recentMs;
}

const texts = allTexts.en.nextItem;

type ReasonCode = keyof typeof texts;
export const reasonCodes = Object.keys(texts) as ReasonCode[];

export function reasonOf(candidate: JudgedCandidate, target: number, standing: Standing) {
  const { view, pCorrect, skillId } = candidate;
  const code = reasonCodeOf(candidate, target, standing);
  const figures = {
    chance: percentOf(pCorrect),
    target: percentOf(target),
    days: wholeDays(view.state.lastAttemptAt, standing.now),
  };
  const text = withNames((skill) => texts[code](skill, figures), nameOf(standing, skillId));
  return { code, text };
}

function reasonCodeOf(candidate: JudgedCandidate, target: number, standing: Standing): ReasonCode {
  const { rightLastHour, view, code } = candidate;
  if (rightLastHour) return 'ANSWERED_RECENTLY';
  if (code === 'REVIEW_DUE') return 'REVIEW_DUE';
  if (isMastered(view, standing)) return 'MASTERED';
  if (view.state.attempts === 0) return 'NEW_SKILL';
  const distance = distanceOf(candidate, target);
  if (Math.abs(distance) <= nextItemsModel.levelWidth) return 'RIGHT_LEVEL';
  return distance < 0 ? 'HARDER_THAN_TARGET' : 'EASIER_THAN_TARGET';
}

const percentOf = (share: number): number => clamp(Math.round(100 * share), 1, 99);
