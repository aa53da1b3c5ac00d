/** What another answer may do to a score. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { computeConditions } from '../../src/domain/answer/answer-conditions.js';
import { applyAnswer } from '../../src/domain/answer/apply-answer.js';
import { type BktParameters, forgettingConstants } from '../../src/domain/base/bkt-parameters.js';
import { dayMs, type Section } from '../../src/domain/base/common.js';
import { buildCatalogue } from '../../src/domain/catalogue/catalogue.js';
import {
  type ParameterSource,
  resolveSkillModel,
  type TenantModel,
  unfittedModel,
} from '../../src/domain/catalogue/tenant-model.js';
import { buildSkillViews } from '../../src/domain/learner/skill-view.js';
import { assessLearner, type ForecastSubject } from '../../src/domain/score/assessment.js';
import { computeScores } from '../../src/domain/score/scores.js';
import { hashQuestionKeys } from '../../src/domain/tracing/course.js';
import {
  type LearnerState,
  newLearner,
  newSkill,
  type SkillState,
} from '../../src/domain/tracing/learner-states.js';

const within = (min: number, max: number) => fc.double({ min, max, noNaN: true });

const anySkill = fc.record({
  section: fc.constantFrom<Section | null>('math', 'rw', null),
  weight: within(0.1, 5),
  source: fc.constantFrom<ParameterSource>('default', 'prior', 'fitted', 'manual'),
  parameters: fc
    .record({
      pInit: within(0.05, 0.9),
      pLearn: within(0.005, 0.4),
      pGuess: within(0.02, 0.4),
      pSlip: within(0.01, 0.4),
      pForget: fc.double({ min: 0, max: 0.1, noNaN: true }),
    })
    .filter(({ pGuess, pSlip }) => 1 - pSlip - pGuess > 0.05),
});

interface Skill {
  readonly section: Section | null;
  readonly weight: number;
  readonly source: ParameterSource;
  readonly parameters: BktParameters;
}

const anyAnswer = fc.record({
  skill: fc.nat({ max: 5 }),
  isCorrect: fc.boolean(),
  days: fc.constantFrom(0, 0, 0, 1, 30),
});

const histories = fc.record({
  skills: fc.array(anySkill, { minLength: 6, maxLength: 6 }),
  placed: fc.boolean(),
  others: fc.nat({ max: 60 }),
  /** Long runs of one outcome too: there saturated mastery would show. */
  answers: fc.array(fc.tuple(anyAnswer, fc.constantFrom(1, 1, 1, 20)), { minLength: 1, maxLength: 40 }),
  next: fc.nat({ max: 5 }),
});

const modelOf = (skills: readonly Skill[], placed: boolean): TenantModel => {
  const named = skills.map((skill, i) => [`skill-${i}`, skill] as const);
  const entries = named.map(([skillId, { section, weight }]) => {
    const entry = { name: null, section, weight, parameters: null, revision: 1, updatedAt: 0 };
    return [skillId, entry] as const;
  });
  const base = resolveSkillModel(unfittedModel, '');
  return {
    ...unfittedModel,
    skills: new Map(named.map(([id, { parameters, source }]) => [id, { ...base, parameters, source }])),
    catalogue: buildCatalogue(1, new Map(placed ? entries : [])),
  };
};

function createLearner(model: TenantModel) {
  let learner: LearnerState = newLearner;
  const skills = new Map<string, SkillState>();
  let now = 20_000 * dayMs;
  return {
    answer: (skillId: string, isCorrect: boolean, days: number): void => {
      now += days * dayMs;
      const skill = skills.get(skillId) ?? newSkill(resolveSkillModel(model, skillId).parameters);
      const answer = {
        isCorrect,
        occurredAt: now,
        questionDifficulty: null,
        timeSpentSeconds: null,
        confidenceScore: null,
      };
      const states = { keys: hashQuestionKeys(skillId, null), learner, skill, item: null };
      const effect = applyAnswer(states, answer, computeConditions(model, skillId, null, states, answer));
      learner = effect.learner;
      skills.set(skillId, effect.skill);
    },
    hasFaded: (skillId: string): boolean =>
      now > (skills.get(skillId)?.lastAttemptAt ?? now) + forgettingConstants.graceDays * dayMs,
    subject: (registeredSkills: number): ForecastSubject => ({
      learner,
      views: buildSkillViews(skills, model, now),
      model,
      registeredSkills,
      now,
    }),
  };
}

for (const isCorrect of [true, false]) {
  test(`a ${isCorrect ? 'right answer never lowers' : 'wrong answer never raises'} a section or the total`, () => {
    const sign = isCorrect ? 1 : -1;
    fc.assert(
      fc.property(histories, ({ skills, placed, others, answers, next }) => {
        const learner = createLearner(modelOf(skills, placed));
        for (const [{ skill, isCorrect, days }, times] of answers)
          for (let i = 0; i < times; i++) learner.answer(`skill-${skill}`, isCorrect, i === 0 ? days : 0);
        // What had faded counts as fresh again from any answer on, also from a wrong one.
        fc.pre(isCorrect || !learner.hasFaded(`skill-${next}`));
        const known = others + (placed ? skills.length : 0);
        const before = assessLearner(learner.subject(known));
        learner.answer(`skill-${next}`, isCorrect, 0);
        const after = assessLearner(learner.subject(known));
        for (const section of ['math', 'rw'] as const) {
          const change = after.measures[section].mastery - before.measures[section].mastery;
          assert.ok(sign * change >= -1e-12, `${section} ${change}`);
        }
        const [from = 0, to = 0] = [before, after].map(({ estimate }) => computeScores(estimate.theta).total);
        assert.ok(sign * (to - from) >= 0, `total ${from} to ${to}`);
      }),
      // A failure prints its seed and its learner; to search for a smaller one took longer than ten minutes.
      { numRuns: 400, endOnFailure: true },
    );
  });
}
