import Type, { type Static } from 'typebox';
import type { Call } from '../../contracts/access/call.js';
import { StoredId } from '../../contracts/schema/ids.js';
import { formatDay } from '../../domain/base/calendar.js';
import { round4, roundFields } from '../../domain/base/common.js';
import { computeShareInterval } from '../../domain/base/prediction-metrics.js';
import {
  minCalibrationLearners as minLearners,
  minCalibrationOutcomes as minOutcomes,
} from '../../domain/fit/accuracy/calibrate-intervals.js';
import { computeFirstDay } from '../../domain/learner/velocity.js';
import type { IntervalCalibration } from '../../domain/prediction/interval-calibration.js';
import { computeSum } from '../../lists.js';
import type { ModelStore } from '../../store/models/model-store.js';
import type { ModelQuality, OutcomeCounts, ReliabilityBin } from '../../warehouse/reads/model-quality.js';
import type { TenantCalendars } from '../catalogue/tenant-calendars.js';
import type { SourceLagPorts } from '../outbox/wait-until-stored.js';

const days = { minimum: 1, maximum: 365 };
export const ReliabilityQuery = Type.Object({
  skill_id: Type.Optional(StoredId),
  days: Type.Integer({ ...days, default: 28, description: 'Local days, including today.' }),
});
export const CoverageQuery = Type.Object({
  days: Type.Optional(
    Type.Integer({
      ...days,
      description: 'Forecasts that ended in the last days before today; default: all.',
    }),
  ),
});

export interface QualityPorts extends SourceLagPorts, TenantCalendars {
  readonly quality: ModelQuality;
  readonly models: Pick<ModelStore, 'readCalibration'>;
  readonly now: () => number;
}

export async function readReliability(
  { quality, sourceLagSeconds, calendarOf, now }: QualityPorts,
  { tenant, query }: Call<Static<typeof ReliabilityQuery>>,
): Promise<object> {
  const lag = await sourceLagSeconds();
  const { days, skill_id: skillId = null } = query;
  const { toDay, startOfDay } = await calendarOf(tenant);
  const since = startOfDay(computeFirstDay(days, toDay(now())));
  const bins = await quality.fetchReliability(tenant, skillId, since);
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

export async function readCoverage(
  { quality, models, calendarOf, now }: QualityPorts,
  { tenant, query: { days } }: Call<Static<typeof CoverageQuery>>,
): Promise<object> {
  const { toDay } = await calendarOf(tenant);
  const since = formatDay(days === undefined ? 0 : toDay(now()) - days);
  const found = await models.readCalibration(tenant);
  const [bands, counts] = await Promise.all([
    quality.fetchCoverage(tenant, since),
    found === null ? quality.countOutcomes(tenant, now()) : null,
  ]);
  return {
    bands: bands.map(roundFields),
    calibration: found && describeCalibration(found),
    calibration_reason: counts && explainMissing(counts),
  };
}

const describeCalibration = ({ at, outcomes, learners }: IntervalCalibration): object => ({
  ...{ calibrated_at: new Date(at).toISOString(), outcomes, learners },
});

const explainMissing = ({ outcomes, learners }: OutcomeCounts): string =>
  outcomes < minOutcomes || learners < minLearners
    ? `Too few outcomes: ${outcomes} of ${minOutcomes}, from ${learners} of ${minLearners} learners. ` +
      'An outcome is a forecast with a past horizon and at least 10 answers.'
    : `The next daily run recalibrates the intervals. Known outcomes: ${outcomes}, of ${learners} learners.`;
