import Type, { type Static } from 'typebox';
import { nullable } from '../schema/validate.js';
import { Count, namedFields, pageSchema, Time } from './shared-schemas.js';

export const AcceptedErasure = Type.Object({
  erasure_id: Type.String(),
  status_url: Type.String({ description: 'Path of GET /api/v1/erasures/{erasure_id}.' }),
});

const ErasedTable = Type.Object({
  place: Type.String({ description: 'ClickHouse table.' }),
  before: Count,
  after: nullable(Count),
});

export const Erasure = Type.Object({
  erasure_id: Type.String(),
  status: Type.Enum(['pending', 'running', 'done'], {
    description:
      'pending: earlier answers are not in ClickHouse yet. running: rows are being deleted. done: the proof is available.',
  }),
  requested_at: Time,
  done_at: nullable(Time),
  removed: Type.Object(namedFields(Count, 'records', 'items'), {
    description: 'Fields of the learner record and item records that the request removed from Redis.',
  }),
  places: Type.Array(ErasedTable, {
    description: 'Rows per table; for daily sums, the number of answers in the sums.',
  }),
  proof: nullable(
    Type.Object({
      query: Type.String({
        description: 'SQL query with the parameters below and user_id, which is not stored.',
      }),
      parameters: Type.Record(Type.String(), Type.Union([Type.String(), Type.Number()])),
    }),
  ),
});

export const ListedErasure = Type.Pick(Erasure, ['erasure_id', 'status', 'requested_at', 'done_at']);
export type ListedErasure = Static<typeof ListedErasure>;
export const ErasurePage = pageSchema('erasures', ListedErasure);
