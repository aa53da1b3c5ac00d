import { type Answer, dayMs, sigmoid, toDay } from '../base/common.js';
import { projectLearning } from '../base/score-constants.js';
import { computeSectionShare } from '../catalogue/catalogue.js';
import { computeAbilityEvidence, updateAbilities } from '../tracing/ability.js';
import { countActivity } from '../tracing/activity.js';
import { computeEffectiveMastery, traceAnswer } from '../tracing/bkt.js';
import { updateCalibration } from '../tracing/calibration.js';
import {
  type AnswerStates,
  advanceWindow,
  hasSteadyMastery,
  type ItemWindow,
  isAccuracySufficient,
  isMasteryReached,
  type LearnerState,
  type SkillState,
  selectTraces,
} from '../tracing/learner-states.js';
import { closeDay } from '../tracing/momentum.js';
import { isPlateau, updatePlateau } from '../tracing/plateau.js';
import { isRapid, updatePace, updateRapid } from '../tracing/response-times.js';
import { type LearnerTrace, type SkillTrace, updateTraces } from '../tracing/traces.js';
import { computeExpectation, isFalling, isPause, updateTrend } from '../tracing/trend.js';
import { type AnswerConditions, computeAverageLogOdds } from './answer-conditions.js';

export interface AnswerEffect extends AnswerStates {
  readonly masteryBefore: number;
  readonly isRapid: boolean;
}

/**
 * Applies one answer to a learner's states. The result is bit-identical in every run, because a rebuild
 * depends on it. Late answers count on arrival; the skill's clock never goes back.
 */
export function applyAnswer(
  states: AnswerStates,
  answer: Answer,
  conditions: AnswerConditions,
): AnswerEffect {
  const { learner, skill, item } = states;
  const { parameters, difficultyShift, rapidSeconds } = conditions;
  const masteryBefore = computeEffectiveMastery(parameters.pInit, skill, answer.occurredAt);
  const { masteryAfter } = traceAnswer(parameters, masteryBefore, answer.isCorrect, difficultyShift);
  const isRapidAnswer = isRapid(answer.timeSpentSeconds, rapidSeconds);
  const answerNumber = learner.attempts + 1;
  const traces = updateTraces(
    selectTraces(states),
    states.keys,
    answer,
    answerNumber,
    skill.attempts,
    conditions.abilityOffset,
  );
  const window = item === null ? learner.items : advanceWindow(learner.items, item);
  return {
    keys: states.keys,
    learner: updateLearner(states, answer, conditions, traces.learner, window),
    skill: updateSkill(skill, answer, masteryAfter, conditions, isRapidAnswer, traces.skill),
    item: traces.item && { generation: window.generation, trace: traces.item },
    masteryBefore,
    isRapid: isRapidAnswer,
  };
}

/** Lists every field, because object spread is about ten times slower. */
function updateSkill(
  skill: SkillState,
  answer: Answer,
  masteryAfter: number,
  conditions: AnswerConditions,
  isRapidAnswer: boolean,
  trace: SkillTrace,
): SkillState {
  const { isCorrect, timeSpentSeconds } = answer;
  const day = toDay(answer.occurredAt);
  const isNewDay = isCorrect && day > skill.lastCorrectDay;
  const idleDays = skill.attempts === 0 ? 0 : (answer.occurredAt - skill.lastAttemptAt) / dayMs;
  const attempts = skill.attempts + 1;
  const plateau = updatePlateau(skill.plateau, masteryAfter, idleDays);
  return {
    mastery: masteryAfter,
    attempts,
    correct: skill.correct + (isCorrect ? 1 : 0),
    lastAttemptAt: Math.max(skill.lastAttemptAt, answer.occurredAt),
    correctDays: skill.correctDays + (isNewDay ? 1 : 0),
    lastCorrectDay: isNewDay ? day : skill.lastCorrectDay,
    plateau,
    pace: updatePace(skill.pace, isCorrect, timeSpentSeconds, conditions.norm, isRapidAnswer),
    rapid: updateRapid(skill.rapid, timeSpentSeconds, conditions.rapidSeconds),
    calibration: updateCalibration(skill.calibration, answer.confidenceScore, isCorrect),
    trace,
    reached: isMasteryReached(masteryAfter, skill.reached),
    ready:
      hasSteadyMastery({ attempts, plateau }, masteryAfter) &&
      (skill.ready || (isCorrect && wasAccurate(conditions))),
  };
}

const wasAccurate = (conditions: AnswerConditions): boolean =>
  isAccuracySufficient(sigmoid(computeAverageLogOdds(conditions)), conditions.parameters);

function updateLearner(
  { learner, skill }: AnswerStates,
  answer: Answer,
  conditions: AnswerConditions,
  trace: LearnerTrace,
  items: ItemWindow,
): LearnerState {
  const share = { math: computeSectionShare(conditions, 'math'), rw: computeSectionShare(conditions, 'rw') };
  const evidence = computeAbilityEvidence(answer, conditions.parameters, skill.attempts);
  const pauseDays = computePause(learner, answer);
  return {
    version: learner.version,
    attempts: learner.attempts + 1,
    abilityVersion: learner.abilityVersion,
    abilities: updateAbilities(learner.abilities, evidence, share, isFalling(learner.trend), pauseDays),
    baselineTotal: learner.baselineTotal,
    activity: countActivity(learner.activity, toDay(answer.occurredAt), share),
    momentum:
      conditions.closedMastery === null
        ? learner.momentum
        : closeDay(learner.momentum, learner.activity.day, conditions.closedMastery),
    trace,
    trend: updateTrend(
      learner.trend,
      answer.isCorrect,
      computeExpectation(
        skill,
        conditions.itemDifficulty - conditions.difficultyShift,
        projectLearning(conditions.parameters.pLearn),
      ),
      conditions.pCorrect,
      pauseDays > 0,
    ),
    items,
  };
}

/** Days without answers before this one; 0 if they are too few to matter. */
function computePause({ activity }: LearnerState, { occurredAt }: Answer): number {
  const days = activity.day < 0 ? 0 : toDay(occurredAt) - activity.day;
  return isPause(days) ? days : 0;
}

type SkillChange = 'mastery.reached' | 'plateau.detected' | 'plateau.ended';

export function detectSkillChanges(before: SkillState, after: SkillState): SkillChange[] {
  const changes: SkillChange[] = [];
  if (after.reached && !before.reached) changes.push('mastery.reached');
  const isFlat = isPlateau(after.plateau);
  if (isFlat !== isPlateau(before.plateau)) changes.push(isFlat ? 'plateau.detected' : 'plateau.ended');
  return changes;
}
