/** A learner's goal; nothing but its time is left of one that was deleted. */
import Type from 'typebox';
import { TargetScore } from '../goals.js';
import { Id } from '../ids.js';
import { Day, nullable, Time } from './parts.js';

export const Goal = Type.Object({
  user_id: Id,
  target_score: TargetScore,
  target_date: nullable(Day),
  updated_at: Time,
});

export const DeletedGoal = Type.Object({
  user_id: Id,
  target_score: Type.Null(),
  target_date: Type.Null(),
  updated_at: Time,
});
