/** One learner served in process, and the figures that the API would report about this learner. */
import { studyAdvice } from '../../src/domain/advice/study-advice.js';
import { applyAnswer } from '../../src/domain/answer/apply-answer.js';
import { conditionsFor } from '../../src/domain/answer/conditions.js';
import { type Answer, dayMs } from '../../src/domain/base/common.js';
import { type ItemModel, skillModelOf, type TenantModel } from '../../src/domain/catalogue/tenant-model.js';
import { meanMastery, practisedSkills, viewSkills } from '../../src/domain/learner/skill-view.js';
import { lacksBaseline } from '../../src/domain/score/goal.js';
import { forecastLearner, standardDays } from '../../src/domain/score/learner-forecast.js';
import { currentTotal, type ForecastSubject } from '../../src/domain/score/score.js';
import { askedOf } from '../../src/domain/tracing/course.js';
import {
  closesDay,
  isMastered,
  type LearnerState,
  newLearner,
  newSkill,
  type RememberedItem,
  type SkillState,
} from '../../src/domain/tracing/states.js';
import type { ItemTrace } from '../../src/domain/tracing/traces.js';
import { sumOf } from '../../src/lists.js';

export interface Question {
  readonly skillId: string;
  readonly itemId: string | null;
  /** As the platform supplies it, logits. */
  readonly difficulty: number | null;
  readonly item: ItemModel | null;
}

export type Outcome = Pick<Answer, 'isCorrect' | 'occurredAt' | 'timeSpentSeconds'>;

export function createLearner(model: TenantModel, knownSkills: number) {
  let learner: LearnerState = newLearner;
  const skills = new Map<string, SkillState>();
  const items = new Map<string, RememberedItem<ItemTrace>>();
  const subjectAt = (now: number): ForecastSubject => {
    const views = viewSkills(skills, model, now);
    return { learner, views, model, knownSkills, now };
  };

  function closedMastery(answer: Answer): number | null {
    if (!closesDay(learner, answer)) return null;
    return meanMastery(practisedSkills(skills, model), (learner.activity.day + 1) * dayMs);
  }

  /** @returns the predicted chance of a right answer */
  function count({ skillId, itemId, difficulty, item }: Question, outcome: Outcome): number {
    const answer: Answer = { ...outcome, questionDifficulty: difficulty, confidenceScore: null };
    const states = {
      asked: askedOf({ skillId, itemId }),
      learner,
      skill: skills.get(skillId) ?? newSkill(skillModelOf(model, skillId).parameters),
      item: itemId === null ? null : items.get(itemId),
    };
    const conditions = conditionsFor(model, skillId, item, states, answer, closedMastery(answer));
    const effect = applyAnswer(states, answer, conditions);
    learner = effect.learner;
    skills.set(skillId, effect.skill);
    if (itemId !== null && effect.item) items.set(itemId, effect.item);
    if (lacksBaseline(learner))
      learner = { ...learner, baselineTotal: currentTotal(subjectAt(answer.occurredAt)) };
    return conditions.pCorrect;
  }
  return { count, subjectAt };
}

/** Current skills and scores, forecasts, the default goal, and advice. */
export function summarize(subject: ForecastSubject) {
  const forecastIn = (days: number) => forecastLearner(subject, { days, level: 0.8, goal: null });
  const forecast = forecastIn(standardDays);
  const { goal, neededRate, measures } = forecast;
  const context = { ...subject, measures, goal: { ...goal, neededRate }, locale: 'en' as const };
  const { views } = subject;
  return {
    figures: {
      mastered: views.filter(({ state, mastery }) => isMastered(state, mastery)).length,
      mastery: sumOf(views.map(({ mastery }) => mastery)) / views.length,
      total: forecast.current.total,
      in30Days: forecast.in30Days.total,
      in90Days: forecastIn(90).requested.scores.total,
      target: goal.targetScore,
      onTrack: Number(goal.onTrack),
      goalProbability: goal.probability,
      expectedShare: forecast.accuracy.expected,
    },
    advice: studyAdvice(context),
  };
}
