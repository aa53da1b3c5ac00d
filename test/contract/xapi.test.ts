/** xAPI 1.0.3: statements of public client packages and of the specification become answers, or are rejected. */
import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import XAPI from '@xapi/xapi';
import TinCan from 'tincanjs';
import { indices } from '../../src/lists.js';
import { timeAgo } from '../support/builders/day.js';
import { askInTurn } from '../support/builders/learner-data.js';
import { adl, type Json, skillIri, statement, voiding } from '../support/builders/statements.js';
import { assertDescribed } from '../support/http/answer-check.js';
import { callerOf, jsonOf, type RequestParts } from '../support/http/http.js';
import { root } from '../support/runner/root.js';
import { keysOf, sharedService } from '../support/servers/service.js';
import { waitUntilStored } from '../support/wait.js';

const service = await sharedService();
const keys = await keysOf({ after }, service);
const caller = callerOf(service, service.key);
const version = { 'X-Experience-API-Version': '1.0.3' };
const path = '/xapi/statements';

/** Sends a request and compares the response with the description of the API. */
async function call(parts: RequestParts, by = caller) {
  const answer = await by.raw({ path, headers: version, ...parts });
  assertDescribed(answer, parts.method ?? 'POST', path);
  return { ...answer, json: answer.text === '' ? null : jsonOf(answer) };
}
const send = (body: unknown, more: RequestParts = {}) => call({ body: JSON.stringify(body), ...more });
const put = (id: unknown, body: unknown) =>
  call({ method: 'PUT', path: `${path}?statementId=${id}`, body: JSON.stringify(body) });
const putMapping = (body: unknown, headers: RequestParts['headers'] = {}) =>
  caller.send('PUT', '/api/v1/xapi-mapping', body, headers);

const sha1 = (text: string): string => createHash('sha1').update(text).digest('hex');
const hashed = (identifier: string): string =>
  `x-${createHash('sha256').update(identifier).digest('base64url')}`;
const learnerOf = ({ actor }: Json): string =>
  hashed(`mbox_sha1sum\n${sha1((actor as { mbox: string }).mbox)}`);
const attemptsOf = async (userId: string) => {
  const { status, json } = await caller.get(`/api/v1/learners/${encodeURIComponent(userId)}/attempts`);
  return status === 404 ? [] : json.data.attempts;
};
const attemptsFor = (sent: Json) => attemptsOf(learnerOf(sent));

const { href: endpoint } = new URL('/xapi/', service.baseUrl);
const basic = (key: string): string => `Basic ${Buffer.from(`anybody:${key}`).toString('base64')}`;
const specification: readonly Json[] = JSON.parse(
  readFileSync(join(root, 'test/fixtures/xapi/specification-statements.json'), 'utf8'),
);

test('The package @xapi/xapi reads about, sends statements and voids one', async () => {
  const client = new XAPI.default({ endpoint, auth: basic(service.key), version: '1.0.3' });
  const about = await client.getAbout();
  assert.deepEqual(about.data, { version: ['1.0.3'] });
  assert.equal(about.headers['x-experience-api-version'], '1.0.3');
  const [one, two, three] = [statement(), statement(), statement()];
  assert.deepEqual((await client.sendStatement({ statement: one as never })).data, [one.id]);
  const both = await client.sendStatements({ statements: [two, three] as never });
  assert.deepEqual(both.data, [two.id, three.id]);
  for (const sent of [one, two, three]) assert.equal((await attemptsFor(sent)).length, 1);
  const actor = { objectType: 'Agent', mbox: 'mailto:teacher@school.example' } as const;
  assert.equal((await client.voidStatement({ actor, statementId: `${one.id}` })).status, 200);
  assert.deepEqual(await attemptsFor(one), []);
});

test('The package tincanjs reads about, and sends statements by PUT and POST', async () => {
  const lrs = new TinCan.LRS({ endpoint, username: 'anybody', password: service.key, allowFail: false });
  const done = (start: (callback: (error: unknown, result: unknown) => void) => void) =>
    new Promise((resolve, reject) => {
      start((error, result) => (error === null ? resolve(result) : reject(new Error(`${error}`))));
    });
  const about = (await done((callback) => lrs.about({ callback }))) as { version: string[] };
  assert.deepEqual(about.version, ['1.0.3']);
  const [one, two, three] = [statement(), statement(), statement()];
  await done((callback) => lrs.saveStatement(new TinCan.Statement(one), { callback }));
  const several = [two, three].map((sent) => new TinCan.Statement(sent));
  await done((callback) => lrs.saveStatements(several, { callback }));
  for (const sent of [one, two, three]) assert.equal((await attemptsFor(sent))[0].event_id, sent.id);
});

test('POST /xapi/statements accepts the examples of the specification, which are no answers', async () => {
  const { status, json, headers, text } = await send(specification);
  assert.equal(status, 200, text);
  assert.equal(headers['x-experience-api-version'], '1.0.3');
  const given = specification.flatMap(({ id }) => id ?? []);
  assert.deepEqual(json.slice(0, given.length), given);
  assert.equal(json.length, specification.length);
  for (const id of json) assert.match(id, /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
  assert.deepEqual(await attemptsFor({ actor: { mbox: 'mailto:example.learner@adlnet.gov' } }), []);
});

const long = `http://x.example/${'é'.repeat(200)}`;
const answered: readonly (readonly [Json, Json | null])[] = [
  [
    { timestamp: '2025-05-18T07:32:34.804+02:00' },
    {
      ...{ skill_id: skillIri, item_id: 'http://school.example/items/1', is_correct: true },
      ...{ time_spent_seconds: 13, occurred_at: '2025-05-18T05:32:34.804Z' },
    },
  ],
  [{ result: { success: false, duration: 'PT1H0,5M' } }, { is_correct: false, time_spent_seconds: 3630 }],
  [{ result: { success: true, duration: 'P1D' } }, { time_spent_seconds: 86_400 }],
  [{ result: { success: true, duration: 'P3Y1M29DT4H35M59.14S' } }, { time_spent_seconds: null }],
  [{ result: { success: true, duration: 'P0W' } }, { time_spent_seconds: 0 }],
  [{ result: { success: true } }, { time_spent_seconds: null }],
  [{ verb: adl('failed'), result: { success: false } }, { is_correct: false }],
  [{ object: { id: long } }, { item_id: hashed(long) }],
  [{ verb: adl('passed'), result: {} }, null],
  [{ verb: adl('completed'), result: { score: { scaled: 1 } } }, null],
  [{ verb: adl('experienced') }, null],
  [{ object: { objectType: 'Agent', mbox: 'mailto:a@b' } }, null],
];

test('POST /xapi/statements stores answers with their item, skill, result and duration', async () => {
  const sent = answered.map(([change]) => statement(change));
  assert.equal((await send(sent)).status, 200);
  for (const [i, [change, expected]] of answered.entries()) {
    const attempts = await attemptsFor(sent[i] as Json);
    assert.equal(attempts.length, expected === null ? 0 : 1, JSON.stringify(change));
    const fields = Object.entries({ ...expected, ...(expected && { event_id: sent[i]?.id }) });
    for (const [name, value] of fields) assert.equal(attempts[0][name], value, name);
  }
  const group = { objectType: 'Group', mbox: `mailto:${randomUUID()}@g`, member: [{ mbox: 'mailto:a@b' }] };
  assert.equal((await send(statement({ actor: group }))).status, 200);
  assert.deepEqual(await attemptsFor({ actor: group }), []);
});

test('POST /xapi/statements identifies learners by mbox or its SHA-1, by account and by openid', async () => {
  const mbox = `mailto:${randomUUID()}@school.example`;
  const account = { homePage: 'http://lms.example/', name: `learner ${randomUUID()}` };
  const openid = `http://${randomUUID()}.example/`;
  const actors = [{ mbox }, { mbox_sha1sum: sha1(mbox).toUpperCase() }, { account }, { openid }];
  assert.equal((await send(actors.map((actor) => statement({ actor })))).status, 200);
  const ids = [
    `mbox_sha1sum\n${sha1(mbox)}`,
    `account\n${account.homePage}\n${account.name}`,
    `openid\n${openid}`,
  ];
  const counts = await Promise.all(ids.map(async (id) => (await attemptsOf(hashed(id))).length));
  assert.deepEqual(counts, [2, 1, 1]);
});

const actor = (value: unknown): Json => ({ actor: value });
const object = (value: unknown): Json => ({ object: value });
const result = (value: unknown): Json => ({ result: value });
const context = (value: unknown): Json => ({ context: value });
const attachment = { usageType: 'http://a.b', display: {}, contentType: 'a/b', length: 1, sha2: 'x' };
/** Changes of a valid statement, by the path that the response names. */
const malformed: Readonly<Record<string, readonly Json[]>> = {
  actor: [
    ...[undefined, { name: 'unidentified' }, { mbox: 'mailto:a@b', openid: 'http://a.b/' }].map(actor),
    actor({ objectType: 'Group', name: 'no members' }),
    actor({ mbox: 'mailto:a@b', member: [{ mbox: 'mailto:c@d' }] }),
  ],
  'actor/mbox': [actor({ mbox: 'a@b' })],
  'actor/mbox_sha1sum': [actor({ mbox_sha1sum: 'abc' })],
  'actor/account/homePage': [actor({ account: { homePage: 'lms', name: 'a' } })],
  'actor/account/name': [actor({ account: { homePage: 'http://a.b', name: '\ud800' } })],
  'actor/objectType': [actor({ objectType: 'agent', mbox: 'mailto:a@b' })],
  'verb/id': [{ verb: { id: 'answered' } }],
  'verb/display': [{ verb: { ...adl('answered'), display: { 'not a language': 'x' } } }],
  object: [undefined, { objectType: 'Agent' }, { objectType: 'StatementRef', id: '1' }].map(object),
  'object/id': [object({ id: 'items/1' }), object({ id: 'http://a.b/c d' })],
  'object/objectType': [object({ id: 'http://a.b', objectType: 'activity' })],
  'object/definition/extensions': [object({ id: 'http://a.b', definition: { extensions: { a: 1 } } })],
  id: [{ id: 'not-a-uuid' }],
  timestamp: ['18 May 2013', '2013-02-30T05:32:34Z', timeAgo(-1)].map((timestamp) => ({ timestamp })),
  'result/duration': ['12', 'P4W1D', 'PT'].map((duration) => result({ duration })),
  'result/success': [result({ success: 'true' })],
  'result/score/scaled': [1.1, '1'].map((scaled) => result({ score: { scaled } })),
  'result/score': [result({ score: { raw: 5, max: 4 } })],
  'result/response': [result({ response: null })],
  'result/Success': [result({ Success: true })],
  'context/contextActivities/parent': [context({ contextActivities: { parent: null } })],
  'context/registration': [context({ registration: 'x' })],
  context: [context({})],
  extra: [{ extra: true }],
  version: [{ version: '1.1.0' }],
  'attachments/0/fileUrl': [{ attachments: [attachment] }],
  '': [{ verb: adl('voided') }],
};

test('POST /xapi/statements rejects the whole request for one malformed statement and names its path', async () => {
  const cases = Object.entries(malformed).flatMap(([at, changes]) =>
    changes.map((change): [string, unknown] => [at, statement(change)]),
  );
  const others: [string, unknown][] = ['text', null, 1, [[]]].map((value) => ['', value]);
  for (const [at, bad] of [...cases, ...others]) {
    const good = statement();
    const { status, json, headers } = await send([good, bad]);
    assert.deepEqual([status, json.code, json.success], [400, 'INVALID_REQUEST', undefined], at);
    const paths = json.details.map((one: { path: string }) => one.path);
    assert.ok(paths.includes(`1/${at}`.replace(/\/$/, '')), `${at}: ${JSON.stringify(json.details)}`);
    assert.equal(headers['x-experience-api-version'], '1.0.3');
    assert.deepEqual(await attemptsFor(good), []);
  }
  const twice = statement();
  assert.equal((await send([twice, { ...twice, id: `${twice.id}`.toUpperCase() }])).status, 400);
  assert.equal((await send(Array(1001).fill({}))).status, 400);
  assert.deepEqual((await send([])).json, []);
});

test('POST and PUT /xapi/statements count a repeated id once, and return 409 for other content', async () => {
  const [one, two] = [statement(), statement()];
  for (const _ of [1, 2]) assert.deepEqual((await send([one, two])).json, [one.id, two.id]);
  assert.equal((await attemptsFor(one)).length, 1);
  const other = { ...one, result: { success: false } };
  const { status, json } = await send([two, other]);
  assert.deepEqual([status, json.details.length], [409, 1]);
  for (const _ of [1, 2]) {
    const answer = await put(two.id, two);
    assert.deepEqual([answer.status, answer.text, answer.headers['content-length']], [204, '', undefined]);
  }
  assert.equal((await put(one.id, other)).status, 409);
  const withoutId = { ...statement(), id: undefined };
  const id = randomUUID();
  assert.equal((await put(id, withoutId)).status, 204);
  assert.equal((await attemptsFor(withoutId))[0].event_id, id);
  for (const [invalidId, body] of [
    [randomUUID(), one],
    ['x', withoutId],
    [randomUUID(), [withoutId]],
    [randomUUID(), { ...withoutId, id: null }],
    [randomUUID(), 'text'],
  ])
    assert.equal((await put(invalidId, body)).status, 400, JSON.stringify(body));
});

test('POST and PUT /xapi/statements count a statement once for all spellings of its id and instant', async () => {
  const one = statement({ timestamp: '2026-05-31T12:00:00Z' });
  const upper = `${one.id}`.toUpperCase();
  await send(one);
  for (const timestamp of ['2026-05-31T12:00:00.000Z', '2026-05-31T13:00:00+01:00', '2026-05-31t12:00:00z'])
    for (const id of [one.id, upper]) {
      assert.deepEqual((await send({ ...one, id, timestamp })).json, [id]);
      assert.equal((await put(id, { ...one, timestamp })).status, 204);
      assert.equal((await put(one.id, { ...one, id, timestamp })).status, 204);
    }
  assert.equal((await send({ ...one, timestamp: '2026-05-31T12:00:01Z' })).status, 409);
  const attempts = await attemptsFor(one);
  assert.deepEqual([attempts.length, attempts[0].event_id], [1, one.id]);
  for (const id of [`urn:uuid:${one.id}`, `{${one.id}}`, `${one.id}`.replaceAll('-', '')])
    assert.equal((await send({ ...one, id })).status, 400, id);
});

test('POST and PUT /xapi/statements reject an object that repeats a name, at any depth', async () => {
  const one = statement();
  const body = JSON.stringify(one).replace('"success"', '"success":false,"succ\\u0065ss"');
  for (const answer of [
    await call({ body }),
    await call({ body: `[${body}]` }),
    await call({ body, method: 'PUT', path: `${path}?statementId=${one.id}` }),
  ]) {
    assert.equal(answer.status, 400);
    assert.deepEqual(answer.json.details, [
      { path: 'success', message: 'must not be repeated in its object' },
    ]);
    assert.equal(answer.json.message, 'Invalid body: success must not be repeated in its object.');
  }
  assert.deepEqual(await attemptsFor(one), []);
});

test('POST /xapi/statements hashes names that are no ids', async () => {
  const homePage = 'https://lms.example/names';
  await putMapping({ home_page: homePage, skill_from: { extension: 'https://lms.example/skill' } });
  const account = { homePage, name: '..' };
  const context = { extensions: { 'https://lms.example/skill': '.' } };
  assert.equal((await send(statement({ actor: { account }, context }))).status, 200);
  const [attempt] = await attemptsOf(hashed(`account\n${homePage}\n..`));
  assert.deepEqual(attempt.skill_ids, [hashed('.')]);
  const { status, json } = await putMapping({ skills: { [skillIri]: '..' } });
  assert.deepEqual([status, json.error.code], [400, 'INVALID_REQUEST']);
  await putMapping({});
});

test('POST /xapi/statements checks version, key, scope, method, media type and size', async () => {
  const statusOf = async (headers: NonNullable<RequestParts['headers']>, body?: Buffer) =>
    (await send(statement(), { headers, ...(body && { body }) })).status;
  for (const minor of ['1.0', '1.0.0', '1.0.9'])
    assert.equal(await statusOf({ 'X-Experience-API-Version': minor }), 200);
  for (const headers of [{}, { 'X-Experience-API-Version': '0.95' }, { 'X-Experience-API-Version': '1.1.0' }])
    assert.equal(await statusOf(headers), 400);
  const byAuthorization = (Authorization: string) =>
    send(statement(), { headers: { ...version, 'X-API-Key': null, Authorization } });
  assert.equal((await byAuthorization(basic(service.key))).status, 200);
  assert.equal((await byAuthorization(basic(await keys.add({ scopes: ['read'] })))).status, 403);
  for (const unknown of [basic('unknown'), 'Basic', 'Basic !', `Bearer ${service.key}`, basic('')]) {
    const { status, headers } = await byAuthorization(unknown);
    assert.deepEqual([status, headers['www-authenticate']], [401, 'Basic realm="xAPI", ApiKey'], unknown);
    assert.equal(headers['x-experience-api-version'], '1.0.3');
  }
  const limited = callerOf(service, await keys.add({ quota: 1 }));
  await call({}, limited);
  assert.equal((await call({}, limited)).status, 429);
  for (const by of [caller, callerOf(service, null)]) {
    const got = await by.call({ method: 'GET', path });
    assert.deepEqual([got.status, got.headers.allow], [405, 'POST, PUT']);
  }
  for (const type of ['text/plain', 'multipart/mixed'])
    assert.equal(await statusOf({ ...version, 'Content-Type': type }), 415);
  assert.equal((await send('x'.repeat(1024 * 1024))).status, 413);
  const zipped = gzipSync(JSON.stringify(indices(1000).map(() => statement())));
  assert.equal(await statusOf({ ...version, 'Content-Encoding': 'gzip' }, zipped), 200);
});

test('POST /xapi/statements retracts the answer of a voiding statement, stored or pending', async () => {
  const [kept, stored, pending] = [statement(), statement(), statement()];
  assert.equal((await send([kept, stored])).status, 200);
  await waitUntilStored(caller);
  const voidings = [voiding(pending.id), voiding(`${stored.id}`.toUpperCase())];
  // A read of ClickHouse that has to wait too long is 503.
  assert.equal((await askInTurn(() => send([pending, ...voidings]))).status, 200);
  for (const gone of [pending, stored]) assert.deepEqual(await attemptsFor(gone), []);
  const stranger = callerOf(service, await keys.add({ tenant: 'stranger' }));
  for (const [by, id] of [
    [caller, stored.id],
    [caller, randomUUID()],
    [stranger, kept.id],
  ] as const)
    assert.equal((await call({ body: JSON.stringify(voiding(id)) }, by)).status, 200);
  assert.equal((await attemptsFor(kept)).length, 1);
  assert.equal((await send(stored)).status, 200);
  assert.deepEqual(await attemptsFor(stored), [], 'a voided statement is counted again');
});

const defaultMapping = {
  ...{ home_page: null, skill_from: 'parent', skills: {}, success_threshold: null, unmapped: 'reject' },
};

test('PUT /xapi-mapping sets the home page and skill names, with If-Match', async () => {
  const first = await caller.get('/api/v1/xapi-mapping');
  assert.deepEqual(first.json.data, defaultMapping);
  const home_page = 'http://lms.example/';
  const mapping = { home_page, skills: { [skillIri]: 'algebra' } };
  const condition = { 'If-Match': `${first.headers.etag}` };
  const set = await putMapping(mapping, condition);
  assert.deepEqual([set.status, set.json.data], [200, { ...defaultMapping, ...mapping }]);
  assert.equal((await putMapping({}, condition)).status, 412);
  assert.equal((await caller.get('/api/v1/xapi-mapping')).headers.etag, set.headers.etag);
  const stranger = callerOf(service, await keys.add({ tenant: 'stranger' }));
  assert.deepEqual((await stranger.get('/api/v1/xapi-mapping')).json.data, defaultMapping);
  const [name, longName] = [`learner ${randomUUID()}`, 'n'.repeat(129)];
  const actors = [name, longName].map((each) => ({ account: { homePage: home_page, name: each } }));
  assert.equal((await send(actors.map((actor) => statement({ actor })))).status, 200);
  assert.equal((await attemptsOf(name))[0].skill_id, 'algebra');
  assert.equal((await attemptsOf(hashed(`account\n${home_page}\n${longName}`))).length, 1);
  const tooMany = Object.fromEntries(indices(10_001).map((i) => [`http://a.b/${i}`, 's']));
  for (const bad of [
    ...[{ skills: { a: 'b' } }, { skills: { 'http://a.b': '' } }, { skills: tooMany }, [], 'x', null],
    ...[{ skill_from: 'other' }, { success_threshold: 2 }, { home_page: 'lms' }, { unmapped: 'x' }],
  ])
    assert.equal((await putMapping(bad)).status, 400, JSON.stringify(bad).slice(0, 99));
});

const extension = 'http://school.example/skill';
const byExtension = { skill_from: { extension } };
const inContext = (value: unknown): Json => ({ context: { extensions: { [extension]: value } } });
const inCategory = { context: { contextActivities: { category: { id: 'http://school.example/c' } } } };
const definition = { extensions: { [extension]: 'constructor' } };
const scored = { result: { score: { scaled: 0.7 } } };
/** Mapping, change of a statement, and the skill of the answer, null without an answer, or the status. */
const mapped: readonly (readonly [Json, Json, string | number | null])[] = [
  [{ skill_from: 'category' }, inCategory, 'http://school.example/c'],
  [{ skill_from: 'grouping' }, inCategory, 400],
  [{ skill_from: 'grouping', unmapped: 'ignore' }, inCategory, null],
  [byExtension, inContext('constructor'), 'constructor'],
  [byExtension, { object: { id: 'http://school.example/items/1', definition } }, 'constructor'],
  ...[1, null, '', '\ud800', { a: [] }, [], ['a', 1], [['a']]].map(
    (value) => [byExtension, inContext(value), 400] as const,
  ),
  [{ success_threshold: 0.7 }, scored, skillIri],
  [{}, scored, null],
];

test('POST /xapi/statements counts an answer for several parents, categories or entries of an extension', async () => {
  const irisOf = (...names: readonly string[]) =>
    names.map((name) => ({ id: `http://school.example/${name}` }));
  const inParents = (...names: readonly string[]) => ({
    context: { contextActivities: { parent: irisOf(...names) } },
  });
  const [a, b] = irisOf('a', 'b').map(({ id }) => id) as [string, string];
  const skills = { [a]: 'algebra', [b]: 'algebra', 'http://school.example/course': null };
  const eleven = indices(11).map((i) => `${i}`);
  const cases: readonly (readonly [Json, Json, readonly string[] | 400])[] = [
    [{}, inParents('b', 'a'), [b, a]],
    [{ skills }, inParents('course', 'a', 'c'), ['algebra', 'http://school.example/c']],
    [{ skills }, inParents('a', 'b'), ['algebra']],
    [{ skills }, inParents('course'), 400],
    [byExtension, inContext(['x', 'y', 'x']), ['x', 'y']],
    [byExtension, inContext(eleven.slice(1)), eleven.slice(1)],
    [byExtension, inContext(eleven), 400],
  ];
  for (const [mapping, change, expected] of cases) {
    assert.equal((await putMapping(mapping)).status, 200);
    const sent = statement(change);
    const { status, text } = await send(sent);
    const name = JSON.stringify([mapping, change]);
    if (expected === 400) {
      assert.equal(status, 400, name);
      assert.match(text, /must name 1 to 10 skills as defined in the xAPI mapping/);
      continue;
    }
    assert.equal(status, 200, text);
    const { json } = await caller.get(`/api/v1/mastery/${encodeURIComponent(learnerOf(sent))}`);
    const counted = json.data.skills.map((one: Json) => `${one.skill_id} ${one.total_attempts}`);
    assert.deepEqual(counted.sort(), expected.map((skill) => `${skill} 1`).sort(), name);
    assert.equal((await attemptsFor(sent))[0].skill_id, expected[0], name);
  }
});

test('POST /xapi/statements maps skills and results by the mapping of the tenant', async () => {
  for (const [mapping, change, expected] of mapped) {
    assert.equal((await putMapping(mapping)).status, 200);
    const sent = statement(change);
    const { status } = await send(sent);
    const skill = (await attemptsFor(sent))[0]?.skill_id ?? null;
    assert.deepEqual(status === 200 ? skill : status, expected, JSON.stringify([mapping, change]));
  }
  const { text } = await caller.raw({ method: 'GET', path: '/metrics' });
  assert.match(text, /_answers_total\{outcome="unmapped",process="all"\} [1-9]/);
});
