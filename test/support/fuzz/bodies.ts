/** Request bodies generated from the OpenAPI document: valid ones, and ones with errors. */
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import type { Route } from '../../../src/http/route.js';
import { operationAt, type Schema } from '../http/description.js';
import { routeRequests } from '../http/route-requests.js';
import { anyValue, eventId, invalidId, mostly, validId } from './texts.js';

/** A body with the headers that describe it. */
export interface Content {
  readonly bytes: Buffer;
  readonly type: string | null;
  readonly encoding: string | null;
}

/** Largest number of events in a generated batch. */
export const maxEvents = 8;

const times = [
  ...['2026-01-01T00:00:00Z', '1970-01-01T00:00:00+00:00', '1970-01-01T23:59:00+23:59'],
  ...['2016-12-31T23:59:60Z', '2024-02-29t12:00:00.123456789123456789z'],
];
const invalidTimes = [
  '2023-02-29T00:00:00Z',
  '1969-12-31T23:59:59.999Z',
  '9999-12-31T23:59:59Z',
  '2026-01-01',
];
const urls = ['https://hooks.example.org/', 'https://hooks.example.org/a?b=c'];
const invalidUrls = [
  'http://hooks.example.org/',
  'https://10.0.0.1/',
  'https://[::1]/',
  'hooks',
  'https://a/#b',
];

/** Fields with checks beyond their schema. */
const fields: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  event_id: fc.oneof(eventId, eventId, validId),
  occurred_at: mostly(12, fc.constantFrom(...times), fc.constantFrom(...invalidTimes)),
  target_date: mostly(12, fc.constantFrom('2099-01-01', '2099-12-31'), fc.constantFrom('2001-01-01', 'soon')),
  url: mostly(12, fc.constantFrom(...urls), fc.constantFrom(...invalidUrls)),
  version: fc.constantFrom(0, 0, 1, 2),
  time_zone: mostly(4, fc.constantFrom('UTC', 'America/Los_Angeles', 'Asia/Kathmandu'), validId),
  home_page: fc.constantFrom('http://lms.example/', 'lms'),
  extension: fc.constant('http://lms.example/skill'),
};

const ids = { userId: 'ada', skillId: 'algebra', eventId: 'e-1', erasureId: '', webhookId: '' };
const { body: statementText } = routeRequests['POST /xapi/statements']?.(ids) ?? {};
const statementFields = {
  ...{ id: fc.uuid(), timestamp: fc.constantFrom(...times), result: fc.record({ success: fc.boolean() }) },
};
const xapiStatement = fc
  .record(statementFields, { requiredKeys: [] })
  .map((change) => ({ ...JSON.parse(`${statementText}`), ...change }));

/** Values that the schema allows. Strings are valid ids, because formats are in `fields`. */
function valueFor(schema: Schema): fc.Arbitrary<unknown> {
  const { type, minimum = 0, maximum = 1, multipleOf = 1, minItems = 0, items = {} } = schema;
  if (schema.anyOf !== undefined) return fc.oneof(...schema.anyOf.map(valueFor));
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  if (type === 'boolean') return fc.boolean();
  if (type === 'number') return fc.double({ min: minimum, max: maximum, noNaN: true });
  if (type === 'integer')
    return fc.integer({ min: minimum / multipleOf, max: maximum / multipleOf }).map((n) => n * multipleOf);
  if (type === 'string') return validId;
  if (type === 'array') {
    const lengths = { minLength: minItems, maxLength: maxEvents };
    const one =
      items.properties === undefined ? valueFor(items) : mostly(12, valueFor(items), damage(valueFor(items)));
    return schema.uniqueItems ? fc.uniqueArray(one, lengths) : fc.array(one, lengths);
  }
  if (type === 'object') return objectFor(schema);
  return fc.constant(null);
}

function objectFor({ properties = {}, patternProperties, required = [] }: Schema): fc.Arbitrary<object> {
  const [values] = Object.values(patternProperties ?? {});
  if (values !== undefined)
    return fc.dictionary(fc.constantFrom('http://lms.example/skills/1', 'a'), valueFor(values));
  const entries = Object.entries(properties).map(
    ([name, schema]) => [name, fields[name] ?? valueFor(schema)] as const,
  );
  const record = fc.record<Record<string, unknown>>(Object.fromEntries(entries), {
    requiredKeys: [...required],
  });
  const { skill_id, skill_ids } = Object.fromEntries(entries);
  if (skill_id === undefined || skill_ids === undefined) return record;
  // Exactly one of the two is valid.
  const skill = fc.oneof(fc.record({ skill_id: validId }), fc.record({ skill_ids }));
  const valid = fc
    .tuple(record, skill)
    .map(([{ skill_id: _, skill_ids: __, ...others }, chosen]) => ({ ...others, ...chosen }));
  return mostly(12, valid, record);
}

/** Replaces, drops or adds a field, or wraps the whole. */
const damage = (whole: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
  fc
    .tuple(whole, fc.nat(), anyValue, fc.constantFrom('replace', 'drop', 'add', 'wrap', 'prototype'))
    .map(([object, at, value, how]) => {
      const names = Object.keys(object as object);
      const name = names[at % names.length] ?? 'extra';
      const others = Object.entries(object as object).filter(([key]) => key !== name);
      if (how === 'replace') return Object.fromEntries([...others, [name, value]]);
      if (how === 'drop') return Object.fromEntries(others);
      if (how === 'add') return { ...(object as object), extra: value };
      if (how === 'wrap') return [object];
      return JSON.parse(`{"__proto__":${textOf(object)},"constructor":{"prototype":{}}}`);
    });

const textOf = (value: unknown): string => JSON.stringify(value) ?? 'undefined';

/** Cuts bytes out, and inserts others. */
const tear = (whole: fc.Arbitrary<unknown>): fc.Arbitrary<Buffer> =>
  fc
    .tuple(whole, fc.nat(), fc.nat({ max: 20 }), fc.uint8Array({ maxLength: 8 }))
    .map(([value, place, length, bytes]) => {
      const source = Buffer.from(textOf(value));
      const at = place % (source.length + 1);
      return Buffer.concat([source.subarray(0, at), bytes, source.subarray(at + length)]);
    });

const nested = fc.nat({ max: 4000 }).map((depth) => Buffer.from('['.repeat(depth) + ']'.repeat(depth)));
const toBytes = (value: unknown): Buffer => Buffer.from(textOf(value));

const bytesOf = (value: fc.Arbitrary<unknown>): fc.Arbitrary<Buffer> =>
  fc.oneof(
    { weight: 24, arbitrary: value.map(toBytes) },
    { weight: 4, arbitrary: damage(value).map(toBytes) },
    { weight: 2, arbitrary: tear(value) },
    { weight: 1, arbitrary: anyValue.map(toBytes) },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)) },
    { weight: 1, arbitrary: fc.oneof(nested, fc.constant(Buffer.alloc(20_000, 32))) },
  );

const types = fc.constantFrom(
  ...['application/json; charset=utf-8', 'Application/JSON;x=y', 'application/json; charset=latin1'],
  ...['text/plain', 'application/x-ndjson', 'multipart/form-data; boundary=a', null],
);
const encodings = fc.constantFrom('gzip', 'GZIP', 'identity', 'br', 'deflate', 'gzip, gzip', '');

const jsonContent = (value: fc.Arbitrary<unknown>): fc.Arbitrary<Content> =>
  fc.record({
    bytes: bytesOf(value),
    type: mostly(12, fc.constant('application/json'), types),
    encoding: mostly(12, fc.constant(null), encodings),
  });

const oddLine = fc.oneof(anyValue.map(textOf), fc.constantFrom('', '{', '\t'));
const lineContent = (event: fc.Arbitrary<unknown>): fc.Arbitrary<Content> =>
  fc.array(mostly(12, event.map(textOf), oddLine), { maxLength: maxEvents }).map((lines) => ({
    ...{ bytes: Buffer.from(lines.join('\n')), type: 'application/x-ndjson', encoding: null },
  }));

const gzipContent = (content: fc.Arbitrary<Content>): fc.Arbitrary<Content> =>
  fc.tuple(content, mostly(12, fc.constant(0), fc.constant(5))).map(([{ bytes, type }, cut]) => {
    const packed = gzipSync(bytes, { level: 1 });
    return { bytes: packed.subarray(0, packed.length - cut), type, encoding: 'gzip' };
  });

/** @param route with a body */
export function contentOf({ method, path, body, protocol }: Route): fc.Arbitrary<Content> {
  const schema = operationAt(method, path)?.requestBody?.content['application/json']?.schema as Schema;
  const value = protocol ? xapiStatement : valueFor(schema);
  const { items = {} } = schema.properties?.events ?? {};
  const hasLines = body?.mediaTypes.includes('application/x-ndjson');
  const forms = [jsonContent(value), ...(hasLines ? [lineContent(valueFor(items))] : [])];
  return fc.oneof(...forms, ...(body?.encodings.includes('gzip') ? forms.map(gzipContent) : []));
}

/** For a route without a body. */
export const strayContent: fc.Arbitrary<Content> = invalidId.map((id) => ({
  bytes: Buffer.from(id),
  type: 'application/json',
  encoding: null,
}));
