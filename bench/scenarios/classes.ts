import { dayMs, formatDate } from '../../src/domain/base/common.js';
import { StartError } from '../../src/lifecycle.js';
import { indices } from '../../src/lists.js';
import { forEachConcurrently } from '../load/for-each.js';
import { learnerId, usualTraffic } from '../load/traffic.js';
import type { Bench } from '../measurement/bench.js';
import {
  buildMeasurement,
  checkTenantLedger,
  createServiceContestant,
  type Scenario,
} from '../measurement/scenario.js';
import { createAnswerGenerator, seedAnswers } from '../measurement/seed.js';
import { createPlainFigure } from '../results/goals.js';
import type { Figure } from '../results/results.js';
import { computeSpread } from '../results/spread.js';

const name = 'classes';
const learners = 500;
const skills = 40;
const answersPerLearner = 150;
const days = 56;
const maxMs = 300;
const [warmCalls, calls] = [5, 20];

/** Answers of eight weeks, on 400 items. */
const buildFurtherFields = (now: number) => (i: number) => {
  const round = Math.floor(i / learners);
  const daysAgo = days - Math.ceil((days * (round + 1)) / answersPerLearner);
  return {
    item_id: `item-${(i + round) % skills}-${round % 10}`,
    occurred_at: new Date(now - daysAgo * dayMs - 60_000).toISOString(),
  };
};

/** Each learner has a goal, which is the most expensive case. */
export const classes: Scenario = {
  name,
  about:
    'GET skills and summary of a class of 500 learners with 40 skills and 150 answers each, one call at a time',
  isLong: true,
  run: async (bench) => {
    const service = await bench.service();
    const contestant = createServiceContestant(service, name, { ...usualTraffic, learners });
    bench.progress('generating learners');
    const now = Date.now();
    const seed = createAnswerGenerator(learners, skills, buildFurtherFields(now));
    await seedAnswers(contestant, learners * answersPerLearner, seed);
    const userIds = indices(learners).map((i) => learnerId(i));
    const send = (method: string, path: string, body?: object) => request(service.port, method, path, body);
    await send('PUT', '/groups/all', { name: 'All', user_ids: userIds });
    const goal = { target_score: 1200, target_date: formatDate(now + 30 * dayMs) };
    await forEachConcurrently(userIds, 4, (userId) => send('PUT', `/goals/${userId}`, goal));
    const figures: Figure[] = [];
    for (const read of ['skills', 'summary'])
      figures.push(...(await measureCalls(bench, read, () => send('GET', `/groups/all/${read}`))));
    const ledger = await checkTenantLedger(contestant);
    const more = { throughput: null, latency: null, ledger };
    return { measurements: [buildMeasurement(service.name, [], more)], figures };
  },
};

async function request(port: number, method: string, path: string, body?: object): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${port}/api/v1${path}`, {
    method,
    headers: { 'X-API-Key': name, 'Content-Type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (response.status !== 200)
    throw new StartError(`${method} ${path}: ${response.status} ${text.slice(0, 500)}`);
}

async function measureCalls({ progress }: Bench, read: string, call: () => Promise<void>): Promise<Figure[]> {
  const times: number[] = [];
  for (let i = 0; i < warmCalls + calls; i++) {
    progress(`${read}, call ${i + 1}`);
    const since = performance.now();
    await call();
    if (i >= warmCalls) times.push(performance.now() - since);
  }
  const sorted = [...times].sort((a, b) => a - b);
  const p95 = sorted[Math.ceil(0.95 * calls) - 1] as number;
  const about = '500 learners with 40 skills';
  return [
    createPlainFigure(`GET ${read} of a class`, about, 'ms', computeSpread(times), { atMost: maxMs }),
    createPlainFigure(`GET ${read} of a class, p95`, about, 'ms', computeSpread([p95]), { atMost: maxMs }),
  ];
}
