/** Forecasts of learners with 40 skills, one by one. */
import { inTurns } from '../bench.js';
import { figureOf } from '../goals.js';
import { newTally } from '../ledger.js';
import { learnerId, type Traffic, usualTraffic } from '../load/traffic.js';
import {
  ledgerOf,
  measurementOf,
  peerContestant,
  perSeconds,
  type Scenario,
  serviceContestant,
} from '../scenario.js';
import { seedAnswers } from '../seed.js';
import { ratioSpread } from '../spread.js';

const name = 'predictions';
const about = 'GET predictions of 300 learners with 40 skills each, closed loop';
const traffic: Traffic = { ...usualTraffic, kind: 'predictions', learners: 300, skills: 40 };
const answersPerSkill = 2;

export const predictions: Scenario = {
  name,
  about,
  long: false,
  run: async (bench) => {
    const [service, echo] = await Promise.all([bench.service(), bench.peer('echo')]);
    const tally = newTally();
    bench.progress(`${name}: learners are made`);
    await seedAnswers(service, name, tally, traffic.learners * traffic.skills * answersPerSkill, (i) => ({
      user_id: learnerId(i % traffic.learners),
      skill_id: `skill-${Math.floor(i / traffic.learners) % traffic.skills}`,
      is_correct: (i * 7919) % 10 < 6,
      time_spent_seconds: 5 + (i % 90),
    }));
    const contestants = [
      peerContestant(echo, name, traffic),
      { ...serviceContestant(service, name, traffic, tally), drains: null, settled: null },
    ];
    const samples = await inTurns(bench, contestants, { scenario: name, pace: bench.settings.side });
    const ledger = await ledgerOf(service, name, traffic, tally);
    const perSecond = (target: string): number[] => perSeconds(samples.get(target) ?? []);
    const measurements = [...samples].map(([target, list]) =>
      measurementOf(target, list, target === service.name ? { ledger } : {}),
    );
    return {
      results: [{ name, about, axis: null, unit: 'request', measurements }],
      figures: [figureOf('predictions', ratioSpread(perSecond(service.name), perSecond(echo.name)))],
    };
  },
};
