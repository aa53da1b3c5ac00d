import Type, { type Static } from 'typebox';
import type { Call } from '../../contracts/access/call.js';
import { Id } from '../../contracts/schema/ids.js';
import { dayMs, round4, roundFields } from '../../domain/base/common.js';
import { computeShareInterval } from '../../domain/base/prediction-metrics.js';
import { computeSum } from '../../lists.js';
import type { ModelQuality, ReliabilityBin } from '../../warehouse/reads/model-quality.js';
import type { SourceLagPorts } from '../outbox/wait-until-stored.js';

export const ReliabilityQuery = Type.Object({
  skill_id: Type.Optional(Id),
  days: Type.Integer({ minimum: 1, maximum: 365, default: 28 }),
});

export interface QualityPorts extends SourceLagPorts {
  readonly quality: ModelQuality;
  readonly now: () => number;
}

export async function readReliability(
  { quality, sourceLagSeconds, now }: QualityPorts,
  { tenant, query }: Call<Static<typeof ReliabilityQuery>>,
): Promise<object> {
  const lag = await sourceLagSeconds();
  const { days, skill_id: skillId = null } = query;
  const bins = await quality.fetchReliability(tenant, skillId, now() - days * dayMs);
  const answers = computeSum(bins.map((bin) => bin.answers));
  const mean = (field: keyof ReliabilityBin): number | null =>
    answers === 0 ? null : round4(computeSum(bins.map((bin) => bin.answers * bin[field])) / answers);
  return {
    ...{ days, skill_id: skillId, answers },
    ...{ accuracy: mean('accuracy'), mean_p_correct: mean('p_correct') },
    ...{ log_loss: mean('log_loss'), brier: mean('brier') },
    bins: bins.map(describeBin),
    source_lag_seconds: lag,
  };
}

const describeBin = ({ tenth, answers, accuracy, p_correct }: ReliabilityBin): object =>
  roundFields({
    ...{ from: tenth / 10, to: (tenth + 1) / 10, answers, p_correct, accuracy },
    ...computeShareInterval(accuracy, answers),
  });

export async function readCoverage({ quality }: QualityPorts, { tenant }: Call): Promise<object> {
  return { bands: (await quality.fetchCoverage(tenant)).map(roundFields) };
}
