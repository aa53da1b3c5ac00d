/** Bodies of requests: fitting ones for each route that takes one, and what becomes of them when they are spoilt. */
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { allScopes } from '../../../src/contracts/access/access.js';
import type { Route } from '../../../src/http/route.js';
import { nameOf } from '../http/route-table.js';
import { mostEvents } from './ledger.js';
import { badId, eventId, goodId, junk } from './texts.js';

/** A body with the headers that say what it is. */
export interface Content {
  readonly bytes: Buffer;
  readonly type: string | null;
  readonly encoding: string | null;
}

const optional = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: null, freq: 2 });
const record = (fields: Record<string, fc.Arbitrary<unknown>>, required: string[]) =>
  fc.record(fields, { requiredKeys: required }) as fc.Arbitrary<Record<string, unknown>>;

const day = fc.date({ min: new Date('2026-01-01'), max: new Date('2100-01-01'), noInvalidDate: true });

/** Bounds, offsets, a leap second, more digits than anybody keeps. */
const times = [
  '2026-01-01T00:00:00Z',
  '1970-01-01T00:00:00+00:00',
  '1970-01-01T23:59:00+23:59',
  '1970-01-01T00:00:00-23:59',
  '2016-12-31T23:59:60Z',
  '2024-02-29t12:00:00.123456789123456789z',
];
const noTimes = [
  '2023-02-29T00:00:00Z',
  '1969-12-31T23:59:59.999Z',
  '9999-12-31T23:59:59Z',
  '2026-01-01 00:00:00Z',
];

const event = record(
  {
    user_id: goodId,
    skill_id: goodId,
    is_correct: fc.boolean(),
    time_spent_seconds: optional(fc.integer({ min: 0, max: 86_400 })),
    confidence_score: optional(fc.integer({ min: 1, max: 5 })),
    question_difficulty: optional(fc.double({ min: -3, max: 3, noNaN: true })),
    event_id: optional(fc.oneof(eventId, eventId, goodId, fc.uuid())),
    item_id: optional(goodId),
    occurred_at: optional(
      fc.oneof(
        { weight: 15, arbitrary: fc.constantFrom(...times) },
        { weight: 1, arbitrary: fc.constantFrom(...noTimes) },
      ),
    ),
  },
  ['user_id', 'skill_id', 'is_correct'],
);

/** Values of the wrong kind in some field, fields that are not ours, fields that are missing. */
const spoilt = (object: fc.Arbitrary<Record<string, unknown>>): fc.Arbitrary<unknown> =>
  fc
    .tuple(object, fc.nat(), junk, fc.constantFrom('replace', 'drop', 'add', 'wrap', 'prototype'))
    .map(([fields, at, value, how]) => {
      const names = Object.keys(fields);
      const name = names[at % names.length] as string;
      if (how === 'replace') return { ...fields, [name]: value };
      if (how === 'drop') return Object.fromEntries(Object.entries(fields).filter(([key]) => key !== name));
      if (how === 'add') return { ...fields, extra: value };
      if (how === 'wrap') return [fields];
      return JSON.parse(
        `{"__proto__":${JSON.stringify(fields)},"constructor":{"prototype":${JSON.stringify(value) ?? 'null'}}}`,
      );
    });

/** Few learners, and ids that meet. */
const xapiStatement = record(
  {
    id: fc.constantFrom('5b2c0d6e-6a38-4a53-9d70-6ee1e0d2b4a5', '5b2c0d6e-6a38-4a53-9d70-6ee1e0d2b4a6'),
    actor: fc.constantFrom<object>(
      { mbox: 'mailto:ada@lms.example' },
      { account: { homePage: 'http://lms.example/', name: 'ada' } },
      { objectType: 'Group', member: [{ openid: 'http://lms.example/ada' }] },
    ),
    verb: fc
      .constantFrom('answered', 'answered', 'passed', 'attempted', 'voided')
      .map((verb) => ({ id: `http://adlnet.gov/expapi/verbs/${verb}` })),
    object: fc.constantFrom<object>(
      { id: 'http://lms.example/items/1' },
      { objectType: 'StatementRef', id: '5b2c0d6e-6a38-4a53-9d70-6ee1e0d2b4a5' },
    ),
    result: fc.record({ success: fc.boolean(), duration: fc.constantFrom('PT5S', 'P1Y') }),
    context: fc.constant({ contextActivities: { parent: [{ id: 'http://lms.example/skills/1' }] } }),
    timestamp: fc.constantFrom(...times),
  },
  ['actor', 'verb', 'object', 'result', 'context'],
);

const quota = {
  requests_per_minute: optional(fc.integer({ min: 1, max: 1000 })),
  unlimited: optional(fc.boolean()),
};

const fitting: Readonly<Record<string, fc.Arbitrary<Record<string, unknown>>>> = {
  'POST /api/v1/track-answer': event,
  'POST /api/v1/track-answers': record(
    {
      events: fc.array(fc.oneof({ weight: 9, arbitrary: event }, { weight: 1, arbitrary: spoilt(event) }), {
        maxLength: mostEvents,
      }),
    },
    ['events'],
  ),
  'POST /api/v1/predictions': record(
    {
      user_ids: fc.array(goodId, { minLength: 1, maxLength: 5 }),
      days: optional(fc.integer({ min: 1, max: 365 })),
      confidence_level: optional(fc.double({ min: 0.5, max: 0.99, noNaN: true })),
      locale: optional(fc.constant('en')),
    },
    ['user_ids'],
  ),
  'POST /api/v1/mastery': record(
    {
      user_ids: fc.array(goodId, { minLength: 1, maxLength: 5 }),
      skill_ids: optional(fc.array(goodId, { minLength: 1, maxLength: 3 })),
    },
    ['user_ids'],
  ),
  'POST /api/v1/keys': record(
    { ...quota, scopes: optional(fc.subarray([...allScopes])), tenant: optional(goodId) },
    [],
  ),
  'PATCH /api/v1/keys/:key_id': record(quota, []),
  'POST /api/v1/model/rollback': record({ version: fc.constantFrom(0, 0, 1, 2) }, ['version']),
  'POST /api/v1/predictions/:user_id/what-if': record(
    {
      answers_per_day: fc.double({ min: 0, max: 1000, noNaN: true }),
      skills: optional(fc.uniqueArray(goodId, { minLength: 1, maxLength: 3 })),
      days: optional(fc.integer({ min: 1, max: 365 })),
      target_score: optional(fc.integer({ min: 40, max: 160 }).map((tens) => 10 * tens)),
    },
    ['answers_per_day'],
  ),
  'POST /api/v1/next-items/:user_id': record(
    {
      items: fc.array(
        record(
          {
            item_id: optional(goodId),
            skill_id: goodId,
            question_difficulty: optional(fc.double({ min: -3, max: 3, noNaN: true })),
          },
          ['skill_id'],
        ),
        { minLength: 1, maxLength: 8 },
      ),
      limit: optional(fc.integer({ min: 1, max: 1000 })),
      target: optional(fc.double({ min: 0.5, max: 0.95, noNaN: true })),
    },
    ['items'],
  ),
  'PUT /api/v1/goals/:user_id': record(
    {
      target_score: fc.integer({ min: 40, max: 160 }).map((tens) => 10 * tens),
      target_date: optional(day.map((date) => date.toISOString().slice(0, 10))),
    },
    ['target_score'],
  ),
  'POST /xapi/statements': xapiStatement,
  'PUT /xapi/statements': xapiStatement,
  'PUT /api/v1/xapi-mapping': record(
    {
      home_page: optional(fc.constantFrom('http://lms.example/', 'lms')),
      skill_from: optional(fc.constantFrom('parent', 'category', { extension: 'http://lms.example/skill' })),
      skills: optional(fc.dictionary(fc.constantFrom('http://lms.example/skills/1', 'a'), goodId)),
      success_threshold: optional(fc.double({ min: 0, max: 1, noNaN: true })),
      unmapped: optional(fc.constantFrom('reject', 'ignore')),
    },
    [],
  ),
  'PUT /api/v1/skills/:skill_id': record(
    {
      name: optional(fc.oneof(goodId, badId)),
      section: optional(fc.constantFrom('math', 'rw')),
      weight: optional(fc.double({ min: 0.01, max: 1000, noNaN: true })),
      parameters: optional(
        fc.record({
          p_init: fc.double({ min: 0.001, max: 0.999, noNaN: true }),
          p_learn: fc.double({ min: 0.001, max: 0.999, noNaN: true }),
          p_guess: fc.double({ min: 0.001, max: 0.5, noNaN: true }),
          p_slip: fc.double({ min: 0.001, max: 0.5, noNaN: true }),
          source: fc.constantFrom('default', 'fitted', 'manual'),
        }),
      ),
    },
    [],
  ),
};

const types = fc.oneof(
  fc.constant(['*']),
  fc.subarray([
    'mastery.reached',
    'plateau.detected',
    'goal.reached',
    'erasure.completed',
    '*',
    'webhook.test',
  ]),
);
const url = fc.oneof(
  { weight: 6, arbitrary: fc.webUrl({ validSchemes: ['https'], withQueryParameters: true }) },
  { weight: 1, arbitrary: fc.webUrl({ withFragments: true }) },
  {
    weight: 1,
    arbitrary: fc.oneof(
      badId,
      fc.ipV4(),
      fc.ipV6().map((host) => `https://[${host}]/`),
    ),
  },
);
const webhook = { url, event_types: types, description: optional(fc.oneof(goodId, badId)) };

const webhooks: typeof fitting = {
  'POST /api/v1/webhooks': record(webhook, ['url', 'event_types']),
  'PATCH /api/v1/webhooks/:webhook_id': record({ ...webhook, enabled: optional(fc.boolean()) }, []),
  'POST /api/v1/webhooks/:webhook_id/rotate-secret': record({ revoke_old: optional(fc.boolean()) }, []),
};

const text = (value: unknown): string => JSON.stringify(value) ?? 'undefined';

/** Cuts, doubles or inserts something in the middle. */
const torn = (whole: fc.Arbitrary<string>): fc.Arbitrary<Buffer> =>
  fc
    .tuple(whole, fc.nat(), fc.nat({ max: 20 }), fc.uint8Array({ maxLength: 8 }))
    .map(([json, place, length, bytes]) => {
      const source = Buffer.from(json);
      const at = place % (source.length + 1);
      return Buffer.concat([source.subarray(0, at), bytes, source.subarray(at + length)]);
    });

const deep = fc.nat({ max: 4000 }).map((depth) => Buffer.from('['.repeat(depth) + ']'.repeat(depth)));

const bytesFor = (name: string): fc.Arbitrary<Buffer> => {
  const object = fitting[name] ?? webhooks[name];
  if (object === undefined) throw new Error(`test/support/fuzz/bodies.ts has no body for ${name}`);
  return fc.oneof(
    { weight: 24, arbitrary: object.map((value) => Buffer.from(text(value))) },
    { weight: 4, arbitrary: spoilt(object).map((value) => Buffer.from(text(value))) },
    { weight: 2, arbitrary: torn(object.map(text)) },
    { weight: 1, arbitrary: junk.map((value) => Buffer.from(text(value))) },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)) },
    { weight: 1, arbitrary: fc.oneof(deep, fc.constant(Buffer.alloc(20_000, 32))) },
  );
};

const oddTypes = [
  'application/json; charset=utf-8',
  'Application/JSON;x=y',
  'application/json; charset=latin1',
  'text/plain',
  'application/x-ndjson',
  'multipart/form-data; boundary=a',
];

const oddEncodings = ['gzip', 'GZIP', 'identity', 'br', 'deflate', 'gzip, gzip', ''];

const common = <Value>(usual: Value, odd: readonly Value[]): fc.Arbitrary<Value> =>
  fc.oneof({ weight: 12, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: fc.constantFrom(...odd) });

const json = (bytes: fc.Arbitrary<Buffer>): fc.Arbitrary<Content> =>
  fc.record({
    bytes,
    type: common<string | null>('application/json', [...oddTypes, null]),
    encoding: common<string | null>(null, oddEncodings),
  });

const lines = fc
  .array(
    fc.oneof(
      { weight: 8, arbitrary: event.map(text) },
      { weight: 1, arbitrary: junk.map(text) },
      { weight: 1, arbitrary: fc.constantFrom('', '{', '\t') },
    ),
    {
      maxLength: mostEvents,
    },
  )
  .map(
    (all): Content => ({ bytes: Buffer.from(all.join('\n')), type: 'application/x-ndjson', encoding: null }),
  );

const gzipped = (content: fc.Arbitrary<Content>): fc.Arbitrary<Content> =>
  fc.tuple(content, common(false, [true])).map(([{ bytes, type }, cut]) => {
    const packed = gzipSync(bytes, { level: 1 });
    return { bytes: cut ? packed.subarray(0, packed.length - 5) : packed, type, encoding: 'gzip' };
  });

/** Contents for a route that takes a body. */
export function contentFor(route: Route): fc.Arbitrary<Content> {
  const plain = json(bytesFor(nameOf(route)));
  const forms = [plain, ...(route.body?.mediaTypes.includes('application/x-ndjson') ? [lines] : [])];
  const isPacked = route.body?.encodings.includes('gzip');
  return fc.oneof(...forms, ...(isPacked ? forms.map(gzipped) : []));
}
