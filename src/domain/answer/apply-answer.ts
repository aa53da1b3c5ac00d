import { type Answer, dayMs, dayOf, sigmoid } from '../base/common.js';
import { shareOf } from '../catalogue/catalogue.js';
import { abilityEvidence, updateAbilities } from '../tracing/ability.js';
import { countActivity } from '../tracing/activity.js';
import { effectiveMastery, traceAnswer } from '../tracing/bkt.js';
import { updateCalibration } from '../tracing/calibration.js';
import { closeDay } from '../tracing/momentum.js';
import { isRapid, updatePace, updateRapid } from '../tracing/pace.js';
import { isPlateau, updatePlateau } from '../tracing/plateau.js';
import {
  type AnswerStates,
  hasSteadyMastery,
  type ItemWindow,
  isAccurate,
  isReached,
  type LearnerState,
  openWindow,
  type SkillState,
  tracesOf,
} from '../tracing/states.js';
import { type LearnerTrace, type SkillTrace, updateTraces } from '../tracing/traces.js';
import { isFalling, updateTrend, usualChance } from '../tracing/trend.js';
import { averageLogOdds, type Conditions } from './conditions.js';

export interface AnswerEffect extends AnswerStates {
  readonly masteryBefore: number;
  readonly isRapid: boolean;
}

/**
 * Applies one answer to a learner's states. The result is bit-identical in every run, because a rebuild
 * depends on it. Late answers count on arrival; the skill's clock never goes back.
 */
export function applyAnswer(states: AnswerStates, answer: Answer, conditions: Conditions): AnswerEffect {
  const { learner, skill, item } = states;
  const { parameters, difficultyShift, rapidSeconds } = conditions;
  const masteryBefore = effectiveMastery(parameters.pInit, skill, answer.occurredAt);
  const { masteryAfter } = traceAnswer(parameters, masteryBefore, answer.isCorrect, difficultyShift);
  const rapid = isRapid(answer.timeSpentSeconds, rapidSeconds);
  const place = learner.attempts + 1;
  const traces = updateTraces(
    tracesOf(states),
    states.asked,
    answer,
    place,
    skill.attempts,
    conditions.abilityOffset,
  );
  const window = item === null ? learner.items : openWindow(learner.items, item);
  return {
    asked: states.asked,
    learner: countAnswer(states, answer, conditions, traces.learner, window),
    skill: traceSkill(skill, answer, masteryAfter, conditions, rapid, traces.skill),
    item: traces.item && { generation: window.generation, trace: traces.item },
    masteryBefore,
    isRapid: rapid,
  };
}

/** Lists every field, because object spread is about ten times slower. */
function traceSkill(
  skill: SkillState,
  answer: Answer,
  masteryAfter: number,
  conditions: Conditions,
  rapid: boolean,
  trace: SkillTrace,
): SkillState {
  const { isCorrect, timeSpentSeconds } = answer;
  const day = dayOf(answer.occurredAt);
  const newDay = isCorrect && day > skill.lastCorrectDay;
  const idleDays = skill.attempts === 0 ? 0 : (answer.occurredAt - skill.lastAttemptAt) / dayMs;
  const attempts = skill.attempts + 1;
  const plateau = updatePlateau(skill.plateau, masteryAfter, idleDays);
  return {
    mastery: masteryAfter,
    attempts,
    correct: skill.correct + (isCorrect ? 1 : 0),
    lastAttemptAt: Math.max(skill.lastAttemptAt, answer.occurredAt),
    correctDays: skill.correctDays + (newDay ? 1 : 0),
    lastCorrectDay: newDay ? day : skill.lastCorrectDay,
    plateau,
    pace: updatePace(skill.pace, isCorrect, timeSpentSeconds, conditions.norm, rapid),
    rapid: updateRapid(skill.rapid, timeSpentSeconds, conditions.rapidSeconds),
    calibration: updateCalibration(skill.calibration, answer.confidenceScore, isCorrect),
    trace,
    reached: isReached(masteryAfter, skill.reached),
    ready:
      hasSteadyMastery({ attempts, plateau }, masteryAfter) &&
      (skill.ready || (isCorrect && wasAccurate(conditions))),
  };
}

const wasAccurate = (conditions: Conditions): boolean =>
  isAccurate(sigmoid(averageLogOdds(conditions)), conditions.parameters);

function countAnswer(
  { learner, skill }: AnswerStates,
  answer: Answer,
  conditions: Conditions,
  trace: LearnerTrace,
  items: ItemWindow,
): LearnerState {
  const share = { math: shareOf(conditions, 'math'), rw: shareOf(conditions, 'rw') };
  const evidence = abilityEvidence(answer, conditions.parameters, skill.attempts);
  return {
    version: learner.version,
    attempts: learner.attempts + 1,
    abilityVersion: learner.abilityVersion,
    abilities: updateAbilities(learner.abilities, evidence, share, isFalling(learner.trend)),
    baselineTotal: learner.baselineTotal,
    activity: countActivity(learner.activity, dayOf(answer.occurredAt), share),
    momentum:
      conditions.closedMastery === null
        ? learner.momentum
        : closeDay(learner.momentum, learner.activity.day, conditions.closedMastery),
    trace,
    trend: updateTrend(
      learner.trend,
      answer.isCorrect,
      usualChance(skill, conditions.itemDifficulty - conditions.difficultyShift),
      conditions.pCorrect,
    ),
    items,
  };
}

type SkillChange = 'mastery.reached' | 'plateau.detected' | 'plateau.ended';

export function changesOf(before: SkillState, after: SkillState): SkillChange[] {
  const changes: SkillChange[] = [];
  if (after.reached && !before.reached) changes.push('mastery.reached');
  const isFlat = isPlateau(after.plateau);
  if (isFlat !== isPlateau(before.plateau)) changes.push(isFlat ? 'plateau.detected' : 'plateau.ended');
  return changes;
}
