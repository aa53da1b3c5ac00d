/** Learners as advice sees them. */

import type { StudyContext } from '../../../src/domain/advice/study-advice.js';
import { defaultParameters } from '../../../src/domain/base/bkt-parameters.js';
import { dayMs, type PerSection, type Section, toUtcDay } from '../../../src/domain/base/common.js';
import { buildCatalogue, type SkillEntry } from '../../../src/domain/catalogue/catalogue.js';
import { type TenantModel, unfittedModel } from '../../../src/domain/catalogue/tenant-model.js';
import { buildSkillViews, type SkillView } from '../../../src/domain/learner/skill-view.js';
import { assessLearner, type SectionMeasure } from '../../../src/domain/score/assessment.js';
import { newLearner, newSkill, type SkillState } from '../../../src/domain/tracing/learner-states.js';

/** The time of all views. */
export const now = 20_000 * dayMs;

/** A skill practised at `now`, between weak and mastered. */
export const practised: SkillState = {
  ...newSkill(defaultParameters),
  ...{ mastery: 0.7, attempts: 10, correct: 6, lastAttemptAt: now, correctDays: 1 },
};

/** Mastered: the last answer was right, and the expected accuracy is about 79 %. */
export const mastered: SkillState = {
  ...practised,
  mastery: 0.97,
  trace: {
    ...practised.trace,
    ...{ residual: 0.5, lastAnswerNumber: 1, lastRightNumber: 1, lastRightAt: now / 1000 },
  },
  plateau: { ...practised.plateau, attempts: 10, sum: 5.9 },
};

/** Traits of a skill that cause advice. */
export const over = { calibration: { answers: 10, biasTenths: 46, squaredHundredths: 300 } };
export const under = { calibration: { answers: 10, biasTenths: -46, squaredHundredths: 300 } };
export const rapid = { rapid: { answers: 9, recent: 0b11_1111, recentTimed: 20 } };

type EntryPart = Partial<Pick<SkillEntry, 'name' | 'section' | 'weight' | 'parameters'>>;

export const modelWith = (entries: Readonly<Record<string, EntryPart>>): TenantModel => {
  const unset = { name: null, section: null, weight: 1, parameters: null, revision: 1, updatedAt: 0 };
  const set = Object.entries(entries).map(([skillId, part]) => [skillId, { ...unset, ...part }] as const);
  return { ...unfittedModel, catalogue: buildCatalogue(1, new Map(set)) };
};

export const allIn = (section: Section, ...skillIds: readonly string[]): Record<string, EntryPart> =>
  Object.fromEntries(skillIds.map((skillId) => [skillId, { section }]));

export const viewsOf = (
  states: Readonly<Record<string, Partial<SkillState>>>,
  model: TenantModel = unfittedModel,
): SkillView[] => {
  const skills = Object.entries(states).map(
    ([skillId, state]) => [skillId, { ...practised, ...state }] as const,
  );
  return buildSkillViews(new Map(skills), model, now);
};

export const noGoal: StudyContext['goal'] = {
  ...{ targetScore: 1200, targetDate: null, neededRate: null },
  ...{ isSet: false, onTrack: false, isLost: false, status: 'none', gap: 170 },
};

interface ContextPart extends Partial<Omit<StudyContext, 'measures' | 'views'>>, Pick<StudyContext, 'views'> {
  /** Number of skills that the tenant has. */
  readonly knownSkills?: number;
  /** Default: enough for each section that has a skill. */
  readonly answers?: PerSection<number>;
}

/** Defaults: enough answers, no goal, and a tenant without other skills. */
export function studyContext({ knownSkills, answers, ...part }: ContextPart): StudyContext {
  const { views, model = unfittedModel } = part;
  const known = Math.max(knownSkills ?? 0, model.catalogue.entries.size);
  const day = Math.max(-1, ...views.map(({ state }) => toUtcDay(state.lastAttemptAt)));
  const learner = { ...newLearner, ...part.learner, activity: { ...newLearner.activity, day } };
  const subject = { learner, views, model, registeredSkills: known, now };
  const { math, rw } = assessLearner(subject).measures;
  const enough = ({ seenWeight }: SectionMeasure): number => (seenWeight > 0 ? 100 : 0);
  const of = answers ?? { math: enough(math), rw: enough(rw) };
  return {
    ...{ model: unfittedModel, now, goal: noGoal, locale: 'en' as const },
    ...part,
    ...{ learner, today: toUtcDay(part.now ?? now) },
    measures: { math: { ...math, answers: of.math }, rw: { ...rw, answers: of.rw } },
  };
}
