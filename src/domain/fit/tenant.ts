/**
 * The fit of one tenant, in order: parameters of BKT, the served probability, the forecast of shares, each judged on
 * learners whom the fit has not seen. What is published is what was judged: the fit on four fifths of the learners. A
 * fit on all of them would be a little better on average and could be worse without anybody noticing.
 */

import { type Learners, learnersWhere, shared } from '../base/answer-log.js';
import { fitModel } from '../base/params.js';
import type { TenantModel } from '../catalogue/tenant-model.js';
import { fitParameters } from './parameters.js';
import { type FittedItems, newFeatureStore } from './prediction/replay.js';
import { fitServed } from './served.js';
import type { FitInput, FitWork, StageRunner } from './stages.js';

/**
 * @param hashes one number per learner, evenly over 0 to 2^32 - 1 and the same in every fit
 * @returns those who are not held out
 */
export function holdOut(hashes: Uint32Array): Learners {
  const training = shared.bytes(hashes.length);
  training.set(hashes.map((hash) => (hash / 2 ** 32 < fitModel.heldOutShare ? 0 : 1)));
  return training;
}

/** Why parameters that are better by themselves are not published. */
const withdrawn = { published: false, reason: 'the served probability is worse with the new parameters' };

/** @returns model and items as they are to be published, items null: those in force go on; whether anything is to be */
export async function fitTenant(
  input: FitInput,
  stages: StageRunner,
  onStep: FitWork['onStep'] = () => undefined,
) {
  const { log, training, current, version, fittedAt } = input;
  const heldOut = learnersWhere(log, (learner) => training[learner] === 0);
  const work = { ...input, heldOut, stages, onStep };
  const { base, skills, comparison } = await fitParameters(work);
  const store = newFeatureStore(log);
  const served = await fitServed(work, base, store);
  onStep('forecast of shares');
  const accuracy = await stages.run('fitJudgedAccuracy', log, training, heldOut, store, current.accuracy);
  const reports = skills.map((skill) =>
    skill.published && !served.parametersHold ? { ...skill, ...withdrawn } : skill,
  );
  const model: TenantModel = { ...served.model, accuracy: accuracy.model, version, fittedAt };
  const items: FittedItems | null = served.items;
  return {
    model,
    items,
    changed: [served.report, accuracy.report, ...reports].some(({ published }) => published),
    report: {
      answers: log.skill.length,
      learners: training.length,
      heldOutLearners: heldOut.reduce((sum, isHeldOut) => sum + isHeldOut, 0),
      skills: reports,
      bkt: comparison,
      served: served.report,
      accuracy: accuracy.report,
    },
  };
}

export type FittedModel = Awaited<ReturnType<typeof fitTenant>>;

/** What a fit reports about itself; published with the model. */
export type FitReport = FittedModel['report'] & {
  /** One learner in so many was read. */
  readonly sampledOneIn: number;
  readonly seconds: number;
};
