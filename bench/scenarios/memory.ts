/** What Redis needs to remember a learner's skills and items. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Bench } from '../bench.js';
import { figureOf } from '../goals.js';
import { newTally, type Tally } from '../ledger.js';
import { hole, learnerId, usualTraffic } from '../load/traffic.js';
import { ledgerOf, type Scenario } from '../scenario.js';
import { type Seed, seedAnswers } from '../seed.js';
import type { Service } from '../service.js';
import { spreadOf } from '../spread.js';
import { memoryOf } from '../targets.js';

const name = 'memory';
const about =
  'learners with 50 skills each and full state, then with items and with event ids, in batches of 1000';
const skills = 50;
const answersPerSkill = 2;
const itemsPerLearner = 100;
const idsPerLearner = 100;
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
    const ids = await bytesOf(bench, service, tally, learners * idsPerLearner, (i) => ({
      ...answer(i, learners),
      skill_id: `skill-${Math.floor(i / learners) % skills}`,
      event_id: `event-${`${i}`.padStart(hole.length, '0')}`,
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
      figures: [
        figureOf('pair', spreadOf([pairs / (learners * skills)])),
        figureOf('item', spreadOf([items / (learners * itemsPerLearner)])),
        figureOf('id', spreadOf([ids / (learners * idsPerLearner)])),
      ],
    };
  },
};

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
