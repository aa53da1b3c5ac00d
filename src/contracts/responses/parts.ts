/** What the answers' schemas are made of. */
import Type, { type TProperties, type TSchema } from 'typebox';
import { type ErrorCode, errorTable } from '../../errors.js';

/** Absent knowledge is null. */
export const nullable = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()]);

/** Fields of one kind. */
export const each = (schema: TSchema, ...names: string[]): TProperties =>
  Object.fromEntries(names.map((name) => [name, schema]));

export const Count = Type.Integer({ minimum: 0 });
export const Amount = Type.Number({ minimum: 0 });
export const Share = Type.Number({ minimum: 0, maximum: 1 });
/** The difference of two shares. */
export const Change = Type.Number({ minimum: -1, maximum: 1 });
export const Time = Type.String({ format: 'date-time', description: 'RFC 3339, UTC' });
export const Day = Type.String({ format: 'date', description: 'YYYY-MM-DD, a UTC day' });

export const ErrorObject = Type.Object(
  {
    code: Type.Enum(Object.keys(errorTable) as ErrorCode[]),
    message: Type.String({ minLength: 1 }),
    details: Type.Optional(Type.Array(Type.Object(each(Type.String(), 'path', 'message')))),
  },
  { description: 'What is wrong, and where' },
);
