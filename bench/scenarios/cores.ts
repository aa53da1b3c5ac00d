/** What an answer costs on how many cores, lanes and API processes. */
import { type Bench, inTurns, withClosers } from '../bench.js';
import { allowedCores, canKeepToCores, onCores } from '../cores.js';
import { figureOf } from '../goals.js';
import { usualTraffic } from '../load/traffic.js';
import type { Contestant } from '../measure.js';
import type { ScenarioResult } from '../results.js';
import { type Findings, ledgerOf, measurementOf, type Scenario, serviceContestant } from '../scenario.js';
import type { Service } from '../service.js';
import { ratioSpread } from '../spread.js';

const name = 'cores';
const about =
  'single answers, closed loop, in turns: one process on some of the cores and on all, with one lane, and several processes';

/** How a service is started: with its servers on some cores, or on all; the load generator has all. */
interface Form {
  readonly axis: NonNullable<ScenarioResult['axis']>;
  readonly cores: number | null;
  readonly processes: number;
  readonly lanes: number | null;
}

const all = allowedCores();
const some = canKeepToCores() ? [1, 2, 4].filter((count) => count < all.length) : [];
const onAll: Form = { axis: { label: 'cores', value: all.length }, cores: null, processes: 1, lanes: null };
const oneLane: Form = { ...onAll, axis: { label: 'lanes, on all cores', value: 1 }, lanes: 1 };
const forms: readonly Form[] = [
  oneLane,
  ...some.map((cores) => ({ ...onAll, axis: { label: 'cores', value: cores }, cores })),
  onAll,
  ...[2, 4]
    .filter((count) => count <= all.length)
    .map((processes) => ({ ...onAll, axis: { label: 'API processes', value: processes }, processes })),
];

export const cores: Scenario = {
  name,
  about,
  long: true,
  run: (bench) =>
    withClosers(bench, async (closers) => {
      const contestants: Contestant[] = [];
      for (const form of forms) {
        const { cores: count, processes, lanes } = form;
        const folder = `cores-${contestants.length}`;
        const start = () => bench.ownService(folder, closers, { apiProcesses: processes, lanes });
        const service = await onCores(count === null ? null : all.slice(0, count).join(), start);
        contestants.push({ ...serviceContestant(service, name, usualTraffic), name: keyOf(form) });
      }
      return compared(bench, contestants);
    }),
};

const keyOf = ({ axis }: Form): string => `${axis.label}: ${axis.value}`;

async function compared(bench: Bench, contestants: readonly Contestant[]): Promise<Findings> {
  const rounds = await inTurns(bench, contestants, { scenario: name, pace: bench.settings.side });
  const results: ScenarioResult[] = [];
  for (const [i, { drains, tally, name: key }] of contestants.entries()) {
    const ledger = await ledgerOf(drains as Service, name, usualTraffic, tally);
    const measurements = [measurementOf('skilltrace', rounds.of(key), { ledger })];
    results.push({ name, about, axis: forms[i]?.axis ?? null, unit: 'answer', measurements });
  }
  const ratio = ratioSpread(rounds.cpu(keyOf(onAll)), rounds.cpu(keyOf(oneLane)));
  return { results, figures: [figureOf('lanes', ratio)] };
}
