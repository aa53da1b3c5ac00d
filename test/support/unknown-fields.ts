import type { TSchema } from 'typebox';
import { Value } from 'typebox/value';

/** The parts of a schema that are looked at. */
interface Shape {
  readonly properties?: Readonly<Record<string, TSchema>>;
  readonly patternProperties?: Readonly<Record<string, TSchema>>;
  readonly items?: TSchema;
  readonly anyOf?: readonly TSchema[];
}

/** Paths of what a value has and its schema does not name: schemas allow it, so that fields may follow. */
export function unknownFields(schema: TSchema, value: unknown, path = ''): string[] {
  const shape: Shape = schema;
  if (shape.anyOf !== undefined) {
    const fitting = shape.anyOf.filter((choice) => Value.Check(choice, value));
    const found = fitting.map((choice) => unknownFields(choice, value, path));
    return found.sort((a, b) => a.length - b.length)[0] ?? [];
  }
  if (Array.isArray(value)) {
    const { items } = shape;
    return items === undefined ? [] : value.flatMap((one, i) => unknownFields(items, one, `${path}/${i}`));
  }
  if (typeof value !== 'object' || value === null || shape.properties === undefined) return [];
  return Object.entries(value).flatMap(([name, field]) => {
    const known = schemaOf(shape, name);
    return known === undefined ? [`${path}/${name}`] : unknownFields(known, field, `${path}/${name}`);
  });
}

function schemaOf({ properties = {}, patternProperties = {} }: Shape, name: string): TSchema | undefined {
  if (Object.hasOwn(properties, name)) return properties[name];
  return Object.entries(patternProperties).find(([pattern]) => new RegExp(pattern, 'u').test(name))?.[1];
}
