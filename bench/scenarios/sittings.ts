/** Learners that answer about 20 questions at a stretch, as real ones do, beside wholly random ones. */
import { inTurns } from '../bench.js';
import { newTally } from '../ledger.js';
import { usualTraffic } from '../load/traffic.js';
import type { Contestant } from '../measure.js';
import { acceptingParts } from '../parts.js';
import { cpuSums, ledgerOf, measurementOf, type Scenario, serviceContestant } from '../scenario.js';
import { ratioSpread } from '../spread.js';

const name = 'sittings';
const about = 'learners in sittings of about 20 answers, 200 at a time, and learners at random';

export const sittings: Scenario = {
  name,
  about,
  long: true,
  run: async (bench) => {
    const service = await bench.service();
    const tally = newTally();
    const contestants = (['random', 'sittings'] as const).map(
      (order): Contestant => ({
        ...serviceContestant(service, name, { ...usualTraffic, order }, tally),
        name: `${service.name}, ${order}`,
      }),
    );
    const samples = await inTurns(bench, contestants, { scenario: name, pace: bench.settings.side });
    const ledger = await ledgerOf(service, name, usualTraffic, tally);
    const measurements = [...samples].map(([target, list]) => measurementOf(target, list, { ledger }));
    const [random = [], inSittings = []] = [...samples.values()].map((list) => cpuSums(list, acceptingParts));
    return {
      results: [{ name, about, axis: null, unit: 'answer', measurements }],
      figures: [
        {
          name: 'CPU per answer in sittings, to random learners',
          about: 'server, workers and Redis',
          unit: 'times',
          value: ratioSpread(inSittings, random),
          goal: null,
        },
      ],
    };
  },
};
