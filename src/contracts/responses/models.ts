import Type, { type Static } from 'typebox';
import { StoredId } from '../schema/ids.js';
import { nullable } from '../schema/validate.js';
import { Amount, Count, lagField, namedFields, pageSchema, Share, Time } from './shared-schemas.js';

const Bin = Type.Object({
  ...namedFields(Share, 'from', 'to', 'p_correct', 'accuracy', 'low', 'high'),
  answers: Type.Integer({ minimum: 1 }),
});

export const Reliability = Type.Object({
  days: Type.Integer({ minimum: 1, maximum: 365 }),
  skill_id: nullable(StoredId),
  answers: Count,
  ...namedFields(nullable(Share), 'accuracy', 'mean_p_correct', 'brier'),
  log_loss: nullable(Amount),
  bins: Type.Array(Bin, {
    maxItems: 10,
    description: 'Ranges of p_correct, each .1 wide, with answers. low and high: 95 % interval of accuracy.',
  }),
  ...lagField,
});

const CoverageBand = Type.Object({
  forecast_days: Type.Integer({ minimum: 1, maximum: 365 }),
  history_from: Count,
  history_to: nullable(Count),
  ...namedFields(Count, 'cases', 'learners', 'answers'),
  ...namedFields(Share, 'coverage_50', 'coverage_80', 'coverage_95'),
  ...namedFields(Share, 'mean_width_50', 'mean_width_80', 'mean_width_95'),
  ...namedFields(Share, 'uncalibrated_coverage_50', 'uncalibrated_coverage_80', 'uncalibrated_coverage_95'),
  uncalibrated_mean_width_80: Share,
  ...namedFields(Share, 'expected_share', 'observed_share', 'mean_squared_error', 'brier'),
});
export type CoverageBand = Static<typeof CoverageBand>;
const Calibration = Type.Object({ calibrated_at: Time, ...namedFields(Count, 'outcomes', 'learners') });
export const Coverage = Type.Object({
  bands: Type.Array(CoverageBand, {
    description: 'coverage and mean_width: as served. uncalibrated: the same forecasts before recalibration.',
  }),
  calibration: Type.Union([Calibration, Type.Null()], {
    description: 'Current recalibration of the intervals, from recent outcomes; null: none.',
  }),
  calibration_reason: nullable(Type.String({ description: 'Why calibration is null.' })),
});

/** Of p_correct on held-out answers, for the active and the fitted model. */
const logLosses = namedFields(nullable(Amount), 'old_log_loss', 'new_log_loss');

/** Counts are null without a report. */
const ModelChange = Type.Object({
  ...namedFields(Count, 'change', 'version'),
  action: Type.Enum(['fit', 'rollback']),
  based_on: Type.Integer({ minimum: 0, description: 'Previously active version; 0 if none.' }),
  published_at: Time,
  in_force: Type.Boolean(),
  kept: Type.Boolean({ description: 'True if the version can be activated again.' }),
  ...namedFields(nullable(Count), 'skills', 'skills_published', 'answers', 'learners'),
  ...logLosses,
  summary: Type.String(),
});
export type ModelChange = Static<typeof ModelChange>;
export const ModelVersionPage = pageSchema('versions', ModelChange, { in_force: Count });

const VersionSkill = Type.Object({
  skill_id: StoredId,
  published: Type.Boolean(),
  parameters_version: Count,
  ...namedFields(Share, 'p_init', 'p_learn', 'p_guess', 'p_slip', 'p_forget'),
  ...namedFields(Count, 'answers', 'learners'),
  ...logLosses,
  reason: Type.String({ description: 'Why the fitted parameters were published or rejected.' }),
});
export type VersionSkill = Static<typeof VersionSkill>;
export const ModelVersion = pageSchema('skills', VersionSkill, { version: Count });
export const ActiveVersion = Type.Object({ version: Count });
