import Type, { type TSchema } from 'typebox';

/** An optional field whose `null` means the same as its absence. */
export const orNull = <T extends TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));
