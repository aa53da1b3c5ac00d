/** The same answers one by one, and in batches. */
import { inTurns } from '../bench.js';
import { figureOf, scaledSpread } from '../goals.js';
import { newTally } from '../ledger.js';
import { usualTraffic } from '../load/traffic.js';
import type { Contestant } from '../measure.js';
import { acceptingParts } from '../parts.js';
import {
  cpuSums,
  ledgerOf,
  measurementOf,
  peerContestant,
  type Scenario,
  serviceContestant,
} from '../scenario.js';
import { ratioSpread } from '../spread.js';

const name = 'batches';
const about = 'answers one by one, and in requests of 100 and of 1000';
const sizes = [1, 100, 1000];
/** As the goal has it. */
const counted = ['front end', 'workers', 'redis'];
/** The answers of more requests than these may be more than a lane holds, and be refused. */
const batchConnections = 4;

export const batches: Scenario = {
  name,
  about,
  long: false,
  run: async (bench) => {
    const [service, echo] = await Promise.all([bench.service(), bench.peer('echo')]);
    const tally = newTally();
    const contestants = sizes.map((batch): Contestant => {
      const contestant = serviceContestant(service, name, { ...usualTraffic, batch }, tally);
      return { ...contestant, name: `${batch}`, ...(batch > 1 && { connections: batchConnections }) };
    });
    const turns = { scenario: name, pace: bench.settings.side };
    const samples = await inTurns(bench, [peerContestant(echo, name, usualTraffic), ...contestants], turns);
    const ledger = await ledgerOf(service, name, usualTraffic, tally);
    const cpu = (target: string, parts: readonly string[]): number[] =>
      cpuSums(samples.get(target) ?? [], parts);
    return {
      results: sizes.map((value) => ({
        name,
        about,
        axis: { label: 'answers a request', value },
        unit: 'answer' as const,
        measurements: [measurementOf(service.name, samples.get(`${value}`) ?? [], { ledger })],
      })),
      figures: [
        figureOf('batches', scaledSpread(cpu('1000', counted), cpu(echo.name, acceptingParts))),
        {
          name: 'CPU of an answer in batches of 1000, to single ones',
          about: 'server, workers, runtime and Redis',
          unit: 'times',
          value: ratioSpread(cpu('1000', acceptingParts), cpu('1', acceptingParts)),
          goal: null,
        },
      ],
    };
  },
};
