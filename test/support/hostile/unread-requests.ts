/** What clients that never read ask for: for each kind of answer those that cost the client least. */
import { rawRequest } from '../http.js';
import { keys } from './stand.js';

export interface UnreadCase {
  readonly name: string;
  readonly bytes: Buffer;
  readonly everyMs: number;
}

/** Who is asked about. */
export interface Targets {
  /** With the most skills. */
  readonly big: string;
  /** With many answers. */
  readonly busy: string;
  readonly pupils: readonly string[];
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
const wrong = Array.from({ length: 1000 }, () => ({}));

/**
 * The second request of a write is only taken up where the first was answered without waiting for anything; other
 * connections are closed by uWebSockets.js. So what waits is asked again and again.
 */
export const unreadCases = ({ big, busy, pupils }: Targets): UnreadCase[] => [
  { name: 'metrics', bytes: get('/metrics'), everyMs: 900 },
  { name: 'metrics, 50 in a write', bytes: times(50, get('/metrics')), everyMs: 2000 },
  { name: 'OpenAPI', bytes: get('/openapi.json'), everyMs: 900 },
  { name: '404, 200 in a write', bytes: times(200, get('/nowhere')), everyMs: 200 },
  { name: '401 without a key, 200 in a write', bytes: times(200, get('/api/v1/skills')), everyMs: 200 },
  {
    name: '405, 200 in a write',
    bytes: times(200, rawRequest(null, { method: 'DELETE', path: '/livez' })),
    everyMs: 200,
  },
  { name: '401 of an unknown key', bytes: get('/api/v1/skills', 'nobody'), everyMs: 100 },
  { name: 'mastery of the most skills', bytes: get(`/api/v1/mastery/${big}`, keys.attacker), everyMs: 500 },
  {
    name: 'export of 20,000 answers',
    bytes: get(`/api/v1/learners/${busy}/export`, keys.wide),
    everyMs: 1000,
  },
  {
    name: 'a page of 1,000 answers',
    bytes: get(`/api/v1/learners/${busy}/attempts?limit=1000`, keys.wide),
    everyMs: 500,
  },
  { name: 'a page of 1,000 skills', bytes: get('/api/v1/skills?limit=1000', keys.wide), everyMs: 500 },
  { name: 'batch of 1,000', bytes: post('/api/v1/track-answers', { events: answers }), everyMs: 2000 },
  {
    name: 'batch of 1,000, all refused',
    bytes: post('/api/v1/track-answers', { events: wrong }),
    everyMs: 500,
  },
  { name: 'class of 500', bytes: post('/api/v1/predictions', { user_ids: pupils }), everyMs: 2000 },
];
