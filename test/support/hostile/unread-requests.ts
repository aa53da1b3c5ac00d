/** What clients that never read ask for: for each kind of answer those that cost the client least. */
import { rawRequest } from '../http/http.js';
import type { Seeded } from './seeding.js';
import { keys } from './stand.js';

export interface UnreadCase {
  readonly name: string;
  readonly sockets: number;
  readonly bytes: Buffer;
  readonly everyMs: number;
  readonly forMs?: number;
}

const get = (path: string, key: string | null = null): Buffer => rawRequest(key, { method: 'GET', path });
const post = (path: string, body: object): Buffer =>
  rawRequest(keys.wide, { path, body: JSON.stringify(body) });
const times = (count: number, ...requests: Buffer[]): Buffer =>
  Buffer.concat(Array.from({ length: count }, () => requests).flat());

const answers = Array.from({ length: 1000 }, (_, i) => ({
  user_id: `u${i % 100}`,
  skill_id: `s${i % 20}`,
  is_correct: i % 3 > 0,
}));
const wrongMethod = rawRequest(null, { method: 'DELETE', path: '/livez' });
const strangers = Array.from({ length: 500 }, (_, i) => `stranger-${i}`);
const wrong = Array.from({ length: 1000 }, () => ({}));

/** As many as one host opens without trouble. */
const many = 400;

/**
 * The second request of a write is only taken up where the first was answered without waiting for anything; other
 * connections are closed by uWebSockets.js. So what waits is asked again and again, by few enough that the answer before
 * is made: the kernel takes two megabytes for each connection, only what is beyond them is the service's.
 */
export const unreadCases = ({ big, busy, full }: Seeded): UnreadCase[] => [
  { name: 'metrics', sockets: many, bytes: get('/metrics'), everyMs: 900 },
  { name: 'metrics', sockets: 80, bytes: get('/metrics'), everyMs: 200, forMs: 30_000 },
  { name: 'metrics, 50 in a write', sockets: many, bytes: times(50, get('/metrics')), everyMs: 2000 },
  { name: 'OpenAPI', sockets: 30, bytes: get('/openapi.json'), everyMs: 60 },
  { name: '404, 200 in a write', sockets: many, bytes: times(200, get('/nowhere')), everyMs: 200 },
  {
    name: '401 without a key, 200 in a write',
    sockets: many,
    bytes: times(200, get('/api/v1/skills')),
    everyMs: 200,
  },
  { name: '405, 200 in a write', sockets: many, bytes: times(200, wrongMethod), everyMs: 200 },
  { name: '401 of an unknown key', sockets: many, bytes: get('/api/v1/skills', 'nobody'), everyMs: 100 },
  {
    name: 'mastery of the most skills',
    sockets: 20,
    bytes: get(`/api/v1/mastery/${big}`, keys.attacker),
    everyMs: 3000,
  },
  {
    name: 'mastery of 2,000 skills',
    sockets: 20,
    bytes: get(`/api/v1/mastery/${full}`, keys.wide),
    everyMs: 1000,
  },
  {
    name: 'export of 20,000 answers',
    sockets: many,
    bytes: get(`/api/v1/learners/${busy}/export`, keys.wide),
    everyMs: 1000,
  },
  {
    name: 'a page of 1,000 answers',
    sockets: 20,
    bytes: get(`/api/v1/learners/${busy}/attempts?limit=1000`, keys.wide),
    everyMs: 1500,
  },
  {
    name: 'a page of 1,000 skills',
    sockets: 10,
    bytes: get('/api/v1/skills?limit=1000', keys.wide),
    everyMs: 1500,
  },
  {
    name: 'batch of 1,000',
    sockets: 20,
    bytes: post('/api/v1/track-answers', { events: answers }),
    everyMs: 3000,
  },
  {
    name: 'batch of 1,000, all refused',
    sockets: 30,
    bytes: post('/api/v1/track-answers', { events: wrong }),
    everyMs: 500,
  },
  {
    name: 'class of 500 who are not there',
    sockets: 30,
    bytes: post('/api/v1/predictions', { user_ids: strangers }),
    everyMs: 700,
  },
];
