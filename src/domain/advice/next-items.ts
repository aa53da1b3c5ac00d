import { computeConditions } from '../answer/answer-conditions.js';
import { average, clamp, countDays, logit, mapNonEmpty, type NonEmpty } from '../base/common.js';
import type { ItemModel } from '../catalogue/tenant-model.js';
import { isMastered } from '../learner/expected-accuracy.js';
import { buildUnseenView } from '../learner/skill-view.js';
import type { LearnerAssessment } from '../score/assessment.js';
import { hashQuestionKeys } from '../tracing/course.js';
import { type AnswerStates, findLiveTrace, type LearnerState } from '../tracing/learner-states.js';
import { nextItemsConstants } from './advice-constants.js';
import { adviceTexts as allTexts, withNames } from './advice-texts.js';
import { assessSkill, findSkillName, type SkillAssessment } from './study-advice.js';

export interface Candidate {
  readonly index: number;
  /** The first skill. */
  readonly skillId: string;
  readonly pCorrect: number;
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
  const ranked = candidates.map((candidate) => rankCandidate(candidate, target)).sort(compareRanks);
  const parts = [false, true].map((isRecent) =>
    ranked.flatMap(({ candidate }) => (candidate.rightLastHour === isRecent ? [candidate] : [])),
  );
  return spreadSkills(parts, limit);
}

/** Logarithms: products of small numbers would tie at 0. */
function rankCandidate<Of extends Candidate>(candidate: Of, target: number) {
  const distance = Math.abs(computeDistance(candidate, target));
  return { candidate, distance, worth: Math.log(candidate.gain) - distance ** 2 / 2 };
}

type RankedCandidate = ReturnType<typeof rankCandidate<Candidate>>;

/** Compares the values, because Infinity - Infinity is NaN. */
function compareRanks(a: RankedCandidate, b: RankedCandidate): number {
  if (a.worth !== b.worth) return a.worth > b.worth ? -1 : 1;
  return a.distance - b.distance || a.candidate.index - b.candidate.index;
}

const { maxProbability } = nextItemsConstants;

/** Logits; positive if easier. */
const computeDistance = ({ pCorrect }: Pick<Candidate, 'pCorrect'>, target: number): number =>
  logit(clamp(pCorrect, 1 - maxProbability, maxProbability)) - logit(target);

/** Allows at most three items of a skill in a row. */
function spreadSkills<Of extends Candidate>(parts: readonly (readonly Of[])[], limit: number): Of[] {
  const order: Of[] = [];
  for (const part of parts) {
    const deferred: Of[] = [];
    for (const candidate of part) {
      if (isRunFull(order, candidate)) {
        deferred.push(candidate);
        continue;
      }
      order.push(candidate);
      while (deferred[0] && !isRunFull(order, deferred[0])) order.push(deferred.shift() as Of);
    }
    order.push(...deferred);
  }
  return order.slice(0, limit);
}

const { maxInRow } = nextItemsConstants;

const isRunFull = (order: readonly Candidate[], { skillId }: Candidate): boolean =>
  order.length >= maxInRow && order.slice(-maxInRow).every((one) => one.skillId === skillId);

export interface Question {
  readonly skillIds: NonEmpty<string>;
  readonly itemId: string | null;
  /** Logits; null if not supplied. */
  readonly questionDifficulty: number | null;
  readonly item: ItemModel | null;
  /** The learner's record; null without an item id, undefined if not stored. */
  readonly itemRecord: AnswerStates['item'];
}

export interface AssessedCandidate extends Candidate {
  readonly skills: NonEmpty<SkillAssessment>;
}

export function assessQuestions(
  assessment: LearnerAssessment,
  questions: readonly Question[],
): AssessedCandidate[] {
  const { learner, views, model, now } = assessment;
  const viewOf = new Map(views.map((view) => [view.skillId, view]));
  const assessedSkills = new Map<string, SkillAssessment>();
  const assessOnce = (skillId: string): SkillAssessment => {
    const known =
      assessedSkills.get(skillId) ??
      assessSkill(viewOf.get(skillId) ?? buildUnseenView(skillId, model, now), assessment);
    assessedSkills.set(skillId, known);
    return known;
  };
  return questions.map((question, index) => {
    const { skillIds, questionDifficulty, item, itemRecord } = question;
    const skills = mapNonEmpty(skillIds, assessOnce);
    const states = {
      keys: hashQuestionKeys(skillIds, question.itemId),
      learner,
      skills: mapNonEmpty(skills, ({ view }) => view.state),
      item: itemRecord,
    };
    const { pCorrect } = computeConditions(model, skillIds, item, states, {
      occurredAt: now,
      questionDifficulty,
    });
    const rightLastHour = wasRecentlyCorrect(learner, itemRecord, now);
    return { index, skillId: skillIds[0], pCorrect, gain: averageGain(skills), rightLastHour, skills };
  });
}

/** The skills of a question share the time of practice. */
const averageGain = (skills: NonEmpty<SkillAssessment>): number => average(skills, ({ gain }) => gain);

function wasRecentlyCorrect({ items }: LearnerState, itemRecord: AnswerStates['item'], now: number): boolean {
  const trace = itemRecord === null ? null : findLiveTrace(items, itemRecord);
  return trace !== null && trace.wrongRun === 0 && now - trace.at * 1000 < nextItemsConstants.recentMs;
}

const texts = allTexts.en.nextItem;

type ReasonCode = keyof typeof texts;
export const reasonCodes = Object.keys(texts) as ReasonCode[];

export function explainCandidate(
  candidate: AssessedCandidate,
  target: number,
  assessment: LearnerAssessment,
) {
  const { skills, pCorrect } = candidate;
  const skill = selectReasonSkill(skills, assessment);
  const { view } = skill;
  const code = selectReasonCode(candidate, skill, target, assessment);
  const figures = {
    chance: toPercent(pCorrect),
    target: toPercent(target),
    days: countDays(view.state.lastAttemptAt, assessment.now),
  };
  const text = withNames((skill) => texts[code](skill, figures), findSkillName(assessment, view.skillId));
  return { code, text };
}

/** The skill that most needs practice. */
const selectReasonSkill = (
  skills: NonEmpty<SkillAssessment>,
  assessment: LearnerAssessment,
): SkillAssessment =>
  skills.find(({ code }) => code === 'REVIEW_DUE') ??
  skills.find(({ view }) => view.state.attempts === 0) ??
  skills.find(({ view }) => !isMastered(view, assessment)) ??
  skills[0];

function selectReasonCode(
  candidate: Candidate,
  { view, code }: SkillAssessment,
  target: number,
  assessment: LearnerAssessment,
): ReasonCode {
  if (candidate.rightLastHour) return 'ANSWERED_RECENTLY';
  if (code === 'REVIEW_DUE') return 'REVIEW_DUE';
  if (isMastered(view, assessment)) return 'MASTERED';
  if (view.state.attempts === 0) return 'NEW_SKILL';
  const distance = computeDistance(candidate, target);
  if (Math.abs(distance) <= nextItemsConstants.levelWidth) return 'RIGHT_LEVEL';
  return distance < 0 ? 'HARDER_THAN_TARGET' : 'EASIER_THAN_TARGET';
}

const toPercent = (share: number): number => clamp(Math.round(100 * share), 1, 99);
