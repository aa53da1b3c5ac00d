/** What the answers' schemas are made of. */
import Type, { type TProperties, type TSchema } from 'typebox';
import { type ErrorCode, errorTable } from '../../errors.js';

/** Absent knowledge is null. */
export const nullable = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()]);

export const Count = Type.Integer({ minimum: 0 });
export const Share = Type.Number({ minimum: 0, maximum: 1 });
/** The difference of two shares. */
export const Change = Type.Number({ minimum: -1, maximum: 1 });
export const Time = Type.String({ format: 'date-time', description: 'RFC 3339, UTC' });
export const Day = Type.String({ format: 'date', description: 'YYYY-MM-DD, a UTC day' });

const codes = Object.keys(errorTable) as ErrorCode[];

export const ErrorObject = Type.Object(
  {
    code: Type.Enum(codes),
    message: Type.String({ minLength: 1 }),
    details: Type.Optional(Type.Array(Type.Object({ path: Type.String(), message: Type.String() }))),
  },
  { description: 'What is wrong, and where' },
);

/** @param more what stands beside the error */
export const errorAnswer = (more: TProperties = {}) =>
  Type.Object({ success: Type.Literal(false), error: ErrorObject, ...more });

export const successAnswer = <Data extends TSchema>(data: Data) =>
  Type.Object({ success: Type.Literal(true), data, message: Type.Optional(Type.String()) });
