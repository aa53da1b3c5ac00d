/** What Redis needs to remember a learner's skills and items. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Bench } from '../bench.js';
import { newTally, type Tally } from '../ledger.js';
import { learnerId, usualTraffic } from '../load/traffic.js';
import type { Figure } from '../results.js';
import { ledgerOf, type Scenario } from '../scenario.js';
import { type Seed, seedAnswers } from '../seed.js';
import type { Service } from '../service.js';
import { spreadOf } from '../spread.js';
import { memoryOf } from '../targets.js';

const name = 'memory';
const about = 'learners with 50 skills each and full state, then with items, through batches of 1000';
const skills = 50;
const answersPerSkill = 2;
const itemsPerLearner = 100;
/** Until buffers of the connections and of the append-only file are empty again. */
const settleMs = 1000;

export const memory: Scenario = {
  name,
  about,
  long: false,
  run: async (bench) => {
    const service = await bench.service();
    const learners = bench.settings.full ? 2000 : 300;
    const tally = newTally();
    const pairs = await bytesOf(bench, service, tally, learners * skills * answersPerSkill, (i) => ({
      ...answer(i, learners),
      skill_id: `skill-${Math.floor(i / learners) % skills}`,
    }));
    const items = await bytesOf(bench, service, tally, learners * itemsPerLearner, (i) => ({
      ...answer(i, learners),
      skill_id: `skill-${Math.floor(i / learners) % skills}`,
      item_id: `item-${Math.floor(i / learners)}`,
    }));
    const ledger = await ledgerOf(service, name, { ...usualTraffic, learners }, tally);
    const measurement = {
      target: service.name,
      throughput: null,
      cpu: {},
      latencies: [],
      memory: memoryOf(service),
      pipeline: null,
      ledger,
    };
    return {
      results: [{ name, about, axis: null, unit: 'answer', measurements: [measurement] }],
      figures: figuresOf(pairs / (learners * skills), items / (learners * itemsPerLearner)),
    };
  },
};

/** Without event ids, which are kept for a day only. */
const answer = (i: number, learners: number): object => ({
  user_id: learnerId(i % learners),
  is_correct: (i * 7919) % 10 < 6,
  time_spent_seconds: 5 + (i % 90),
  question_difficulty: (i % 7) / 2 - 1.5,
  confidence_score: 1 + (i % 5),
});

/** How much more memory Redis uses after some answers, once they are in ClickHouse. */
async function bytesOf(
  bench: Bench,
  service: Service,
  tally: Tally,
  answers: number,
  seed: Seed,
): Promise<number> {
  bench.progress(`${name}: ${answers} answers`);
  const before = await usedBytes(service);
  await seedAnswers(service, name, tally, answers, seed);
  return (await usedBytes(service)) - before;
}

async function usedBytes({ redis }: Service): Promise<number> {
  await sleep(settleMs);
  const used = /^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1];
  if (used === undefined) throw new Error('Redis does not tell its used_memory');
  return Number(used);
}

const figuresOf = (perPair: number, perItem: number): Figure[] => [
  {
    name: 'Redis memory per learner and skill',
    about: '50 skills a learner, full state, the share of the learner’s own record included',
    unit: 'bytes',
    value: spreadOf([perPair]),
    goal: { atMost: 200 },
  },
  {
    name: 'Redis memory per remembered item of a learner',
    about: `${itemsPerLearner} items a learner`,
    unit: 'bytes',
    value: spreadOf([perItem]),
    goal: { atMost: 32 },
  },
];
