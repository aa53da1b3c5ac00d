import Type, { type Static } from 'typebox';
import { TargetScore } from '../learners/goals.js';
import { StoredId } from '../schema/ids.js';
import { nullable } from '../schema/validate.js';
import { Count, Day, lagField, namedFields, pageSchema, Time } from './shared-schemas.js';

export const ListedLearner = Type.Object({
  user_id: StoredId,
  ...namedFields(Count, 'total_attempts', 'correct_attempts', 'skills'),
  last_day: Day,
});

export type ListedLearner = Static<typeof ListedLearner>;
export const LearnerPage = pageSchema('learners', ListedLearner, lagField);
const goal = { user_id: StoredId, updated_at: Time };
export const Goal = Type.Object({ ...goal, target_score: TargetScore, target_date: nullable(Day) });
export const DeletedGoal = Type.Object({
  ...goal,
  ...namedFields(Type.Null(), 'target_score', 'target_date'),
});

export const ExportLines = Type.String({
  contentMediaType: 'application/x-ndjson',
  description:
    'One JSON object with a `type` per line. The last object of a complete export has the type `end`.',
});
