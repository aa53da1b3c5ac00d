/** A tenant's model as it is stored: JSON in Redis and ClickHouse. */
import { type Static, Type } from 'typebox';
import { Compile } from 'typebox/compile';
import type { FitReport } from '../domain/fit-report.js';
import { features } from '../domain/prediction/features.js';
import { skillTermCount } from '../domain/prediction/model.js';
import { maxItemRun } from '../domain/prediction/traces.js';
import type { TenantModel } from '../domain/tenant-model.js';

/**
 * Grows when an older process could not read what a newer one writes, as with other features: it then keeps what it
 * has. A newer process reads every older format, or tenants would be without their model after an upgrade.
 */
const format = 1;

const Count = Type.Integer({ minimum: 0 });
const Figure = Type.Number();
const figures = (count: number) => Type.Array(Figure, { minItems: count, maxItems: count });
const Probability = Type.Number({ exclusiveMinimum: 0, exclusiveMaximum: 1 });
const Time = Type.Union([Type.String(), Type.Null()]);

const Parameters = Type.Object({
  pInit: Probability,
  pLearn: Probability,
  pGuess: Probability,
  pSlip: Probability,
});

const StoredSkill = Type.Object({
  skillId: Type.String(),
  parameters: Parameters,
  source: Type.Enum(['default', 'prior', 'fitted', 'manual']),
  version: Count,
  fittedAt: Time,
  learners: Count,
  answers: Count,
  difficultyMean: Figure,
  times: Type.Object({ answers: Count, meanSeconds: Figure, logMean: Figure, logM2: Figure }),
  terms: figures(skillTermCount),
  abilityOffset: Figure,
});

const StoredModel = Type.Object({
  format: Type.Literal(format),
  version: Count,
  fittedAt: Time,
  prior: Type.Union([Parameters, Type.Null()]),
  difficultyScale: Figure,
  bounds: Type.Enum(['narrow', 'wide']),
  prediction: Type.Object({
    bias: Figure,
    weights: figures(features.length),
    means: figures(features.length),
    runs: figures(maxItemRun),
    itemPriorAnswers: Type.Number({ exclusiveMinimum: 0 }),
  }),
  abilityOffset: Figure,
  skills: Type.Array(StoredSkill),
});

const compared = {
  answers: Count,
  oldLogLoss: Type.Union([Figure, Type.Null()]),
  newLogLoss: Type.Union([Figure, Type.Null()]),
};
const judged = { ...compared, published: Type.Boolean(), reason: Type.String() };

const StoredReport = Type.Object({
  answers: Count,
  learners: Count,
  sampledOneIn: Count,
  heldOutLearners: Count,
  skills: Type.Array(Type.Object({ skillId: Type.String(), ...judged })),
  bkt: Type.Object(compared),
  served: Type.Object(judged),
  seconds: Figure,
});

const modelCheck = Compile(StoredModel);
const reportCheck = Compile(StoredReport);

export function encodeModel(model: TenantModel): string {
  const { bias, weights, means, runs, itemPriorAnswers } = model.prediction;
  const stored: Static<typeof StoredModel> = {
    format,
    ...model,
    prediction: { bias, weights: [...weights], means: [...means], runs: [...runs], itemPriorAnswers },
    skills: [...model.skills].map(([skillId, skill]) => ({
      skillId,
      ...skill,
      terms: Array.from(skill.terms),
    })),
  };
  return JSON.stringify(stored);
}

/** @throws Error for a model that this version of the service cannot read: damaged, or of a newer version */
export function decodeModel(text: string): TenantModel {
  const stored: unknown = JSON.parse(text);
  if (!modelCheck.Check(stored)) {
    const [problem] = modelCheck.Errors(stored);
    throw new Error(
      `the stored model cannot be read: ${problem?.instancePath ?? ''} ${problem?.message ?? ''}`,
    );
  }
  const { format: _, skills, ...model } = stored;
  return { ...model, skills: new Map(skills.map(({ skillId, ...skill }) => [skillId, skill])) };
}

export const encodeReport = (report: FitReport): string => JSON.stringify(report);

/** @throws Error for what is none */
export function decodeReport(text: string): FitReport {
  const stored: unknown = JSON.parse(text);
  if (!reportCheck.Check(stored)) throw new Error('the stored report of a fit cannot be read');
  return stored;
}
