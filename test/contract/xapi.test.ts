/** xAPI in: statements of public client packages and of the specification become answers, are refused, or are taken back. */
import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { after, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import XAPI from '@xapi/xapi';
import TinCan from 'tincanjs';
import { assertAsync, fc } from '../support/builders/properties.js';
import { adl, type Json, skillIri, specified, statement, voiding } from '../support/builders/statements.js';
import { assertAnswer } from '../support/http/answer-check.js';
import { type Answer, callerOf, type RequestParts } from '../support/http/http.js';
import { targetOf } from '../support/http/route-table.js';
import { keysOf, sharedService, startService } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const service = await sharedService();
const keys = await keysOf({ after }, service);
const caller = callerOf(service, service.key);
const version = { 'X-Experience-API-Version': '1.0.3' };

const send = (body: unknown, more: RequestParts = {}) =>
  caller.call({ path: '/xapi/statements', body: JSON.stringify(body), headers: version, ...more });
const put = (id: unknown, body: unknown) =>
  caller.raw({
    method: 'PUT',
    path: `/xapi/statements?statementId=${id}`,
    headers: version,
    body: JSON.stringify(body),
  });
const map = (body: Json, headers: RequestParts['headers'] = {}) =>
  caller.call({ method: 'PUT', path: '/api/v1/xapi-mapping', body: JSON.stringify(body), headers });

const learnerBy = (identifier: string): string =>
  `x-${createHash('sha256').update(identifier).digest('base64url')}`;
const sha1 = (text: string): string => createHash('sha1').update(text).digest('hex');
const learnerOf = ({ actor }: Json): string =>
  learnerBy(`mbox_sha1sum\n${sha1((actor as { mbox: string }).mbox)}`);
const attemptsOf = async (userId: string) => {
  const { status, json } = await caller.get(`/api/v1/learners/${encodeURIComponent(userId)}/attempts`);
  return status === 404 ? [] : json.data.attempts;
};

const { href: endpoint } = new URL('/xapi/', service.baseUrl);
const basic = (key: string): string => `Basic ${Buffer.from(`anybody:${key}`).toString('base64')}`;

test('@xapi/xapi: about, one statement, several, a voiding one', async () => {
  const client = new XAPI.default({ endpoint, auth: basic(service.key), version: '1.0.3' });
  const about = await client.getAbout();
  assert.deepEqual(about.data, { version: ['1.0.3'] });
  assert.equal(about.headers['x-experience-api-version'], '1.0.3');
  const [one, two, three] = [statement(), statement(), statement()];
  assert.deepEqual((await client.sendStatement({ statement: one as never })).data, [one.id]);
  const both = await client.sendStatements({ statements: [two, three] as never });
  assert.deepEqual(both.data, [two.id, three.id]);
  for (const sent of [one, two, three]) assert.equal((await attemptsOf(learnerOf(sent))).length, 1);
  const actor = { objectType: 'Agent', mbox: 'mailto:teacher@school.example' } as const;
  assert.equal((await client.voidStatement({ actor, statementId: `${one.id}` })).status, 200);
  assert.deepEqual(await attemptsOf(learnerOf(one)), []);
});

test('tincanjs: about, a statement that is PUT, several that are POSTed', async () => {
  const lrs = new TinCan.LRS({ endpoint, username: 'anybody', password: service.key, allowFail: false });
  const done = (call: (callback: (error: unknown, result: unknown) => void) => void) =>
    new Promise((resolve, reject) => {
      call((error, result) => (error === null ? resolve(result) : reject(new Error(`${error}`))));
    });
  const about = (await done((callback) => lrs.about({ callback }))) as { version: string[] };
  assert.deepEqual(about.version, ['1.0.3']);
  const [one, two, three] = [statement(), statement(), statement()];
  await done((callback) => lrs.saveStatement(new TinCan.Statement(one), { callback }));
  const several = [two, three].map((sent) => new TinCan.Statement(sent));
  await done((callback) => lrs.saveStatements(several, { callback }));
  for (const sent of [one, two, three])
    assert.equal((await attemptsOf(learnerOf(sent)))[0].event_id, sent.id);
});

test("the specification's examples are taken; none of them is an answer", async () => {
  const { status, json, headers } = await send(specified);
  assert.equal(status, 200, JSON.stringify(json));
  assert.equal(headers['x-experience-api-version'], '1.0.3');
  const ids = json as unknown as string[];
  assert.deepEqual(
    ids.slice(0, 3),
    specified.slice(0, 3).map(({ id }) => id),
  );
  for (const id of ids) assert.match(id, /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
  assert.deepEqual(
    await attemptsOf(learnerBy(`mbox_sha1sum\n${sha1('mailto:example.learner@adlnet.gov')}`)),
    [],
  );
});

test('what an answer becomes', async () => {
  const sent = statement({ timestamp: '2025-05-18T07:32:34.804+02:00' });
  assert.equal((await send(sent)).status, 200);
  const [{ event_id, skill_id, item_id, is_correct, time_spent_seconds, occurred_at }] = await attemptsOf(
    learnerOf(sent),
  );
  assert.deepEqual(
    { event_id, skill_id, item_id, is_correct, time_spent_seconds, occurred_at },
    {
      ...{ event_id: sent.id, skill_id: skillIri, item_id: 'http://school.example/items/1' },
      ...{ is_correct: true, time_spent_seconds: 13, occurred_at: '2025-05-18T05:32:34.804Z' },
    },
  );
});

test('durations, long names, verbs and outcomes', async () => {
  const cases: readonly (readonly [Json, Json | null])[] = [
    [{ result: { success: false, duration: 'PT1H0,5M' } }, { is_correct: false, time_spent_seconds: 3630 }],
    [{ result: { success: true, duration: 'P1D' } }, { time_spent_seconds: 86_400 }],
    [{ result: { success: true, duration: 'P3Y1M29DT4H35M59.14S' } }, { time_spent_seconds: null }],
    [{ result: { success: true, duration: 'P0W' } }, { time_spent_seconds: 0 }],
    [{ result: { success: true } }, { time_spent_seconds: null }],
    [{ verb: adl('failed'), result: { success: false } }, { is_correct: false }],
    [
      { object: { id: `http://x.example/${'é'.repeat(200)}` } },
      { item_id: learnerBy(`http://x.example/${'é'.repeat(200)}`) },
    ],
    [{ verb: adl('passed'), result: {} }, null],
    [{ verb: adl('completed'), result: { score: { scaled: 1 } } }, null],
    [{ verb: adl('experienced') }, null],
    [{ object: { objectType: 'Agent', mbox: 'mailto:a@b' } }, null],
  ];
  for (const [change, expected] of cases) {
    const sent = statement(change);
    assert.equal((await send(sent)).status, 200, JSON.stringify(change));
    const [attempt] = await attemptsOf(learnerOf(sent));
    if (expected === null) assert.equal(attempt, undefined, JSON.stringify(change));
    for (const [name, value] of Object.entries(expected ?? {})) assert.equal(attempt[name], value, name);
  }
  const group = { objectType: 'Group', mbox: `mailto:${randomUUID()}@g`, member: [{ mbox: 'mailto:a@b' }] };
  assert.equal((await send(statement({ actor: group }))).status, 200);
  assert.deepEqual(await attemptsOf(learnerOf({ actor: group })), []);
});

test('one learner by mbox and by its SHA-1; others by account and openid', async () => {
  const mbox = `mailto:${randomUUID()}@school.example`;
  const actors = [{ mbox }, { mbox_sha1sum: sha1(mbox).toUpperCase() }];
  assert.equal((await send(actors.map((actor) => statement({ actor })))).status, 200);
  assert.equal((await attemptsOf(learnerBy(`mbox_sha1sum\n${sha1(mbox)}`))).length, 2);
  const [homePage, name] = ['http://lms.example/', `learner ${randomUUID()}`];
  assert.equal((await send(statement({ actor: { account: { homePage, name } } }))).status, 200);
  assert.equal((await attemptsOf(learnerBy(`account\n${homePage}\n${name}`))).length, 1);
  const openid = `http://${randomUUID()}.example/`;
  assert.equal((await send(statement({ actor: { openid } }))).status, 200);
  assert.equal((await attemptsOf(learnerBy(`openid\n${openid}`))).length, 1);
});

const within = (name: string, value: unknown): Json => ({ result: { [name]: value } });
const malformed: readonly (readonly [string, unknown])[] = [
  ['actor', statement({ actor: undefined })],
  ['actor', statement({ actor: { name: 'nobody' } })],
  ['actor', statement({ actor: { mbox: 'mailto:a@b', openid: 'http://a.b/' } })],
  ['actor/mbox', statement({ actor: { mbox: 'a@b' } })],
  ['actor/mbox_sha1sum', statement({ actor: { mbox_sha1sum: 'abc' } })],
  ['actor/account/homePage', statement({ actor: { account: { homePage: 'lms', name: 'a' } } })],
  ['actor/account/name', statement({ actor: { account: { homePage: 'http://a.b', name: '\ud800' } } })],
  ['actor', statement({ actor: { objectType: 'Group', name: 'no members' } })],
  ['actor', statement({ actor: { mbox: 'mailto:a@b', member: [{ mbox: 'mailto:c@d' }] } })],
  ['actor/objectType', statement({ actor: { objectType: 'agent', mbox: 'mailto:a@b' } })],
  ['verb/id', statement({ verb: { id: 'answered' } })],
  ['verb/display', statement({ verb: { ...adl('answered'), display: { 'not a language': 'x' } } })],
  ['object', statement({ object: undefined })],
  ['object/id', statement({ object: { id: 'items/1' } })],
  ['object/id', statement({ object: { id: 'http://a.b/c d' } })],
  ['object', statement({ object: { objectType: 'Agent' } })],
  ['object/objectType', statement({ object: { id: 'http://a.b', objectType: 'activity' } })],
  ['object', statement({ object: { objectType: 'StatementRef', id: '1' } })],
  [
    'object/definition/extensions',
    statement({ object: { id: 'http://a.b', definition: { extensions: { a: 1 } } } }),
  ],
  ['id', statement({ id: 'not-a-uuid' })],
  ['timestamp', statement({ timestamp: '18 May 2013' })],
  ['timestamp', statement({ timestamp: '2013-02-30T05:32:34Z' })],
  ['timestamp', statement({ timestamp: new Date(Date.now() + 86_400_000).toISOString() })],
  ['result/duration', statement(within('duration', '12'))],
  ['result/duration', statement(within('duration', 'P4W1D'))],
  ['result/duration', statement(within('duration', 'PT'))],
  ['result/success', statement(within('success', 'true'))],
  ['result/score/scaled', statement(within('score', { scaled: 1.1 }))],
  ['result/score/scaled', statement(within('score', { scaled: '1' }))],
  ['result/score', statement(within('score', { raw: 5, max: 4 }))],
  ['result/response', statement(within('response', null))],
  ['result/Success', statement(within('Success', true))],
  ['context/contextActivities/parent', statement({ context: { contextActivities: { parent: null } } })],
  ['context/registration', statement({ context: { registration: 'x' } })],
  ['context', statement({ context: {} })],
  ['extra', statement({ extra: true })],
  ['version', statement({ version: '1.1.0' })],
  [
    'attachments/0/fileUrl',
    statement({
      attachments: [{ usageType: 'http://a.b', display: {}, contentType: 'a/b', length: 1, sha2: 'x' }],
    }),
  ],
  ['', statement({ verb: adl('voided') })],
  ['', 'text'],
  ['', null],
  ['', 1],
  ['', [[]]],
];

test('one malformed statement is 400 with its place, and none of the request is counted', async () => {
  for (const [path, bad] of malformed) {
    const good = statement();
    const { status, json, headers } = await send([good, bad]);
    const { code, details, success } = json as unknown as {
      code: string;
      details: { path: string }[];
      success: unknown;
    };
    assert.deepEqual([status, code, success], [400, 'INVALID_REQUEST', undefined], JSON.stringify(bad));
    assert.ok(
      details.some((one) => one.path === `1/${path}`.replace(/\/$/, '')),
      `${path}: ${JSON.stringify(details)}`,
    );
    assert.equal(headers['x-experience-api-version'], '1.0.3');
    assert.deepEqual(await attemptsOf(learnerOf(good)), []);
  }
  const twice = statement();
  assert.equal((await send([twice, { ...twice, id: `${twice.id}`.toUpperCase() }])).status, 400);
  assert.equal((await send(Array.from({ length: 1001 }, () => ({})))).status, 400);
  assert.deepEqual((await send([])).json, []);
});

test('what is sent again is counted once; the same id with another content is 409', async () => {
  const [one, two] = [statement(), statement()];
  for (const _ of [1, 2]) assert.deepEqual((await send([one, two])).json, [one.id, two.id]);
  assert.equal((await attemptsOf(learnerOf(one))).length, 1);
  const other = { ...one, result: { success: false } };
  const { status, json } = await send([two, other]);
  assert.deepEqual([status, (json as unknown as { details: unknown[] }).details.length], [409, 1]);
  for (const _ of [1, 2]) {
    const answer = await put(two.id, two);
    assert.deepEqual([answer.status, answer.text, answer.headers['content-length']], [204, '', undefined]);
  }
  assert.equal((await put(one.id, other)).status, 409);
  const third = { ...statement(), id: undefined };
  assert.equal((await put('ec531277-b57b-4c15-8d91-d292c5b2b8f7', third)).status, 204);
  assert.equal((await attemptsOf(learnerOf(third)))[0].event_id, 'ec531277-b57b-4c15-8d91-d292c5b2b8f7');
  for (const [id, body] of [
    [randomUUID(), one],
    ['x', third],
    [randomUUID(), [third]],
    [randomUUID(), { ...third, id: null }],
    [randomUUID(), 'text'],
  ])
    assert.equal((await put(id, body)).status, 400, JSON.stringify(body));
});

test('heads: version, key, method, media type, encoding', async () => {
  for (const wanted of ['1.0', '1.0.0', '1.0.9'])
    assert.equal((await send(statement(), { headers: { 'X-Experience-API-Version': wanted } })).status, 200);
  for (const headers of [{}, { 'X-Experience-API-Version': '0.95' }, { 'X-Experience-API-Version': '1.1.0' }])
    assert.equal((await send(statement(), { headers })).status, 400);
  const reader = await keys.add({ scopes: ['read'] });
  const by = (Authorization: string) =>
    send(statement(), { headers: { ...version, 'X-API-Key': null, Authorization } });
  assert.equal((await by(basic(service.key))).status, 200);
  assert.equal((await by(basic(reader))).status, 403);
  for (const unknown of [basic('unknown'), 'Basic', 'Basic !', `Bearer ${service.key}`, basic('')]) {
    const { status, headers } = await by(unknown);
    assert.deepEqual([status, headers['www-authenticate']], [401, 'Basic realm="xAPI", ApiKey'], unknown);
    assert.equal(headers['x-experience-api-version'], '1.0.3');
  }
  for (const one of [caller, callerOf(service, null)]) {
    const got = await one.call({ method: 'GET', path: '/xapi/statements' });
    assert.deepEqual([got.status, got.headers.allow], [405, 'POST, PUT']);
  }
  assert.equal(
    (await send(statement(), { headers: { ...version, 'Content-Type': 'multipart/mixed' } })).status,
    415,
  );
  const zipped = gzipSync(JSON.stringify(Array.from({ length: 1000 }, () => statement())));
  const large = await send(null, { body: zipped, headers: { ...version, 'Content-Encoding': 'gzip' } });
  assert.equal(large.status, 200, large.text.slice(0, 300));
});

test('errors are those of the description', async () => {
  const judge = (answer: Answer, method = 'POST', path = '/xapi/statements') =>
    assertAnswer(answer, { method, target: targetOf(method, path), requestId: null });
  const [reader, limited] = [await keys.add({ scopes: ['read'] }), await keys.add({ quota: 1 })];
  const one = statement();
  const answers = [
    await send(one),
    await send({ ...one, result: { success: false } }),
    await send({}),
    await send(one, { headers: { ...version, 'Content-Type': 'text/plain' } }),
    await send('x'.repeat(1024 * 1024)),
    ...(await Promise.all(
      [null, reader].map((key) => callerOf(service, key).raw({ path: '/xapi/statements' })),
    )),
  ];
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 409, 400, 415, 413, 401, 403],
  );
  for (const answer of answers) judge(answer);
  const spent = callerOf(service, limited);
  await spent.raw({ path: '/xapi/statements' });
  judge(await spent.raw({ path: '/xapi/statements' }));
  judge(await put(one.id, { ...one, result: { success: false } }), 'PUT');
  const twice = { 'X-API-Key': ['a', 'b'] };
  judge(await caller.raw({ method: 'GET', path: '/xapi/about', headers: twice }), 'GET', '/xapi/about');
});

test('a voiding statement takes the answer back, wherever it is stored', async () => {
  const [kept, waiting, stored] = [statement(), statement(), statement()];
  assert.equal((await send([kept, stored])).status, 200);
  await waitFor('the rows in ClickHouse', async () => {
    const { json } = await caller.get('/api/v1/health');
    return json.data.checks.pipeline.outbox_length === 0;
  });
  assert.equal(
    (await send([waiting, voiding(waiting.id), voiding(`${stored.id}`.toUpperCase())])).status,
    200,
  );
  for (const gone of [waiting, stored]) assert.deepEqual(await attemptsOf(learnerOf(gone)), []);
  assert.equal((await attemptsOf(learnerOf(kept))).length, 1);
  // Again, of one that nobody knows, and of another tenant's.
  const stranger = callerOf(service, await keys.add({ tenant: 'stranger' }));
  for (const by of [caller, stranger])
    for (const id of [by === caller ? stored.id : kept.id, randomUUID()])
      assert.equal(
        (await by.raw({ path: '/xapi/statements', headers: version, body: JSON.stringify(voiding(id)) }))
          .status,
        200,
      );
  assert.equal((await attemptsOf(learnerOf(kept))).length, 1);
  // Once voided it stays so.
  assert.equal((await send(stored)).status, 200);
  assert.deepEqual(await attemptsOf(learnerOf(stored)), []);
});

test('the mapping: defaults, ETag, skills by name, category and extension, threshold, what is unmapped', async () => {
  const first = await caller.get('/api/v1/xapi-mapping');
  const defaults = {
    home_page: null,
    skill_from: 'parent',
    skills: {},
    success_threshold: null,
    unmapped: 'reject',
  };
  assert.deepEqual(first.json.data, defaults);
  const homePage = 'http://lms.example/';
  const set = await map(
    { home_page: homePage, skills: { [skillIri]: 'algebra' } },
    { 'If-Match': `${first.headers.etag}` },
  );
  assert.equal(set.status, 200, set.text);
  assert.deepEqual(set.json.data, { ...defaults, home_page: homePage, skills: { [skillIri]: 'algebra' } });
  assert.equal((await map({}, { 'If-Match': `${first.headers.etag}` })).status, 412);
  assert.equal((await caller.get('/api/v1/xapi-mapping')).headers.etag, set.headers.etag);
  const name = `learner ${randomUUID()}`;
  const actor = { account: { homePage, name } };
  assert.equal((await send(statement({ actor }))).status, 200);
  assert.equal((await attemptsOf(name))[0].skill_id, 'algebra');
  const long = 'n'.repeat(129);
  assert.equal((await send(statement({ actor: { account: { homePage, name: long } } }))).status, 200);
  assert.equal((await attemptsOf(learnerBy(`account\n${homePage}\n${long}`))).length, 1);

  const skillBy = async (mapping: Json, change: Json) => {
    assert.equal((await map(mapping)).status, 200);
    const sent = statement(change);
    const { status } = await send(sent);
    return status === 200 ? ((await attemptsOf(learnerOf(sent)))[0]?.skill_id ?? null) : status;
  };
  const category = { context: { contextActivities: { category: { id: 'http://school.example/c' } } } };
  assert.equal(await skillBy({ skill_from: 'category' }, category), 'http://school.example/c');
  assert.equal(await skillBy({ skill_from: 'grouping' }, category), 400);
  assert.equal(await skillBy({ skill_from: 'grouping', unmapped: 'ignore' }, category), null);
  const { text } = await caller.raw({ method: 'GET', path: '/metrics' });
  assert.match(text, /_answers_total\{outcome="unmapped",process="all"\} [1-9]/);
  const skill_from = { extension: 'http://school.example/skill' };
  const extensions = { [skill_from.extension]: 'constructor' };
  assert.equal(await skillBy({ skill_from }, { context: { extensions } }), 'constructor');
  const defined = { object: { id: 'http://school.example/items/1', definition: { extensions } } };
  assert.equal(await skillBy({ skill_from }, defined), 'constructor');
  for (const value of [1, null, '', '\ud800', { a: [] }])
    assert.equal(
      await skillBy({ skill_from }, { context: { extensions: { [skill_from.extension]: value } } }),
      400,
    );
  const scored = { result: { score: { scaled: 0.7 } } };
  assert.equal(await skillBy({ success_threshold: 0.7 }, scored), skillIri);
  assert.equal(await skillBy({}, scored), null);

  const tooMany = Object.fromEntries(Array.from({ length: 10_001 }, (_, i) => [`http://a.b/${i}`, 's']));
  for (const bad of [
    { skills: { a: 'b' } },
    { skills: { 'http://a.b': '' } },
    { skills: tooMany },
    { skill_from: 'other' },
    { success_threshold: 2 },
    { home_page: 'lms' },
    { unmapped: 'x' },
    [],
    'x',
    null,
  ])
    assert.equal((await map(bad as Json)).status, 400, JSON.stringify(bad).slice(0, 99));
  const stranger = callerOf(service, await keys.add({ tenant: 'stranger' }));
  assert.equal((await map({ success_threshold: 0.1 })).status, 200);
  assert.deepEqual((await stranger.get('/api/v1/xapi-mapping')).json.data, defaults);
  assert.equal((await map({})).status, 200);
});

/** A place in a statement, and what is put there. */
const damage = fc.record({
  depth: fc.integer({ min: 0, max: 4 }),
  pick: fc.nat(),
  value: fc.oneof(fc.jsonValue(), fc.constantFrom(null, '', {}, [], '\ud800', 1e300, '__proto__', -1)),
  rename: fc.option(fc.constantFrom('__proto__', 'constructor', 'toString', 'id', 'objectType', 'x'), {
    nil: null,
    freq: 4,
  }),
});

function damaged(
  value: unknown,
  { depth, pick, ...put }: { depth: number; pick: number; value: unknown; rename: string | null },
): unknown {
  if (typeof value !== 'object' || value === null || depth === 0) return put.value;
  const entries = Object.entries(value);
  const at = entries.length === 0 ? -1 : pick % entries.length;
  const changed = entries.map(([name, inner], i) =>
    i === at
      ? [put.rename ?? name, damaged(inner, { ...put, depth: depth - 1, pick: pick >> 3 })]
      : [name, inner],
  );
  return Array.isArray(value) ? changed.map(([, inner]) => inner) : Object.fromEntries(changed);
}

test('however a statement is damaged, it is taken or refused, and never with others of its request', async () => {
  const property = fc.asyncProperty(
    fc.constantFrom(statement(), ...specified),
    damage,
    async (whole, how) => {
      const good = statement();
      const { status, text } = await send([good, damaged({ ...whole, id: randomUUID() }, how)]);
      assert.ok(status === 200 || status === 400, `${status} ${text}`);
      assert.equal((await attemptsOf(learnerOf(good))).length, status === 200 ? 1 : 0);
    },
  );
  await assertAsync(property, { numRuns: 150 });
});

test('a process without answers has none of it', async (t) => {
  const probes = callerOf(await startService(t, { dataDir: service.dataDir, role: 'pipeline' }), null);
  const statuses = ['/xapi/about', '/livez'].map(
    async (path) => (await probes.raw({ method: 'GET', path })).status,
  );
  assert.deepEqual(await Promise.all(statuses), [404, 200]);
});
