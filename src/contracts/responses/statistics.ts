/** The ClickHouse queries use these field names. */
import Type, { type Static } from 'typebox';
import { StoredId } from '../schema/ids.js';
import { nullable } from '../schema/validate.js';
import { Amount, Change, Count, Day, lagField, namedFields, pageSchema, Share } from './shared-schemas.js';

const figures = { ...namedFields(Count, 'learners', 'answers'), accuracy: Share };
/** Plateaus as of the learner's last active day. */
const skillSums = {
  skill_id: StoredId,
  ...figures,
  ...namedFields(Share, 'mean_p_correct', 'plateau_share'),
};

/** Speeds and times are medians over learners. */
const ListedSkill = Type.Object({
  ...skillSums,
  velocity_per_attempt: Change,
  efficiency_index: nullable(Type.Number({ minimum: 0, maximum: 100 })),
  correct_per_minute: nullable(Amount),
});
export type ListedSkill = Static<typeof ListedSkill>;
export const SkillStatisticsPage = pageSchema('skills', ListedSkill, lagField);

const CurveStep = Type.Object({
  attempt: Type.Integer({ minimum: 1, maximum: 30 }),
  learners: Type.Integer({
    minimum: 5,
    description: 'Learners who gave at least this number of answers.',
  }),
  ...namedFields(Share, 'accuracy', 'low', 'high', 'p_correct', 'mastery'),
});
export type CurveStep = Static<typeof CurveStep>;

const CohortWeek = Type.Object({ cohort: Day, week: Count, ...figures, mean_mastery: Share });
export type CohortWeek = Static<typeof CohortWeek>;

export const SkillStatistics = Type.Object({
  ...skillSums,
  velocity_per_attempt: Type.Object(namedFields(Change, 'q1', 'median', 'q3')),
  learning_curve: Type.Array(CurveStep, { maxItems: 30 }),
  cohorts: Type.Array(CohortWeek, { maxItems: 26 * 26 }),
  ...lagField,
});
export type SkillStatistics = Static<typeof SkillStatistics>;

export const SkillItem = Type.Object({
  item_id: StoredId,
  ...figures,
  ...namedFields(Share, 'expected', 'p_correct'),
  ...namedFields(Change, 'beyond', 'low', 'high'),
  median_seconds: nullable(Amount),
  sure_and_wrong: nullable(Share),
  misleading: nullable(
    Type.Boolean({
      description:
        'True if learners with a mastery of at least .8 of every skill of the question do no better than learners below .5 of one, and the item does worse than predicted (high is below 0). null: fewer than 15 answers of either.',
    }),
  ),
});
export type SkillItem = Static<typeof SkillItem>;
export const SkillItemPage = pageSchema('items', SkillItem, { skill_id: StoredId, ...lagField });
