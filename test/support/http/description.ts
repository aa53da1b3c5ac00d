/** The description at /openapi.json, and checks of values by its schemas. */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { buildOpenapi } from '../../../src/http/openapi.js';
import { apiRoutes } from './route-table.js';

/** The used fields of a schema. References are resolved. */
export interface Schema {
  readonly description?: string;
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly multipleOf?: number;
  readonly items?: Schema;
  readonly minItems?: number;
  readonly uniqueItems?: boolean;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly patternProperties?: Readonly<Record<string, Schema>>;
  readonly examples?: readonly unknown[];
}

export interface Content {
  readonly schema: Schema;
  readonly example?: unknown;
}

export interface DescribedAnswer {
  readonly headers: Readonly<Record<string, { readonly required: boolean }>>;
  /** By media type; absent if the response has no body. */
  readonly content?: Readonly<Record<string, Content>>;
}

export interface DescribedOperation {
  readonly operationId: string;
  readonly requestBody?: { readonly content: Readonly<Record<string, Content>> };
  readonly responses: Readonly<Record<string, DescribedAnswer>>;
}

type Operations = Readonly<Record<string, DescribedOperation>>;

interface Description {
  readonly paths: Readonly<Record<string, Operations>>;
  readonly webhooks: Readonly<Record<string, Operations>>;
  readonly components: { readonly responses: Readonly<Record<string, DescribedAnswer>> };
}

/** The document as the service returns it. */
export const document: object = JSON.parse(JSON.stringify(buildOpenapi(apiRoutes)));

/** Resolved schemas by pointer, so that Ajv compiles a shared schema once. */
const targets = new Map<string, unknown>();

export const described = resolved(document) as Description;

function resolved(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(resolved);
  if (typeof value !== 'object' || value === null) return value;
  if ('$ref' in value) return at(`${value.$ref}`);
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, resolved(one)]));
}

function at(pointer: string): unknown {
  const [, ...names] = pointer.split('/');
  const target = names.reduce<unknown>((value, name) => (value as Record<string, unknown>)[name], document);
  const made = targets.get(pointer) ?? resolved(target);
  targets.set(pointer, made);
  return made;
}

export const operationAt = (method: string, path: string): DescribedOperation | undefined =>
  described.paths[path.replaceAll(/:(\w+)/g, '{$1}')]?.[method.toLowerCase()];

const ajv = new Ajv2020({ strict: true, allowMatchingProperties: true });
formats.default(ajv);
const compiled = new Map<Schema, ValidateFunction>();

/** Reasons why a value does not fit its schema. */
export function misfits(schema: Schema, value: unknown): readonly string[] {
  const check = compiled.get(schema) ?? ajv.compile(schema);
  compiled.set(schema, check);
  if (check(value)) return [];
  return (check.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}
