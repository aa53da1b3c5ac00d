import { type AnswerLog, createMembers, selectAllLearners } from '../../../src/domain/base/answer-log.js';
import type { BktParameters } from '../../../src/domain/base/bkt-parameters.js';
import { type TenantModel, unfittedModel } from '../../../src/domain/catalogue/tenant-model.js';
import { selectTrainingLearners } from '../../../src/domain/fit/fit-tenant.js';
import { shiftGuessSlip } from '../../../src/domain/tracing/bkt.js';
import { indices } from '../../../src/lists.js';
import { seeded } from './random.js';

/** An absent field was not reported. */
export interface LoggedAnswer {
  readonly skill: number;
  /** From 1. 0: no item. */
  readonly item?: number;
  readonly correct: boolean;
  readonly at?: number;
  readonly seconds?: number;
  readonly difficulty?: number;
}

/** @param learners the answers of each learner, in order */
export function answerLog(
  skills: number,
  learners: readonly (readonly LoggedAnswer[])[],
  items = 0,
  combinations: readonly (readonly number[])[] = [],
): AnswerLog {
  const answers = learners.flat();
  const starts = new Uint32Array(learners.length + 1);
  for (const [learner, own] of learners.entries())
    starts[learner + 1] = (starts[learner] as number) + own.length;
  return {
    starts,
    skill: Uint32Array.from(answers, ({ skill }) => skill),
    item: Uint32Array.from(answers, ({ item }) => item ?? 0),
    correct: Uint8Array.from(answers, ({ correct }) => (correct ? 1 : 0)),
    at: Float64Array.from(answers, ({ at }) => at ?? 0),
    seconds: Float32Array.from(answers, ({ seconds }) => seconds ?? Number.NaN),
    difficulty: Float32Array.from(answers, ({ difficulty }) => difficulty ?? Number.NaN),
    skills,
    items,
    members: createMembers(skills, combinations),
  };
}

/** The input of `fitTenant`, with some held-out learners. */
export const fitInput = (log: AnswerLog, current: TenantModel = unfittedModel) => ({
  log,
  skillIds: indices(log.skills).map((skill) => `skill ${skill}`),
  training: selectTrainingLearners(
    Uint32Array.from({ length: log.starts.length - 1 }, (_, i) => (i * 2654435761) >>> 0),
  ),
  current,
  version: current.version + 1,
  fittedAt: '2026-01-15T12:00:00.000Z',
});

/** Without held-out learners, every fit is published. */
export const fullFitInput = (log: AnswerLog) => ({ ...fitInput(log), training: selectAllLearners(log) });

export interface SyntheticPlan {
  readonly learners: number;
  /** True parameters of each skill. Every learner practises every skill. */
  readonly truth: readonly BktParameters[];
  readonly seed: number;
  /** Least and most attempts per skill. */
  readonly attempts?: readonly [number, number];
  /** k of the shift by question difficulty, which is uniform from -2 to 2. Absent: no difficulties. */
  readonly difficultyScale?: number;
}

/** Answers of learners who learn and forget by Bayesian Knowledge Tracing. */
export function syntheticLog(plan: SyntheticPlan): AnswerLog {
  const random = seeded(plan.seed);
  const learners = Array.from({ length: plan.learners }, () =>
    plan.truth.flatMap((truth, skill) => practise(truth, skill, plan, random)),
  );
  return answerLog(plan.truth.length, learners);
}

function practise(truth: BktParameters, skill: number, plan: SyntheticPlan, random: () => number) {
  const { attempts: [least, most] = [3, 25], difficultyScale } = plan;
  let known = random() < truth.pInit;
  const length = least + Math.floor(random() * (most - least + 1));
  return Array.from({ length }, (): LoggedAnswer => {
    const difficulty = difficultyScale === undefined ? {} : { difficulty: 4 * random() - 2 };
    const { pGuess, pSlip } = shiftGuessSlip(truth, (difficultyScale ?? 0) * (difficulty.difficulty ?? 0));
    const correct = random() < (known ? 1 - pSlip : pGuess);
    if (!known) known = random() < truth.pLearn;
    else if (truth.pForget > 0) known = random() >= truth.pForget;
    return { skill, correct, ...difficulty };
  });
}
