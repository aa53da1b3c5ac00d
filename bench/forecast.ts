/**
 * What a forecast costs in the worker's thread, without Redis and the message between threads: the stored records
 * are decoded, the scores rolled forward, the goal tracked, advice chosen, the answer written. Learners with 40
 * skills in a catalogue of 60, by the length of their history; and 500 skills, for the slope.
 *
 * Run: node dist/bench/forecast.js [rounds]
 */
import { catalogueOf, type SkillEntry } from '../src/domain/catalogue.js';
import { conditionsFor } from '../src/domain/conditions.js';
import { dayMs } from '../src/domain/forgetting.js';
import type { GoalSetting } from '../src/domain/goal-setting.js';
import { applyAnswer, newLearner, newSkill } from '../src/domain/mastery.js';
import { defaultParameters } from '../src/domain/params.js';
import { type TenantModel, unfittedModel, withCatalogue } from '../src/domain/tenant-model.js';
import type { LearnerState, SkillState } from '../src/domain/types.js';
import { decodeLearner, decodeSkill, encodeLearner, encodeSkill } from '../src/store/learner-codec.js';
import { predict, servedRow, toldResult } from '../workers/forecasting.js';

const now = Date.UTC(2026, 5, 1, 12);

const entryOf = (i: number): SkillEntry => ({
  name: `Skill ${i}`,
  section: i % 3 === 2 ? null : i % 3 === 0 ? 'math' : 'rw',
  weight: 1 + (i % 4),
  parameters: null,
  revision: 1,
  updatedAt: now,
});

const modelOf = (skills: number): TenantModel =>
  withCatalogue(
    unfittedModel,
    catalogueOf(1, new Map(Array.from({ length: skills }, (_, i) => [`skill-${i}`, entryOf(i)]))),
  );

interface Stored {
  readonly learner: Buffer;
  readonly skills: readonly (readonly [string, Buffer])[];
}

/** A learner who answered so often on so many skills, over the 30 days up to now, every so many days. */
function storedLearner(answers: number, skillCount: number, model: TenantModel, everyDays: number): Stored {
  const skills = new Map<string, SkillState>();
  let learner: LearnerState = newLearner;
  for (let i = 0; i < answers; i++) {
    const skillId = `skill-${i % skillCount}`;
    const skill = skills.get(skillId) ?? newSkill(defaultParameters);
    const states = { learner, skill, item: null };
    const day = everyDays * Math.floor(((30 / everyDays) * i) / answers);
    const answer = {
      isCorrect: (i * 7919) % 10 < 6,
      occurredAt: now - 30 * dayMs + day * dayMs + i,
      questionDifficulty: null,
      timeSpentSeconds: 20 + (i % 60),
      confidenceScore: 3,
    };
    const effect = applyAnswer(states, answer, conditionsFor(model, skillId, null, states, answer));
    learner = effect.learner;
    skills.set(skillId, effect.skill);
  }
  return {
    learner: encodeLearner({ ...learner, baselineTotal: 1000 }),
    skills: [...skills].map(([skillId, skill]) => [skillId, encodeSkill(skill)]),
  };
}

function forecastOnce({ learner, skills }: Stored, model: TenantModel, goal: GoalSetting | null): string {
  const found = {
    learner: decodeLearner(learner),
    skills: new Map(skills.map(([skillId, record]) => [skillId, decodeSkill(record)])),
    goalRecord: goal && JSON.stringify({ v: 1, updatedAt: now, ...goal }),
  };
  const options = { days: 90, level: 0.8, locale: 'en' } as const;
  const made = predict(found, { model, knownSkills: 60 }, now, options);
  return servedRow('default', 'learner', made, model, options) + toldResult(made, model, options);
}

const rounds = Number(process.argv[2] ?? 15);
const repeats = 400;

/** @returns microseconds of CPU per forecast: median of the rounds */
function measure(stored: Stored, model: TenantModel, goal: GoalSetting | null): number {
  const once = (): void => {
    for (let i = 0; i < repeats; i++) forecastOnce(stored, model, goal);
  };
  // The first round only warms up.
  once();
  const figures = Array.from({ length: rounds }, () => {
    const since = process.cpuUsage();
    once();
    const { user, system } = process.cpuUsage(since);
    return (user + system) / repeats;
  });
  return figures.sort((a, b) => a - b)[rounds >> 1] as number;
}

const goals: Readonly<Record<string, GoalSetting | null>> = {
  'no goal set': null,
  'goal in reach': { targetScore: 1150, targetDate: null },
  'goal out of reach, rates tried': { targetScore: 1600, targetDate: '2026-07-01' },
};
const habits = [
  { skills: 40, answers: 200, everyDays: 1 },
  { skills: 40, answers: 2000, everyDays: 1 },
  { skills: 40, answers: 20_000, everyDays: 1 },
  { skills: 40, answers: 2000, everyDays: 5 },
  { skills: 500, answers: 20_000, everyDays: 1 },
];
process.stdout.write(`µs of CPU per forecast, medians of ${rounds} rounds of ${repeats}\n`);
for (const { skills, answers, everyDays } of habits) {
  const model = modelOf(skills + 20);
  const stored = storedLearner(answers, skills, model, everyDays);
  const figures = Object.entries(goals).map(
    ([name, goal]) => `${name} ${measure(stored, model, goal).toFixed(0)}`,
  );
  process.stdout.write(
    `  ${skills} skills, ${answers} answers, every ${everyDays} days: ${figures.join(', ')}\n`,
  );
}
