import { setTimeout as sleep } from 'node:timers/promises';
import { figureOf } from '../goals.js';
import { hole, usualTraffic } from '../load/traffic.js';
import { ledgerOf, measurementOf, type Scenario, serviceContestant } from '../scenario.js';
import { type Seed, seedAnswers, seedOf } from '../seed.js';
import type { Service } from '../service.js';
import { spreadOf } from '../spread.js';
import { memoryOf } from '../targets.js';

const name = 'memory';
const skills = 50;
const answersPerSkill = 2;
const itemsPerLearner = 100;
const idsPerLearner = 100;
/** Until buffers of connections and of the append-only file are empty. */
const settleMs = 1000;

export const memory: Scenario = {
  name,
  about:
    'learners with 50 skills each and full state, then with items and with event ids, in batches of 1000',
  long: false,
  run: async (bench) => {
    const service = await bench.service();
    const learners = bench.settings.full ? 2000 : 300;
    const contestant = serviceContestant(service, name, { ...usualTraffic, learners });
    const bytesOf = async (perLearner: number, more: Seed = () => ({})): Promise<number> => {
      bench.progress(`${learners * perLearner} answers`);
      const seed = seedOf(learners, skills, (i) => ({ ...fullEvent(i), ...more(i) }));
      const before = await usedBytes(service);
      await seedAnswers(contestant, learners * perLearner, seed);
      return (await usedBytes(service)) - before;
    };
    const pairs = await bytesOf(skills * answersPerSkill);
    const items = await bytesOf(itemsPerLearner, (i) => ({ item_id: `item-${Math.floor(i / learners)}` }));
    const ids = await bytesOf(idsPerLearner, (i) => ({
      event_id: `event-${`${i}`.padStart(hole.length, '0')}`,
    }));
    const ledger = await ledgerOf(contestant);
    const more = { throughput: null, memory: memoryOf(service), ledger };
    return {
      results: [{ measurements: [measurementOf(service.name, [], more)] }],
      figures: [
        figureOf('pair', spreadOf([pairs / (learners * skills)])),
        figureOf('item', spreadOf([items / (learners * itemsPerLearner)])),
        figureOf('id', spreadOf([ids / (learners * idsPerLearner)])),
      ],
    };
  },
};

const fullEvent = (i: number): object => ({
  question_difficulty: (i % 7) / 2 - 1.5,
  confidence_score: 1 + (i % 5),
});

async function usedBytes({ redis }: Service): Promise<number> {
  await sleep(settleMs);
  const used = /^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1];
  if (used === undefined) throw new Error('Redis does not tell its used_memory');
  return Number(used);
}
