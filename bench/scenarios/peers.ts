import { usualTraffic } from '../load/traffic.js';
import { measureInTurns } from '../measurement/bench.js';
import type { Contestant } from '../measurement/measure.js';
import { allParts, type Rounds } from '../measurement/rounds.js';
import {
  buildMeasurement,
  checkTenantLedger,
  createPeerContestant,
  createServiceContestant,
  type Scenario,
  withScheduledDrain,
} from '../measurement/scenario.js';
import { createGoalFigure } from '../results/goals.js';
import { type Figure, peersScenario } from '../results/results.js';
import { computeRatioSpread, computeSpread } from '../results/spread.js';
import type { PeerName } from '../targets/peers.js';
import { findPostgres } from '../targets/postgres.js';

const usualRate = 1000;
/** Null: closed loop. */
const rates = [null, 200, usualRate] as const;
const redisPeers: readonly PeerName[] = ['echo', 'fastify', 'fastify-outbox'];
const postgresPeers: readonly PeerName[] = ['fastify-postgres', 'fastify-postgres-function'];
/** At saturation only, without --full. */
const syncPeers: readonly PeerName[] = ['fastify-postgres-sync', 'fastify-postgres-function-sync'];

export const peers: Scenario = {
  name: peersScenario,
  about: `single answers of 10,000 learners on 50 skills, in a closed loop and at ${rates.slice(1).join(' and ')} per second`,
  isLong: false,
  run: async (bench) => {
    const service = await bench.service();
    const ours = withScheduledDrain(createServiceContestant(service, peersScenario, usualTraffic));
    const { full, main } = bench.settings;
    const start = async (names: readonly PeerName[]): Promise<Contestant[]> => {
      const started = await Promise.all(names.map((name) => bench.peer(name)));
      return started.map((peer) => createPeerContestant(peer, peersScenario, usualTraffic));
    };
    const hasPostgres = findPostgres() !== null;
    const always = [...(await start([...redisPeers, ...(hasPostgres ? postgresPeers : [])])), ours];
    const sync = await start(hasPostgres ? syncPeers : []);
    const contestants = rates.flatMap((rate) =>
      (rate === null || full ? [...always, ...sync] : always).map((one) => atRate(one, rate)),
    );
    const rounds = await measureInTurns(bench, contestants, main);
    const ledger = await checkTenantLedger(ours);
    const measurements = contestants.map(({ name, target, rate }) => {
      const once = rate === undefined ? { ledger: target === service ? ledger : null } : { memory: {} };
      return buildMeasurement(target.name, rounds.getSamples(name), once);
    });
    return { measurements, figures: listFigures(rounds, hasPostgres) };
  },
};

const atRate = (one: Contestant, rate: number | null): Contestant =>
  rate === null ? one : { ...one, name: nameAt(one.name, rate), rate };

const nameAt = (name: string, rate: number): string => `${name} at ${rate}/s`;

function listFigures(rounds: Rounds, hasPostgres: boolean): Figure[] {
  const whole = (name: string): number[] => rounds.cpu(name, allParts);
  const ours = nameAt('skilltrace', usualRate);
  const toService = (peer: PeerName) => computeRatioSpread(whole(peer), whole('skilltrace'));
  return [
    ...(hasPostgres
      ? [
          createGoalFigure('postgres', toService('fastify-postgres')),
          createGoalFigure('postgresFunction', toService('fastify-postgres-function')),
        ]
      : []),
    createGoalFigure('steady', computeSpread(whole(ours))),
    createGoalFigure('lag', computeSpread(rounds.lag(ours))),
  ];
}
