import { setTimeout as sleep } from 'node:timers/promises';
import { usualTraffic } from '../load/traffic.js';
import {
  buildMeasurement,
  checkTenantLedger,
  createServiceContestant,
  type Scenario,
} from '../measurement/scenario.js';
import { type AnswerGenerator, createAnswerGenerator, seedAnswers } from '../measurement/seed.js';
import { createGoalFigure } from '../results/goals.js';
import { computeSpread } from '../results/spread.js';
import type { Service } from '../targets/service.js';
import { readMemory } from '../targets/targets.js';

const name = 'memory';
const skills = 50;
const answersPerSkill = 2;
const itemsPerLearner = 100;
const idsPerLearner = 100;
/** Until buffers of connections and of the append-only file are empty. */
const settleMs = 1000;

export const memory: Scenario = {
  name,
  about: 'Redis memory of learners with 50 skills and full state, then with items, then with event ids',
  isLong: false,
  run: async (bench) => {
    const service = await bench.service();
    const learners = bench.settings.full ? 2000 : 300;
    const contestant = createServiceContestant(service, name, { ...usualTraffic, learners });
    const bytesOf = async (perLearner: number, more: AnswerGenerator = () => ({})): Promise<number> => {
      bench.progress(`${learners * perLearner} answers`);
      const seed = createAnswerGenerator(learners, skills, (i) => ({ ...buildFullEvent(i), ...more(i) }));
      const before = await readUsedBytes(service);
      await seedAnswers(contestant, learners * perLearner, seed);
      return (await readUsedBytes(service)) - before;
    };
    const pairs = await bytesOf(skills * answersPerSkill);
    const items = await bytesOf(itemsPerLearner, (i) => ({ item_id: `item-${Math.floor(i / learners)}` }));
    const ids = await bytesOf(idsPerLearner, (i) => ({
      event_id: `event-${`${i}`.padStart(12, '0')}`,
    }));
    const ledger = await checkTenantLedger(contestant);
    const more = { throughput: null, latency: null, memory: readMemory(service), ledger };
    return {
      measurements: [buildMeasurement(service.name, [], more)],
      figures: [
        createGoalFigure('pair', computeSpread([pairs / (learners * skills)])),
        createGoalFigure('item', computeSpread([items / (learners * itemsPerLearner)])),
        createGoalFigure('id', computeSpread([ids / (learners * idsPerLearner)])),
      ],
    };
  },
};

const buildFullEvent = (i: number): object => ({
  question_difficulty: (i % 7) / 2 - 1.5,
  confidence_score: 1 + (i % 5),
});

async function readUsedBytes({ redis }: Service): Promise<number> {
  await sleep(settleMs);
  const used = /^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1];
  if (used === undefined) throw new Error('INFO memory of Redis has no used_memory');
  return Number(used);
}
