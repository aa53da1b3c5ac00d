import Type, { type TProperties, type TSchema } from 'typebox';
import { type ErrorCode, errorTable } from '../../errors.js';
import { StoredId } from '../schema/ids.js';
import { nullable } from '../schema/validate.js';

export const namedFields = <Schema extends TSchema, Name extends string>(schema: Schema, ...names: Name[]) =>
  Object.fromEntries(names.map((name) => [name, schema])) as { [Field in Name]: Schema };

export const Count = Type.Integer({ minimum: 0 });
export const Amount = Type.Number({ minimum: 0 });
export const Share = Type.Number({ minimum: 0, maximum: 1 });
export const Change = Type.Number({ minimum: -1, maximum: 1 });
export const Time = Type.String({ format: 'date-time', description: 'RFC 3339 time in UTC.' });
export const Day = Type.String({
  format: 'date',
  description: 'Day in the time zone of the tenant, YYYY-MM-DD.',
});
export const Text = nullable(Type.String());
export const Difficulty = nullable(Type.Number({ minimum: -3, maximum: 3 }));
export const lagField = { source_lag_seconds: nullable(Amount) };

export const pageSchema = (name: string, item: TSchema, more: TProperties = {}) =>
  Type.Object({ ...more, [name]: Type.Array(item), next_cursor: nullable(Type.String()) });

export const ErrorObject = Type.Object(
  {
    code: Type.Enum(Object.keys(errorTable) as ErrorCode[]),
    message: Type.String({ minLength: 1 }),
    details: Type.Optional(Type.Array(Type.Object(namedFields(Type.String(), 'path', 'message')))),
  },
  { description: 'Code, message and details of an error.' },
);

const learner = { index: Count, user_id: StoredId };
const missing = { status: Type.Union([Type.Literal(404), Type.Literal(500)]), error: ErrorObject };

export const classResults = (data: TSchema) =>
  Type.Object({
    ...namedFields(Count, 'found', 'missing', 'failed'),
    results: Type.Array(
      Type.Union([
        Type.Object({ ...learner, status: Type.Literal(200), data }),
        Type.Object({ ...learner, ...missing }),
      ]),
    ),
  });
