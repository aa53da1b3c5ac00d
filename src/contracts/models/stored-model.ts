/** Models are stored without the catalogue. */
import { type Static, Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { emptyCatalogue } from '../../domain/catalogue/catalogue.js';
import type { QuestionTerms, SkillModel, TenantModel } from '../../domain/catalogue/tenant-model.js';
import { figureCount, variancePartCount, widthLevels } from '../../domain/prediction/accuracy-model.js';
import { features } from '../../domain/prediction/features.js';
import { skillTermCount, streakCount } from '../../domain/prediction/prediction-model.js';
import { skillPairWidth } from '../../domain/prediction/related-terms.js';
import { combineIds, splitIds } from '../../domain/tracing/course.js';
import { itemPatternCount, maxItemRun } from '../../domain/tracing/traces.js';
import type { SchemaCheck } from '../schema/validate.js';

/**
 * Increase it when the content changes. A process that reads another format retains its current model. After
 * the first release, newer processes must also read older formats.
 */
const modelFormat = 3;

const Count = Type.Integer({ minimum: 0 });
const Figure = Type.Number();
const NotNegative = Type.Number({ minimum: 0 });
const Positive = Type.Number({ exclusiveMinimum: 0 });
const Probability = Type.Number({ exclusiveMinimum: 0, exclusiveMaximum: 1 });
const Time = Type.Union([Type.String(), Type.Null()]);
const numberList = (count: number, figure = Figure) =>
  Type.Array(figure, { minItems: count, maxItems: count });

export const StoredParameters = Type.Object({
  pInit: Probability,
  pLearn: Probability,
  pGuess: Probability,
  pSlip: Probability,
  pForget: Type.Number({ minimum: 0, exclusiveMaximum: 1 }),
});

const StoredTerms = {
  difficultyMean: Figure,
  times: Type.Object({
    ...{ answers: Count, meanSeconds: Figure, logMean: Figure, logM2: Figure, correct: NotNegative },
  }),
  terms: numberList(skillTermCount),
  related: Type.Object({ keys: Type.Array(Count), terms: Type.Array(Figure) }),
  abilityOffset: Figure,
};

/** Sorted ids. */
const StoredCombination = Type.Object({
  skillIds: Type.Array(Type.String(), { minItems: 2 }),
  ...StoredTerms,
});

const StoredSkill = Type.Object({
  skillId: Type.String(),
  parameters: StoredParameters,
  source: Type.Enum(['default', 'prior', 'fitted', 'manual']),
  version: Count,
  fittedAt: Time,
  learners: Count,
  answers: Count,
  ...StoredTerms,
});

const Widths = numberList(widthLevels.length, NotNegative);
const StoredAccuracy = Type.Object({
  unit: Type.Enum(['days', 'answers']),
  learners: Count,
  cases: Count,
  mean: Probability,
  bias: Figure,
  trend: Figure,
  lasting: numberList(figureCount, NotNegative),
  fading: numberList(figureCount, NotNegative),
  variance: numberList(variancePartCount, NotNegative),
  surface: Type.Object({
    histories: Type.Array(Figure, { minItems: 1 }),
    horizons: Type.Array(Figure, { minItems: 1 }),
    cells: Type.Array(Type.Object({ factor: Positive, below: Widths, above: Widths }), { minItems: 1 }),
  }),
});

const StoredModel = Type.Object({
  format: Type.Literal(modelFormat),
  version: Count,
  fittedAt: Time,
  prior: Type.Union([StoredParameters, Type.Null()]),
  difficultyScale: Figure,
  prediction: Type.Object({
    bias: Figure,
    weights: numberList(features.length),
    means: numberList(features.length),
    runs: numberList(maxItemRun),
    streaks: numberList(streakCount),
    patterns: numberList(itemPatternCount),
    itemPriorAnswers: Positive,
    itemScale: Positive,
  }),
  abilityOffset: Figure,
  accuracy: StoredAccuracy,
  growth: Type.Optional(NotNegative),
  skills: Type.Array(StoredSkill),
});

/** The stored report has more fields. */
const Loss = Type.Union([Figure, Type.Null()]);
const SkillReport = Type.Object({
  ...{ skillId: Type.String(), oldLogLoss: Loss, newLogLoss: Loss },
  published: Type.Boolean(),
});
const StoredReport = Type.Object({ skills: Type.Array(SkillReport) });

const modelCheck = Compile(StoredModel);
const skillCheck = Compile(StoredSkill);
const combinationCheck = Compile(StoredCombination);
const reportCheck = Compile(StoredReport);

/** One line per skill and combination of skills: decoding can yield in between. */
export function encodeModel({ catalogue: _, combinations, skills, ...model }: TenantModel): string {
  const head = JSON.stringify({ format: modelFormat, ...model, skills: [] });
  const lines = [
    ...Array.from(skills, ([skillId, skill]) => ({ skillId, ...skill })),
    ...Array.from(combinations, ([key, terms]) => ({ skillIds: splitIds(key), ...terms })),
  ].map((line) => `\n${JSON.stringify(line)}`);
  return `${head.slice(0, -modelEnd.length)}${lines.join()}\n${modelEnd}`;
}

const modelEnd = ']}';

/** @throws Error for a damaged model or another format */
export function decodeModel(text: string): TenantModel {
  const steps = decodeModelSteps(text);
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

/** Yields between skills: a large model takes long. @throws as `decodeModel` */
export function* decodeModelSteps(text: string): Generator<undefined, TenantModel> {
  const lines = text.matchAll(/[^\n]+/g);
  const [head = ''] = lines.next().value ?? [];
  const { format: _, growth = 1, ...model } = validateStored(modelCheck, JSON.parse(`${head}${modelEnd}`));
  const skills = new Map<string, SkillModel>();
  const combinations = new Map<string, QuestionTerms>();
  for (const [line] of lines) {
    if (line === modelEnd) return { ...model, growth, skills, combinations, catalogue: emptyCatalogue };
    const stored: unknown = JSON.parse(line.replace(/,$/, ''));
    if (combinationCheck.Check(stored)) {
      const { skillIds, ...combination } = stored;
      checkRelatedKeys(skillIds.join(', '), combination);
      combinations.set(combineIds(skillIds as [string, ...string[]]), combination);
    } else {
      const { skillId, ...skill } = validateStored(skillCheck, stored);
      checkRelatedKeys(skillId, skill);
      skills.set(skillId, skill);
    }
    yield;
  }
  throw new Error('cannot read the stored model: the end is missing');
}

/** @throws Error */
function checkRelatedKeys(skill: string, { related: { keys, terms } }: QuestionTerms): void {
  if (terms.length !== keys.length * skillPairWidth)
    throw new Error(`cannot read the stored model: skill ${skill} has terms without a key`);
  if (Array.from(keys).some((key, i) => i > 0 && key <= (keys[i - 1] as number)))
    throw new Error(`cannot read the stored model: the keys of skill ${skill} are not in order`);
}

function validateStored<Value>(check: SchemaCheck<Value>, stored: unknown, what = 'model'): Value {
  if (check.Check(stored)) return stored;
  const [problem] = check.Errors(stored);
  const where = `${problem?.instancePath ?? ''} ${problem?.message ?? ''}`;
  throw new Error(`cannot read the stored ${what}: ${where}`);
}

/** @throws Error for an invalid report */
export const decodeReport = (text: string): Static<typeof StoredReport> =>
  validateStored(reportCheck, JSON.parse(text), 'fit report');

export interface ModelChange {
  readonly tenant: string;
  /** From 1, without gaps. */
  readonly change: number;
  readonly version: number;
  readonly basedOn: number;
  readonly action: 'fit' | 'rollback';
  /** Unix milliseconds. */
  readonly publishedAt: number;
}

/** Empty texts: version 0 or an evicted version. */
export interface ModelChangeRecord extends ModelChange {
  readonly model: string;
  readonly report: string;
}
