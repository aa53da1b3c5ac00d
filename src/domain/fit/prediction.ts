/**
 * The served probability's part of a fit: offsets, replay, weights and terms, items; then the judgement of all that
 * would be served. Where the new weights do worse than what is in force, the old ones are tried with the new
 * parameters of BKT; where those do worse too, nothing changes.
 */

import type { AnswerLog } from '../base/answer-log.js';
import { fitModel } from '../base/params.js';
import { type Range, splitEvenly } from '../base/ranges.js';
import {
  type ItemModel,
  type SkillModel,
  skillModelOf,
  type TenantModel,
} from '../catalogue/tenant-model.js';
import { itemTermCount, skillTermCount } from '../prediction/model.js';
import { tracedBy } from './guard.js';
import { type FittedPrediction, fitSteps } from './prediction/fit.js';
import type { BlockName } from './prediction/fit-blocks.js';
import type { AbilityOffsets } from './prediction/offsets.js';
import type { FitReport } from './report.js';
import {
  type ItemSums,
  newServedMemory,
  type ServedMemory,
  type ServedTerms,
  type Training,
} from './served.js';
import type { StageRunner } from './stages.js';

/** What a fit found for items, by index, place 0 being none. */
export interface ItemFigures {
  /** `itemTermCount` per item. */
  readonly terms: Float32Array;
  readonly offsets: Float32Array;
}

/** Items as they are published: the figures, and the answers of all learners, the held-out ones too. */
export interface FittedItems extends ItemFigures {
  readonly sums: ItemSums;
}

export const itemModelAt = ({ terms, offsets, sums }: FittedItems, item: number): ItemModel => ({
  answers: sums.answers[item] ?? 0,
  right: sums.right[item] ?? 0,
  expected: sums.expected[item] ?? 0,
  terms: [...terms.subarray(item * itemTermCount, (item + 1) * itemTermCount)],
  abilityOffset: offsets[item] ?? 0,
});

export interface PredictionInput {
  readonly log: AnswerLog;
  /** By skill index. */
  readonly skillIds: readonly string[];
  readonly training: Training;
  readonly current: TenantModel;
  /** Of the model in force; null where no fit found any. */
  readonly currentItems?: ItemFigures | null;
}

export interface PredictionFit {
  readonly model: TenantModel;
  /** null: those of the model in force go on. */
  readonly items: FittedItems | null;
  /** Whether the parameters of BKT in `model` are the new ones. */
  readonly parametersHold: boolean;
  readonly report: FitReport['served'];
  readonly accuracy: FitReport['accuracy'];
}

/** @param base the current model with the new parameters of BKT */
export async function fitServed(
  input: PredictionInput,
  base: TenantModel,
  stages: StageRunner,
  onStep: (step: string) => void,
): Promise<PredictionFit> {
  const { log, training, current } = input;
  const work: Work = { input, memory: newServedMemory(log), stages };
  const probability = await fitProbability(work, base, onStep);
  onStep('forecast of shares');
  // The last replay was by the offsets that will be served: the new ones, or those in force.
  const { store } = work.memory;
  const accuracy = await stages.run('fitAccuracy', log, training, store, current.accuracy);
  return {
    ...probability,
    model: { ...probability.model, accuracy: accuracy.model },
    accuracy: accuracy.report,
  };
}

async function fitProbability(
  work: Work,
  base: TenantModel,
  onStep: (step: string) => void,
): Promise<Omit<PredictionFit, 'accuracy'>> {
  const { input, memory, stages } = work;
  const { log, training, current } = input;
  onStep('what is in force, on learners whom the fit does not see');
  const before = training.includes(0) ? await judgeModel(work, current) : { answers: 0, logLoss: 0 };
  onStep('served probability');
  const fitted = await fitTerms(work, base);
  onStep('judgement');
  const after = await judge(work, fitted.terms);
  const report = {
    answers: before.answers,
    oldLogLoss: before.answers === 0 ? null : before.logLoss,
    newLogLoss: before.answers === 0 ? null : after.logLoss,
  };
  // A loss that is no number is worse.
  const isWorse = ({ logLoss }: Loss): boolean => !(logLoss - before.logLoss <= fitModel.heldOutSlack);
  if (before.answers === 0 || !isWorse(after)) {
    const sums = await stages.run('countItems', log, null, memory);
    return {
      model: withTerms(base, input.skillIds, fitted),
      items: { ...fitted.items, sums },
      parametersHold: true,
      report: { ...report, published: true, reason: '' },
    };
  }
  const parametersHold = !isWorse(await judgeModel(work, base));
  const reason = `held-out log loss is worse than with version ${current.version}`;
  return {
    model: parametersHold ? base : current,
    items: null,
    parametersHold,
    report: { ...report, published: false, reason },
  };
}

interface Work {
  readonly input: PredictionInput;
  readonly memory: ServedMemory;
  readonly stages: StageRunner;
}

interface Loss {
  readonly answers: number;
  readonly logLoss: number;
}

/** Replays the log as the model serves it, with the items' figures in force. */
async function judgeModel(work: Work, model: TenantModel): Promise<Loss> {
  const { skillIds, log, currentItems } = work.input;
  const skills = skillIds.map((skillId) => skillModelOf(model, skillId));
  const items = currentItems ?? {
    terms: sharedFloats(new Float32Array((log.items + 1) * itemTermCount)),
    offsets: sharedFloats(new Float32Array(log.items + 1)),
  };
  await trace(work, model);
  const offsets = {
    mean: model.abilityOffset,
    skills: skills.map(({ abilityOffset }) => abilityOffset),
    items: items.offsets,
  };
  await replay(work, skills, offsets);
  const skillTerms = sharedFloats(skills.flatMap(({ terms }) => terms));
  return judge(work, { prediction: model.prediction, skillTerms, itemTerms: items.terms });
}

interface FittedTerms {
  readonly terms: ServedTerms;
  readonly offsets: AbilityOffsets;
  readonly items: ItemFigures;
}

async function fitTerms(work: Work, base: TenantModel): Promise<FittedTerms> {
  const { input, memory, stages } = work;
  const { log, training, skillIds } = input;
  const skills = skillIds.map((skillId) => skillModelOf(base, skillId));
  await trace(work, base);
  const found = await stages.run('fitOffsets', log, training, memory.shifts);
  // As they are served: item figures have single precision.
  const offsets = { ...found, items: sharedFloats(found.items) };
  await replay(work, skills, offsets);
  const { model, skillTerms, itemTerms } = await stepTerms(work, found.itemVariance);
  const terms = {
    prediction: model,
    skillTerms: sharedFloats(skillTerms),
    itemTerms: sharedFloats(itemTerms),
  };
  return { terms, offsets, items: { terms: terms.itemTerms, offsets: offsets.items } };
}

async function stepTerms({ input, memory, stages }: Work, itemVariance: number): Promise<FittedPrediction> {
  const { log, training } = input;
  const fit = await stages.run('startTerms', log, training, memory.store, itemVariance);
  const parts = splitCount(fit.ranges, stages.threads);
  const move = (name: BlockName): Promise<unknown> =>
    Promise.all(parts.map(([from, to]) => stages.run('moveRanges', fit, name, from, to)));
  await move('weights');
  for (const step of fitSteps()) {
    await Promise.all(parts.map(([from, to]) => stages.run('sumRanges', fit, step, from, to)));
    await stages.run('solveStep', fit, step.name);
    await move(step.name);
  }
  return stages.run('fittedPrediction', fit, itemVariance);
}

function trace(work: Work, model: TenantModel): Promise<void> {
  const { input, memory, stages } = work;
  const traced = tracedBy(model, input.skillIds);
  return inRanges(work, (from, to) => stages.run('traceBkt', input.log, from, to, traced, memory));
}

function replay(work: Work, skills: readonly SkillModel[], offsets: AbilityOffsets): Promise<void> {
  const { input, memory, stages } = work;
  const means = skills.map(({ difficultyMean }) => difficultyMean);
  return inRanges(work, (from, to) => stages.run('replayRange', input.log, from, to, means, offsets, memory));
}

/** After the replay: the held-out loss, with items as the training learners' answers leave them. */
async function judge(work: Work, terms: ServedTerms): Promise<Loss> {
  const { input, memory, stages } = work;
  const { log, training } = input;
  await inRanges(work, (from, to) => stages.run('predictRange', log, from, to, terms, memory));
  const sums = await stages.run('countItems', log, training, memory);
  return stages.run('judgeServed', log, training, sums, memory, terms.prediction.itemPriorAnswers);
}

/** Ranges of equal work: as many as there are threads, for they are the same size. */
const splitCount = (count: number, threads: number): Range[] =>
  splitEvenly(
    Uint32Array.from({ length: count + 1 }, (_, i) => i),
    threads,
  );

async function inRanges(
  { input, stages }: Work,
  run: (from: number, to: number) => Promise<unknown>,
): Promise<void> {
  await Promise.all(splitEvenly(input.log.starts, stages.threads).map(([from, to]) => run(from, to)));
}

function withTerms(
  base: TenantModel,
  skillIds: readonly string[],
  { terms, offsets }: FittedTerms,
): TenantModel {
  const skills = new Map(base.skills);
  for (const [k, skillId] of skillIds.entries()) {
    skills.set(skillId, {
      ...skillModelOf(base, skillId),
      terms: [...terms.skillTerms.subarray(k * skillTermCount, (k + 1) * skillTermCount)],
      abilityOffset: offsets.skills[k] ?? 0,
    });
  }
  return { ...base, skills, prediction: terms.prediction, abilityOffset: offsets.mean };
}

function sharedFloats(values: ArrayLike<number>): Float32Array {
  const column = new Float32Array(new SharedArrayBuffer(4 * values.length));
  column.set(values);
  return column;
}
