import { inTurns, ownService } from '../bench.js';
import { allowedCores, canKeepToCores, onCores } from '../cores.js';
import { figureOf } from '../goals.js';
import { usualTraffic } from '../load/traffic.js';
import type { ScenarioResult } from '../results.js';
import {
  ledgerOf,
  measurementOf,
  type Scenario,
  type ScenarioFinding,
  type ServiceContestant,
  serviceContestant,
} from '../scenario.js';
import { ratioSpread } from '../spread.js';

const name = 'cores';

/** For the servers. The load generator uses all cores. */
interface Form {
  readonly axis: NonNullable<ScenarioResult['axis']>;
  readonly cores: number | null;
  readonly apiProcesses: number;
  readonly lanes: number | null;
}

const all = allowedCores();
const some = canKeepToCores() ? [1, 2, 4].filter((count) => count < all.length) : [];
const onAll: Form = {
  axis: { label: 'cores', value: all.length },
  cores: null,
  apiProcesses: 1,
  lanes: null,
};
const oneLane: Form = { ...onAll, axis: { label: 'lanes, on all cores', value: 1 }, lanes: 1 };
const forms: readonly Form[] = [
  oneLane,
  ...some.map((cores) => ({ ...onAll, axis: { label: 'cores', value: cores }, cores })),
  onAll,
  ...[2, 4]
    .filter((count) => count <= all.length)
    .map((count) => ({ ...onAll, axis: { label: 'API processes', value: count }, apiProcesses: count })),
];

export const cores: Scenario = {
  name,
  about:
    'single answers, closed loop, in turns: one process on some of the cores and on all, with one lane, and several processes',
  long: true,
  run: async (bench) => {
    const contestants: ServiceContestant[] = [];
    for (const { axis, cores: count, ...form } of forms) {
      const start = () => ownService(bench, `cores-${contestants.length}`, form);
      const service = await onCores(count === null ? null : all.slice(0, count).join(), start);
      contestants.push({ ...serviceContestant(service, name, usualTraffic), name: keyOf(axis), axis });
    }
    const rounds = await inTurns(bench, contestants, bench.settings.side);
    const results: ScenarioFinding[] = [];
    for (const contestant of contestants) {
      const ledger = await ledgerOf(contestant);
      const measurements = [measurementOf('skilltrace', rounds.of(contestant.name), { ledger })];
      results.push({ axis: contestant.axis ?? null, measurements });
    }
    const ratio = ratioSpread(rounds.cpu(keyOf(onAll.axis)), rounds.cpu(keyOf(oneLane.axis)));
    return { results, figures: [figureOf('lanes', ratio)] };
  },
};

const keyOf = ({ label, value }: Form['axis']): string => `${label}: ${value}`;
