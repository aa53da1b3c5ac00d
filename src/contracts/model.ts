/** A tenant's model as it is stored: JSON in Redis and ClickHouse. The catalogue is stored apart from it. */
import { type Static, Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { emptyCatalogue } from '../domain/catalogue/catalogue.js';
import type { SkillModel, TenantModel } from '../domain/catalogue/tenant-model.js';
import type { FitReport } from '../domain/fit/report.js';
import { figureCount, variancePartCount } from '../domain/prediction/accuracy-figures.js';
import { type AccuracyModel, widthLevels } from '../domain/prediction/accuracy-model.js';
import { features } from '../domain/prediction/features.js';
import { skillTermCount } from '../domain/prediction/model.js';
import { maxItemRun } from '../domain/tracing/traces.js';
import type { Check } from './checked.js';

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

const Knots = Type.Array(Type.Object({ at: Figure, value: Type.Number({ exclusiveMinimum: 0 }) }));
const notNegative = (count: number) =>
  Type.Array(Type.Number({ minimum: 0 }), { minItems: count, maxItems: count });

const StoredAccuracy = Type.Object({
  unit: Type.Enum(['days', 'answers']),
  learners: Count,
  cases: Count,
  mean: Probability,
  bias: Figure,
  trend: Figure,
  lasting: notNegative(figureCount),
  fading: notNegative(figureCount),
  variance: notNegative(variancePartCount),
  byHorizon: Knots,
  byHistory: Knots,
  below: notNegative(widthLevels.length),
  above: notNegative(widthLevels.length),
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
  accuracy: StoredAccuracy,
  skills: Type.Array(StoredSkill),
});

const compared = {
  answers: Count,
  oldLogLoss: Type.Union([Figure, Type.Null()]),
  newLogLoss: Type.Union([Figure, Type.Null()]),
};
const judged = { ...compared, published: Type.Boolean(), reason: Type.String() };

const Measured = Type.Union([Figure, Type.Null()]);

const StoredAccuracyReport = Type.Object({
  cases: Count,
  learners: Count,
  oldLogLoss: Measured,
  newLogLoss: Measured,
  oldCoverage80: Measured,
  newCoverage80: Measured,
  published: Type.Boolean(),
  reason: Type.String(),
});

const StoredReport = Type.Object({
  answers: Count,
  learners: Count,
  sampledOneIn: Count,
  heldOutLearners: Count,
  skills: Type.Array(Type.Object({ skillId: Type.String(), ...judged })),
  bkt: Type.Object(compared),
  served: Type.Object(judged),
  accuracy: StoredAccuracyReport,
  seconds: Figure,
});

const modelCheck = Compile(StoredModel);
const skillCheck = Compile(StoredSkill);
const reportCheck = Compile(StoredReport);

/** JSON with a line for each skill, so that it can be read a piece at a time. */
export function encodeModel({ catalogue: _, accuracy, skills, ...model }: TenantModel): string {
  const { bias, weights, means, runs, itemPriorAnswers } = model.prediction;
  const stored: Static<typeof StoredModel> = {
    format,
    ...model,
    accuracy: storedAccuracy(accuracy),
    prediction: { bias, weights: [...weights], means: [...means], runs: [...runs], itemPriorAnswers },
    skills: [],
  };
  const lines = Array.from(skills, ([skillId, skill]) => {
    const line: Static<typeof StoredSkill> = { skillId, ...skill, terms: Array.from(skill.terms) };
    return `\n${JSON.stringify(line)}`;
  });
  return `${JSON.stringify(stored).slice(0, -emptyEnd.length)}${lines.join()}\n${emptyEnd}`;
}

/** The last of a model are its skills. */
const emptyEnd = ']}';

const storedAccuracy = (accuracy: AccuracyModel): Static<typeof StoredAccuracy> => ({
  ...accuracy,
  lasting: [...accuracy.lasting],
  fading: [...accuracy.fading],
  variance: [...accuracy.variance],
  byHorizon: [...accuracy.byHorizon],
  byHistory: [...accuracy.byHistory],
  below: [...accuracy.below],
  above: [...accuracy.above],
});

/** @throws as `decodingOf` */
export function decodeModel(text: string): TenantModel {
  const steps = decodingOf(text);
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

/**
 * Reads a model, and yields between its skills: of a large one that takes long.
 * @throws Error for a model that this version of the service cannot read: damaged, or of a newer version
 */
export function* decodingOf(text: string): Generator<undefined, TenantModel> {
  const headEnd = lineEnd(text, 0);
  const head = `${text.slice(0, headEnd)}${emptyEnd}`;
  const { format: _, ...model } = checkedBy(modelCheck, JSON.parse(head));
  const skills = new Map<string, SkillModel>();
  let at = headEnd + 1;
  while (!text.startsWith(emptyEnd, at)) {
    const end = lineEnd(text, at);
    const line = text.slice(at, text[end - 1] === ',' ? end - 1 : end);
    const { skillId, ...skill } = checkedBy(skillCheck, JSON.parse(line));
    skills.set(skillId, skill);
    at = end + 1;
    yield;
  }
  return { ...model, skills, catalogue: emptyCatalogue };
}

function lineEnd(text: string, from: number): number {
  const end = text.indexOf('\n', from);
  if (end < 0) throw new Error('the stored model cannot be read: its end is missing');
  return end;
}

function checkedBy<Value>(check: Check<Value>, stored: unknown): Value {
  if (check.Check(stored)) return stored;
  const [problem] = check.Errors(stored);
  throw new Error(
    `the stored model cannot be read: ${problem?.instancePath ?? ''} ${problem?.message ?? ''}`,
  );
}

export const encodeReport = (report: FitReport): string => JSON.stringify(report);

/** @throws Error for what is none */
export function decodeReport(text: string): FitReport {
  const stored: unknown = JSON.parse(text);
  if (!reportCheck.Check(stored)) throw new Error('the stored report of a fit cannot be read');
  return stored;
}
