import {
  choiceOption,
  defineArguments,
  flag,
  integerOption,
  option,
  rejectOperands,
  UsageError,
} from '../../src/cli/support/arguments.js';
import { StartError } from '../../src/lifecycle.js';
import { distinct } from '../../src/lists.js';
import type { Endpoint } from '../load/plan.js';
import { parseObjectives } from './objectives.js';

export const scenarioNames = ['single', 'batch', 'mixed', 'class', 'burst'] as const;
export type ScenarioName = (typeof scenarioNames)[number];

const toText = (text: string): string => text;
const integers = (most: number, about: string) => integerOption(1, most, about);

export const deploymentArguments = defineArguments({
  usage: 'npm run bench -- --url URL --key KEY [options]',
  about: `Loads a running deployment through its API, and reports latency, throughput and errors. Learners get ids that begin with
"bench-". Use a tenant for load tests: one run at a time.`,
  options: {
    url: option('URL', 'address of the deployment, before /api/v1', toText),
    key: option('KEY', 'API key of the tenant (default: the variable SKILLTRACE_KEY)', toText),
    only: option(
      'NAME,NAME',
      `scenarios: ${scenarioNames.join(', ')} (default: all; with --find-capacity: single)`,
      parseScenarios,
    ),
    rate: integers(
      1_000_000,
      `requests per second (open loop). Latency counts from the scheduled time, so it includes the time in which
a request waits for a connection (default: closed loop, as fast as the connections allow)`,
    ),
    connections: integers(
      20_000,
      'connections, each with one request at a time (default: 64; 8 for batch and class)',
    ),
    duration: integers(86_400, 'seconds per scenario, or per step of the search (default: 10, or 5)'),
    'warm-up': integerOption(0, 3600, 'seconds of load before each scenario (default: 3)'),
    learners: integers(1_000_000, 'learners (default: 1000)'),
    skills: integers(2000, 'skills (default: 50)'),
    items: integerOption(0, 10_000, 'items per skill; 0: answers have no item_id (default: 0)'),
    distribution: choiceOption('NAME', 'of answers over learners: uniform or zipf (default: uniform)', [
      'uniform',
      'zipf',
    ] as const),
    batch: integers(1000, 'answers per batch (default: 100)'),
    'no-event-ids': flag('send answers without event_id; failed requests are then not repeated'),
    seed: integers(1_000_000_000, 'seed of the generated answers (default: 1)'),
    generators: integers(64, 'threads of the load generator (default: 1, doubled after a busy warm-up)'),
    'find-capacity': flag('find the highest rate of the scenario that meets --slo three times in a row'),
    slo: option('LIMITS', 'objectives of the search (default: p99=50ms,errors=0.1%)', parseObjectives),
    assert: option(
      'LIMITS',
      'exit with code 1 if a scenario misses a limit, for example p99<50ms,errors<0.1%,rate>1000,capacity>5000',
      parseObjectives,
    ),
    verify: flag('after the run, read all learners and compare their answers with the acknowledged ones'),
    'analyst-url': option('URL', 'with --verify: count the rows in ClickHouse with this account', toText),
    'clean-up': flag('erase the learners of this run and of earlier runs, also after Ctrl-C'),
    'yes-this-tenant': flag('allow a tenant that has other learners'),
    json: option('FILE', 'write the results', toText),
    report: option('FILE', 'write an HTML report', toText),
  },
  examples: [
    'npm run bench -- --url https://skilltrace.example --key KEY --only single --rate 500 --verify --clean-up',
    'npm run bench -- --url URL --key KEY --find-capacity --slo p99=50ms,errors=0.1% --report load.html',
    'npm run bench -- --url URL --key KEY --only single --rate 200 --assert "p99<50ms,errors<0.1%"',
  ],
  notes: `Scenarios: single (POST track-answer), batch (POST track-answers), mixed (90 % answers, 8 % mastery and predictions, 2 %
velocity), class (mastery and predictions of 30 learners), burst (all answers of a second at its start; default: 200).
Percentiles cover successful requests. A request that may have been counted is repeated with the same event_id.
--clean-up needs a key with the scope admin.

Exit codes: 0 success, 1 a missed limit, a difference found by --verify, or a failure.`,
  read: (values, given) => {
    const { url, only, ...others } = rejectOperands(values, given);
    const search = others['find-capacity'];
    if (others['analyst-url'] !== null && !others.verify)
      throw new UsageError('--analyst-url needs --verify');
    if (!search && others.slo !== null)
      throw new UsageError('--slo needs --find-capacity; use --assert to check one run');
    if (others.slo?.some(({ metric }) => metric === 'capacity'))
      throw new UsageError('--slo cannot limit capacity; use --assert');
    if (!search && others.assert?.some(({ metric }) => metric === 'capacity'))
      throw new UsageError('--assert with capacity needs --find-capacity');
    const scenarios = only ?? (search ? (['single'] as const) : scenarioNames);
    if (search && scenarios.length > 1)
      throw new UsageError('--find-capacity searches one scenario; pass --only with one name');
    const settings = {
      ...{ scenarios, rate: others.rate, connections: others.connections },
      seconds: others.duration ?? (search ? 5 : 10),
      ...{ learners: others.learners ?? 1000, skills: others.skills ?? 50, items: others.items ?? 0 },
      ...{ distribution: others.distribution ?? 'uniform', batch: others.batch ?? 100 },
      ...{ event_ids: !others['no-event-ids'], seed: others.seed ?? 1 },
      slo: search ? (others.slo ?? parseObjectives('p99=50ms,errors=0.1%', '--slo')) : null,
      assert: others.assert ?? [],
    } as const;
    return {
      ...{ settings, address: parseAddress(url ?? ''), key: others.key, generators: others.generators },
      ...{ warmUp: others['warm-up'] ?? 3, json: others.json, report: others.report },
      ...{ verify: others.verify, analystUrl: others['analyst-url'] },
      ...{ cleanUp: others['clean-up'], isAnyTenant: others['yes-this-tenant'] },
    };
  },
});

export type DeploymentArguments = NonNullable<ReturnType<typeof deploymentArguments.read>>;
export type LoadSettings = DeploymentArguments['settings'];

function parseScenarios(text: string, name: string): ScenarioName[] {
  return distinct(text.split(',')).map((one) => {
    const found = scenarioNames.find((scenario) => scenario === one.trim());
    if (found !== undefined) return found;
    throw new UsageError(`${name} ${JSON.stringify(one)} must be one of ${scenarioNames.join(', ')}`);
  });
}

/** @throws StartError */
function parseAddress(text: string): Omit<Endpoint, 'key'> & { readonly baseUrl: string } {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new StartError(
      `--url ${JSON.stringify(text)} must be an address such as https://skilltrace.example`,
    );
  const isTls = url.protocol === 'https:';
  const basePath = url.pathname.replace(/\/+$/, '');
  return {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    authority: url.host,
    port: Number(url.port) || (isTls ? 443 : 80),
    isTls,
    basePath,
    baseUrl: `${url.origin}${basePath}`,
  };
}
