/** The largest that may legally be asked of each endpoint, by what is shown of it. */
import type { Asking } from './ask.js';
import { batches, bomb, oddBodies } from './largest-bodies.js';
import { longId, skillName } from './seed.js';
import type { Seeded } from './seeding.js';
import { keys } from './stand.js';

export interface LargestCase {
  readonly name: string;
  /** The i-th request; what changes something changes another thing each time. */
  readonly asking: (i: number) => Asking;
}

const key = keys.wide;
const get = (name: string, path: string, by: string | null = key): LargestCase => ({
  name,
  asking: () => ({ path, key: by }),
});
const post = (name: string, path: string, body: string | Buffer): LargestCase => ({
  name,
  asking: () => ({ method: 'POST', path, key, body }),
});

const reads = ({ full, busy, big }: Seeded): LargestCase[] => [
  get('mastery of 2,000 skills', `/api/v1/mastery/${full}`),
  get('the same, limit=1000', `/api/v1/mastery/${full}?limit=1000`),
  get('mastery of the most skills taken', `/api/v1/mastery/${big}`, keys.attacker),
  get('one skill, explain, steps=50', `/api/v1/mastery/${busy}/${skillName(0)}?explain=true&steps=50`),
  get('one skill of 2,000', `/api/v1/mastery/${full}/${skillName(0)}`),
  get('predictions, days=365, 2,000 skills', `/api/v1/predictions/${full}?days=365&confidence_level=0.99`),
  get('predictions, days=365, 20,000 answers', `/api/v1/predictions/${busy}?days=365`),
  get('velocity, days=365', `/api/v1/velocity/${busy}?days=365`),
  get('velocity of 2,000 skills', `/api/v1/velocity/${full}?days=365`),
  get('attempts, limit=1000', `/api/v1/learners/${busy}/attempts?limit=1000`),
  get('export of 20,000 answers', `/api/v1/learners/${busy}/export`),
  get('export of 2,000 skills', `/api/v1/learners/${full}/export`),
  get('skills, limit=1000', '/api/v1/skills?limit=1000'),
  get('skills, limit=1', '/api/v1/skills?limit=1'),
  get('one skill of 50,000', `/api/v1/skills/${skillName(0)}`),
  get('metrics', '/metrics', null),
  get('health', '/api/v1/health', null),
  get('readyz', '/readyz', null),
];

const plan = {
  answers_per_day: 1000,
  skills: Array.from({ length: 100 }, (_, i) => skillName(i)),
  days: 365,
  confidence_level: 0.99,
  target_score: 1600,
};
const nextItems = Array.from({ length: 1000 }, (_, i) => ({ skill_id: skillName(i), item_id: `item-${i}` }));
const newPlan = { ...plan, skills: plan.skills.map((_, i) => `never-${i}`) };

const forecasts = ({ full, pupils }: Seeded): LargestCase[] => [
  post(
    'class of 500 with 2,000 skills each, days=365',
    '/api/v1/predictions',
    JSON.stringify({ user_ids: pupils, days: 365 }),
  ),
  post(
    'class of 500 who are not there',
    '/api/v1/predictions',
    JSON.stringify({ user_ids: Array.from({ length: 500 }, longId) }),
  ),
  post('what-if, 100 skills, 365 days', `/api/v1/predictions/${full}/what-if`, JSON.stringify(plan)),
  post(
    'what-if, 8,000 zeros for skills',
    `/api/v1/predictions/${full}/what-if`,
    JSON.stringify({ ...plan, skills: Array.from({ length: 8000 }, () => 0) }),
  ),
  post(
    'what-if, 2,200 skills',
    `/api/v1/predictions/${full}/what-if`,
    JSON.stringify({ ...plan, skills: Array.from({ length: 2200 }, (_, i) => `${i}`) }),
  ),
  post(
    'next items, 1,000 of 1,000 skills',
    `/api/v1/next-items/${full}`,
    JSON.stringify({ items: nextItems, limit: nextItems.length }),
  ),
  post('what-if, 100 new skills', `/api/v1/predictions/${full}/what-if`, JSON.stringify(newPlan)),
];

const writes = ({ busy, answersOfBusy }: Seeded): LargestCase[] => [
  {
    name: 'PUT of a skill, then GET',
    asking: (i) => {
      const path = `/api/v1/skills/${skillName(i % 20_000)}`;
      const body = JSON.stringify({ name: `Name ${i}`, section: 'math' });
      return i % 2 === 0 ? { method: 'PUT', path, key, body } : { path, key };
    },
  },
  {
    name: 'take-back of one of 20,000 answers',
    asking: (i) => ({
      method: 'DELETE',
      path: `/api/v1/learners/${busy}/attempts/e-${answersOfBusy - 1 - i}`,
      key,
    }),
  },
  {
    name: 'erasure of a learner with 2,000 answers',
    asking: (i) => ({ method: 'DELETE', path: `/api/v1/learners/names-${i % 25}`, key }),
  },
  {
    name: 'erasure of nobody',
    asking: (i) => ({ method: 'DELETE', path: `/api/v1/learners/nobody-${i}`, key }),
  },
  {
    name: 'one answer in 16 KiB',
    asking: (i) => ({
      method: 'POST',
      path: '/api/v1/track-answer',
      key,
      body: JSON.stringify({
        user_id: 'a',
        skill_id: skillName(0),
        is_correct: i % 3 > 0,
        pad: 'x'.repeat(16_000),
      }),
    }),
  },
];

const paths: readonly LargestCase[] = [
  get('path of the longest id', `/api/v1/mastery/${encodeURIComponent('\u{10ffff}'.repeat(128))}`),
  get('query of 4 kB', `/api/v1/skills?limit=1&${'a=%41&'.repeat(650)}`),
  get('cursor of 4 kB', `/api/v1/skills?cursor=${'A'.repeat(3900)}`),
];

/** What destroys comes late, and batches last: their answers are drained for a while. */
export const largestCases = (targets: Seeded): LargestCase[] => [
  ...reads(targets),
  ...forecasts(targets),
  ...paths,
  ...oddBodies,
  bomb,
  ...writes(targets),
  ...batches,
];
