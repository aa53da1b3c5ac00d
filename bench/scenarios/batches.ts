/** The same answers one by one, and in batches. */
import { inTurns } from '../bench.js';
import { newTally } from '../ledger.js';
import { usualTraffic } from '../load/traffic.js';
import type { Contestant } from '../measure.js';
import { acceptingParts } from '../parts.js';
import { cpuSums, ledgerOf, measurementOf, type Scenario, serviceContestant } from '../scenario.js';
import { ratioSpread } from '../spread.js';

const name = 'batches';
const about = 'answers one by one, and in requests of 100 and of 1000';
const sizes = [1, 100, 1000];
/** The answers of more requests than these may be more than a lane holds, and be refused. */
const batchConnections = 4;

export const batches: Scenario = {
  name,
  about,
  long: false,
  run: async (bench) => {
    const service = await bench.service();
    const tally = newTally();
    const contestants = sizes.map((batch): Contestant => {
      const contestant = serviceContestant(service, name, { ...usualTraffic, batch }, tally);
      return { ...contestant, name: `${batch}`, ...(batch > 1 && { connections: batchConnections }) };
    });
    const samples = await inTurns(bench, contestants, { scenario: name, pace: bench.settings.side });
    const ledger = await ledgerOf(service, name, usualTraffic, tally);
    const cpu = (batch: number): number[] => cpuSums(samples.get(`${batch}`) ?? [], acceptingParts);
    return {
      results: sizes.map((value) => ({
        name,
        about,
        axis: { label: 'answers a request', value },
        unit: 'answer' as const,
        measurements: [measurementOf(service.name, samples.get(`${value}`) ?? [], { ledger })],
      })),
      figures: [
        {
          name: 'CPU per answer in batches of 1000, to single ones',
          about: 'server, workers and Redis',
          unit: 'times',
          value: ratioSpread(cpu(1000), cpu(1)),
          goal: { atMost: 0.25 },
        },
      ],
    };
  },
};
