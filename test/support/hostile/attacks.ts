/** The most expensive requests that one caller can send, each with the status of its first response. */
import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { indices } from '../../../src/lists.js';
import { rawRequest } from '../http/http.js';
import { keys, learners, skillName } from './targets.js';

interface HostileRequest {
  readonly path: string;
  readonly method?: string;
  readonly body?: string | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface LargeRequest {
  readonly name: string;
  readonly status: number;
  /** The i-th request. Requests that write use a new id each time. */
  create(i: number): HostileRequest;
}

const { full, busy, pupils, busyAnswers } = learners;
const maxBodyBytes = 2 ** 20;

const get = (name: string, path: string): LargeRequest => ({
  ...{ name, status: 200, create: () => ({ method: 'GET', path }) },
});

const post = (
  name: string,
  path: string,
  body: object | string | Buffer,
  status = 200,
  headers: HostileRequest['headers'] = {},
): LargeRequest => {
  const bytes = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  return { name, status, create: () => ({ method: 'POST', path, body: bytes, headers }) };
};

const remove = (name: string, status: number, pathOf: (i: number) => string): LargeRequest => ({
  ...{ name, status, create: (i) => ({ method: 'DELETE', path: `/api/v1/learners/${pathOf(i)}` }) },
});

const batch = (name: string, create: (i: number) => Partial<HostileRequest>): LargeRequest => ({
  ...{ name, status: 200, create: (i) => ({ method: 'POST', path: '/api/v1/track-answers', ...create(i) }) },
});

const farthest = { days: 365, confidence_level: 0.99 };
const itemOf = (i: number) => ({ skill_id: skillName(i), item_id: `item-${i}` });

const reads: readonly LargeRequest[] = [
  get('mastery of 2,000 skills', `/api/v1/mastery/${full}`),
  get('an explanation with 50 steps', `/api/v1/mastery/${busy}/${skillName(0)}?explain=true&steps=50`),
  get('predictions with 2,000 skills', `/api/v1/predictions/${full}?days=365&confidence_level=0.99`),
  get('velocity of 2,000 skills', `/api/v1/velocity/${full}?days=365`),
  get('a page of 1,000 attempts', `/api/v1/learners/${busy}/attempts?limit=1000`),
  get('an export of 20,000 answers', `/api/v1/learners/${busy}/export`),
  get('a page of 1,000 of 50,000 skills', '/api/v1/skills?limit=1000'),
  get('the metrics', '/metrics'),
  post('predictions of 500 learners with 2,000 skills', '/api/v1/predictions', {
    user_ids: pupils,
    days: 365,
  }),
  post('what-if with 100 skills', `/api/v1/predictions/${full}/what-if`, {
    ...{ answers_per_day: 1000, skills: indices(100).map(skillName), ...farthest, target_score: 1600 },
  }),
  post('next-items with 1,000 items', `/api/v1/next-items/${full}`, {
    ...{ items: indices(1000).map(itemOf), limit: 1000 },
  }),
];

const fill = (piece: string, begin: string, end: string): string => {
  const count = Math.floor((maxBodyBytes - begin.length - end.length) / piece.length);
  return begin + piece.repeat(count).replace(/,$/, '') + end;
};

const nest = (open: string, close: string): string => {
  const depth = Math.floor(maxBodyBytes / (open.length + close.length)) - 10;
  return open.repeat(depth) + close.repeat(depth);
};

/** 1 MiB each. Workers parse batches, the main thread parses the bodies of predictions. */
const invalidBodies: Readonly<Record<string, string>> = {
  'one string': fill('x', '{"user_ids":["', '"],"events":[""]}'),
  'one number': fill('1', '{"user_ids":[', '],"events":[1]}'),
  zeros: fill('0,', '{"user_ids":[0],"events":[', ']}'),
  '80,000 keys': `{"user_ids":[0],${indices(80_000).map((i) => `"${i}x":0`)}}`,
  'nested arrays': nest('[', ']'),
  'nested objects': nest('{"events":', '}'),
};

const invalid: readonly LargeRequest[] = Object.entries(invalidBodies).flatMap(([name, body]) => [
  post(`a batch of ${name}`, '/api/v1/track-answers', body, 400),
  post(`predictions of ${name}`, '/api/v1/predictions', body, 400),
]);

const gzip = { 'Content-Encoding': 'gzip' };
const gigabyte = Buffer.concat(Array.from({ length: 16 }, () => gzipSync(Buffer.alloc(2 ** 26, 48))));
const invalidEvent = { user_id: '', skill_id: 1, is_correct: 'yes', time_spent_seconds: -1, event_id: '' };

const createBatch = (i: number) =>
  indices(1000).map((n) => ({
    ...{ user_id: `user-${n % 100}`, skill_id: skillName(n % 20), item_id: `item-${n}` },
    ...{ event_id: `b-${i}-${n}-${process.pid}`, is_correct: n % 3 > 0, time_spent_seconds: 30 },
  }));

/** The longest ids, padded to the largest body. */
function createWideBatch(): string {
  const longId = (): string => randomBytes(64).toString('hex');
  const events = createBatch(0).map((one) => ({ ...one, item_id: longId(), event_id: longId() }));
  const text = JSON.stringify({ events, pad: '' });
  return text.replace('"pad":""', `"pad":"${'x'.repeat(maxBodyBytes - text.length)}"`);
}

const invalidEvents = { events: Array(1000).fill(invalidEvent) };

const writes: readonly LargeRequest[] = [
  post('a batch of 1,000 invalid events', '/api/v1/track-answers', invalidEvents, 400),
  post('a gzip body of 1 GB', '/api/v1/track-answers', gigabyte, 413, gzip),
  remove('a retraction of one of 20,000 answers', 200, (i) => `${busy}/attempts/e-${busyAnswers - 1 - i}`),
  remove('an erasure of a learner with 2,000 answers', 202, (i) => `learner-${i % 25}`),
  batch('a batch of 1,000 events', (i) => ({ body: JSON.stringify({ events: createBatch(i) }) })),
  batch('a batch of 1 MiB with the longest ids', () => ({ body: createWideBatch() })),
  batch('a gzip batch of 1 MiB', () => ({ body: gzipSync(createWideBatch()), headers: gzip })),
  batch('a batch of 1,000 events of one learner', (i) => ({
    body: JSON.stringify({ events: createBatch(i).map((one) => ({ ...one, user_id: `one-${i % 20}` })) }),
  })),
];

/** Writes come last: the drain of their rows would slow down the other measurements. */
export const largeRequests: readonly LargeRequest[] = [...reads, ...invalid, ...writes];

/** One read of uWebSockets.js, which serves all requests in it before it reads the next connection. */
const readBytes = 512 * 1024;
const rawGet = (path: string, key: string | null = null): Buffer => rawRequest(key, { method: 'GET', path });
const chunkedHead = rawRequest(keys.attacker, {
  path: '/api/v1/track-answers',
  headers: { 'Content-Type': 'application/json', 'Transfer-Encoding': 'chunked' },
});

const chunks = Buffer.alloc(readBytes, '1\r\nx\r\n');

export interface Flood {
  readonly name: string;
  readonly bytes: Buffer;
  readonly sockets: number;
  /** Interval between writes to a socket that has sent its previous bytes. */
  readonly everyMs: number;
}

/** Many small requests, or many small chunks, in one write. */
export const floods: readonly Flood[] = [
  { name: 'pipelined GET /livez', bytes: Buffer.alloc(readBytes, rawGet('/livez')) },
  { name: 'pipelined requests of an unknown path', bytes: Buffer.alloc(readBytes, rawGet('/unknown')) },
  { name: 'pipelined requests without a key', bytes: Buffer.alloc(readBytes, rawGet('/api/v1/skills')) },
  { name: 'a body in chunks of one byte', bytes: Buffer.concat([chunkedHead, chunks]) },
].map((flood) => ({ ...flood, sockets: 20, everyMs: 10_000 }));

/**
 * Responses that clients request again and again without reading them. The kernel buffers two megabytes per connection; the
 * service must limit the rest. A pipelined second request is accepted only if the first was answered synchronously.
 */
export const unreadResponses: readonly Flood[] = [
  { name: 'metrics', sockets: 400, bytes: rawGet('/metrics'), everyMs: 900 },
  { name: 'the OpenAPI document', sockets: 30, bytes: rawGet('/openapi.json'), everyMs: 60 },
  {
    ...{ name: 'pipelined 404 responses', sockets: 400, everyMs: 200 },
    bytes: Buffer.concat(Array(200).fill(rawGet('/unknown'))),
  },
  {
    ...{ name: 'mastery of 2,000 skills', sockets: 20, everyMs: 1000 },
    bytes: rawGet(`/api/v1/mastery/${full}`, keys.attacker),
  },
  {
    ...{ name: 'an export of 20,000 answers', sockets: 400, everyMs: 1000 },
    bytes: rawGet(`/api/v1/learners/${busy}/export`, keys.attacker),
  },
  {
    ...{ name: 'a batch of 1,000 invalid events', sockets: 30, everyMs: 500 },
    bytes: rawRequest(keys.attacker, {
      ...{ path: '/api/v1/track-answers', body: JSON.stringify({ events: Array(1000).fill({}) }) },
    }),
  },
];
