import { misfits, type Schema } from './description.js';

/** Paths of fields that the schema does not name. Schemas allow them, so that later versions can add fields. */
export function unknownFields(schema: Schema, value: unknown, path = ''): string[] {
  if (schema.anyOf !== undefined) {
    const fitting = schema.anyOf.filter((choice) => misfits(choice, value).length === 0);
    const found = fitting.map((choice) => unknownFields(choice, value, path));
    return found.sort((a, b) => a.length - b.length)[0] ?? [];
  }
  if (Array.isArray(value)) {
    const { items } = schema;
    return items === undefined ? [] : value.flatMap((one, i) => unknownFields(items, one, `${path}/${i}`));
  }
  if (typeof value !== 'object' || value === null || schema.properties === undefined) return [];
  return Object.entries(value).flatMap(([name, field]) => {
    const known = schemaOf(schema, name);
    return known === undefined ? [`${path}/${name}`] : unknownFields(known, field, `${path}/${name}`);
  });
}

function schemaOf({ properties = {}, patternProperties = {} }: Schema, name: string): Schema | undefined {
  if (Object.hasOwn(properties, name)) return properties[name];
  return Object.entries(patternProperties).find(([pattern]) => new RegExp(pattern, 'u').test(name))?.[1];
}
