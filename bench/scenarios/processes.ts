/** Several API processes behind one port. */
import { inTurns, withClosers } from '../bench.js';
import { usualTraffic } from '../load/traffic.js';
import type { Contestant } from '../measure.js';
import type { Ledger } from '../results.js';
import { ledgerOf, measurementOf, type Scenario, serviceContestant } from '../scenario.js';
import type { Service } from '../service.js';

const name = 'processes';
const about = 'single answers with 1, 2 and 4 API processes (API_PROCESSES), closed loop, in turns';
const counts = [1, 2, 4];

export const processes: Scenario = {
  name,
  about,
  long: true,
  run: (bench) =>
    withClosers(bench, async (closers) => {
      const contestants: Contestant[] = [];
      for (const count of counts) {
        const service = await bench.ownService(`processes-${count}`, count, closers);
        contestants.push({ ...serviceContestant(service, name, usualTraffic), name: `${count}` });
      }
      const samples = await inTurns(bench, contestants, { scenario: name, pace: bench.settings.side });
      const ledgers: Ledger[] = [];
      for (const { drains, tally } of contestants)
        ledgers.push(await ledgerOf(drains as Service, name, usualTraffic, tally));
      return {
        results: counts.map((value, i) => ({
          name,
          about,
          axis: { label: 'API processes', value },
          unit: 'answer' as const,
          measurements: [
            measurementOf('skilltrace', samples.get(`${value}`) ?? [], { ledger: ledgers[i] ?? null }),
          ],
        })),
        figures: [],
      };
    }),
};
