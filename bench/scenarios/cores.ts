import { usualTraffic } from '../load/traffic.js';
import { measureInTurns, startDedicatedService } from '../measurement/bench.js';
import {
  buildMeasurement,
  checkTenantLedger,
  createServiceContestant,
  type Scenario,
  type ScenarioFinding,
  type ServiceContestant,
} from '../measurement/scenario.js';
import { createGoalFigure } from '../results/goals.js';
import type { ScenarioResult } from '../results/results.js';
import { computeRatioSpread } from '../results/spread.js';
import { canPinCores, listAllowedCores, withCores } from '../targets/cores.js';

const name = 'cores';

/** For the servers. The load generator uses all cores. */
interface CoresVariant {
  readonly axis: NonNullable<ScenarioResult['axis']>;
  readonly cores: number | null;
  readonly apiProcesses: number;
  readonly lanes: number | null;
}

const coreNumbers = listAllowedCores();
const smallerCounts = canPinCores() ? [1, 2, 4].filter((count) => count < coreNumbers.length) : [];
const allCores: CoresVariant = {
  axis: { label: 'cores', value: coreNumbers.length },
  cores: null,
  apiProcesses: 1,
  lanes: null,
};
const oneLane: CoresVariant = { ...allCores, axis: { label: 'lanes, on all cores', value: 1 }, lanes: 1 };
const variants: readonly CoresVariant[] = [
  oneLane,
  ...smallerCounts.map((cores) => ({ ...allCores, axis: { label: 'cores', value: cores }, cores })),
  allCores,
  ...[2, 4]
    .filter((count) => count <= coreNumbers.length)
    .map((count) => ({ ...allCores, axis: { label: 'API processes', value: count }, apiProcesses: count })),
];

export const cores: Scenario = {
  name,
  about: 'single answers, closed loop: one process on some and on all cores, one lane, and several processes',
  isLong: true,
  run: async (bench) => {
    const contestants: ServiceContestant[] = [];
    for (const { axis, cores: count, ...form } of variants) {
      const start = () => startDedicatedService(bench, `cores-${contestants.length}`, form);
      const service = await withCores(count === null ? null : coreNumbers.slice(0, count).join(), start);
      contestants.push({
        ...createServiceContestant(service, name, usualTraffic),
        name: formatAxis(axis),
        axis,
      });
    }
    const rounds = await measureInTurns(bench, contestants, bench.settings.side);
    const results: ScenarioFinding[] = [];
    for (const contestant of contestants) {
      const ledger = await checkTenantLedger(contestant);
      const measurements = [buildMeasurement('skilltrace', rounds.getSamples(contestant.name), { ledger })];
      results.push({ axis: contestant.axis ?? null, measurements });
    }
    const ratio = computeRatioSpread(
      rounds.cpu(formatAxis(allCores.axis)),
      rounds.cpu(formatAxis(oneLane.axis)),
    );
    return { results, figures: [createGoalFigure('lanes', ratio)] };
  },
};

const formatAxis = ({ label, value }: CoresVariant['axis']): string => `${label}: ${value}`;
