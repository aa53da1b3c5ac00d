/** What counting answers returns. */
import Type from 'typebox';
import { LearningEventResult } from '../events.js';
import { Count, ErrorObject } from './parts.js';

const index = Type.Integer({ minimum: 0, description: 'Of the event in the batch' });

const Accepted = Type.Object({
  index,
  status: Type.Literal(200),
  data: LearningEventResult,
  replayed: Type.Optional(Type.Literal(true)),
});
const Rejected = Type.Object({ index, status: Type.Integer({ minimum: 400 }), error: ErrorObject });

export const BatchResult = Type.Object({
  accepted: Count,
  rejected: Count,
  results: Type.Array(Type.Union([Accepted, Rejected])),
});
