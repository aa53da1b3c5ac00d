import type { BktParameters } from '../base/bkt-parameters.js';
import { type Answer, average, dayMs, mapNonEmpty, type NonEmpty, sigmoid } from '../base/common.js';
import { projectLearning } from '../base/score-constants.js';
import { computeSectionShare } from '../catalogue/catalogue.js';
import { computeAbilityEvidence, updateAbilities } from '../tracing/ability.js';
import { countActivity } from '../tracing/activity.js';
import { traceQuestion } from '../tracing/bkt.js';
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
import {
  combineSkills,
  type LearnerTrace,
  type SkillRecord,
  type SkillTrace,
  updateTraces,
} from '../tracing/traces.js';
import { computeExpectation, isFalling, isPause, updateTrend } from '../tracing/trend.js';
import {
  type AnswerConditions,
  computeAverageLogOdds,
  computeMasteries,
  type SkillConditions,
} from './answer-conditions.js';

export interface AnswerEffect extends AnswerStates {
  /** By skill, after forgetting. */
  readonly masteriesBefore: NonEmpty<number>;
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
  const { learner, skills, item } = states;
  const before = computeMasteries(conditions.skills, states, answer.occurredAt);
  const traced = traceQuestion(before, answer.isCorrect, conditions.difficultyShift);
  const isRapidAnswer = isRapid(answer.timeSpentSeconds, conditions.rapidSeconds);
  const combined = combineSkills(skills);
  const traces = updateTraces(
    selectTraces(states),
    states.keys,
    answer,
    learner.attempts + 1,
    combined.attempts,
    conditions.abilityOffset,
  );
  const window = item === null ? learner.items : advanceWindow(learner.items, item);
  return {
    keys: states.keys,
    learner: updateLearner(learner, combined, answer, conditions, traces.learner, window),
    skills: mapNonEmpty(skills, (skill, i) =>
      updateSkill(
        skill,
        answer,
        (traced[i] as (typeof traced)[0]).masteryAfter,
        conditions,
        (conditions.skills[i] as SkillConditions).parameters,
        isRapidAnswer,
        traces.skills[i] as SkillTrace,
      ),
    ),
    item: traces.item && { generation: window.generation, trace: traces.item },
    masteriesBefore: mapNonEmpty(before, ({ mastery }) => mastery),
    isRapid: isRapidAnswer,
  };
}

/** Lists every field, because object spread is about ten times slower. */
function updateSkill(
  skill: SkillState,
  answer: Answer,
  masteryAfter: number,
  conditions: AnswerConditions,
  parameters: BktParameters,
  isRapidAnswer: boolean,
  trace: SkillTrace,
): SkillState {
  const { isCorrect, timeSpentSeconds } = answer;
  const { localDay } = conditions;
  const isNewDay = isCorrect && localDay > skill.lastCorrectDay;
  const idleDays = skill.attempts === 0 ? 0 : (answer.occurredAt - skill.lastAttemptAt) / dayMs;
  const attempts = skill.attempts + 1;
  const plateau = updatePlateau(skill.plateau, masteryAfter, idleDays);
  return {
    mastery: masteryAfter,
    attempts,
    correct: skill.correct + (isCorrect ? 1 : 0),
    lastAttemptAt: Math.max(skill.lastAttemptAt, answer.occurredAt),
    correctDays: skill.correctDays + (isNewDay ? 1 : 0),
    lastCorrectDay: isNewDay ? localDay : skill.lastCorrectDay,
    plateau,
    pace: updatePace(skill.pace, isCorrect, timeSpentSeconds, conditions.norm, isRapidAnswer),
    rapid: updateRapid(skill.rapid, timeSpentSeconds, conditions.rapidSeconds),
    calibration: updateCalibration(skill.calibration, answer.confidenceScore, isCorrect),
    trace,
    reached: isMasteryReached(masteryAfter, skill.reached),
    ready:
      hasSteadyMastery({ attempts, plateau }, masteryAfter) &&
      (skill.ready || (isCorrect && wasAccurate(conditions, parameters))),
  };
}

const wasAccurate = (conditions: AnswerConditions, parameters: BktParameters): boolean =>
  isAccuracySufficient(sigmoid(computeAverageLogOdds(conditions)), parameters);

function updateLearner(
  learner: LearnerState,
  combined: SkillRecord,
  answer: Answer,
  conditions: AnswerConditions,
  trace: LearnerTrace,
  items: ItemWindow,
): LearnerState {
  const share = { math: computeSectionShare(conditions, 'math'), rw: computeSectionShare(conditions, 'rw') };
  const evidence = computeAbilityEvidence(answer, conditions.skills, combined.attempts);
  const pauseDays = computePause(learner, conditions);
  return {
    version: learner.version,
    attempts: learner.attempts + 1,
    abilityVersion: learner.abilityVersion,
    timeZone: conditions.timeZone,
    abilities: updateAbilities(learner.abilities, evidence, share, isFalling(learner.trend), pauseDays),
    baselineTotal: learner.baselineTotal,
    activity: countActivity(learner.activity, conditions.localDay, share),
    momentum:
      conditions.closedMastery === null
        ? learner.momentum
        : closeDay(learner.momentum, learner.activity.day, conditions.closedMastery),
    trace,
    trend: updateTrend(
      learner.trend,
      answer.isCorrect,
      computeExpectation(
        combined,
        conditions.itemDifficulty - conditions.difficultyShift,
        projectLearning(averageLearning(conditions.skills)),
      ),
      conditions.pCorrect,
      pauseDays > 0,
    ),
    items,
  };
}

interface SkillLearning {
  readonly parameters: Pick<BktParameters, 'pLearn'>;
}

export const averageLearning = (skills: readonly SkillLearning[]): number =>
  average(skills, ({ parameters }) => parameters.pLearn);

/** Days without answers before this one; 0 if they are too few to matter. */
function computePause({ activity }: LearnerState, { localDay }: AnswerConditions): number {
  const days = activity.day < 0 ? 0 : localDay - activity.day;
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
