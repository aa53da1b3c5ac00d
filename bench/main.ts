/** `npm run bench`: what an answer costs, beside a bare uWebSockets.js server in the same run. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { runProcess } from './processes.js';
import { cpuOf, here, startEcho, startService, type Target } from './targets.js';

const help = `Usage: npm run bench -- [--seconds N] [--rounds N] [--connections N] [--json]

Measures POST /api/v1/track-answer with everything on, in a closed loop, in turn with a bare
uWebSockets.js server that only parses, and prints the medians of all rounds.
`;

interface Sample {
  readonly perSecond: number;
  /** CPU microseconds per answer, by process. */
  readonly cpu: Readonly<Record<string, number>>;
}

export async function main(argv: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      help: { type: 'boolean' },
      json: { type: 'boolean' },
      seconds: { type: 'string', default: '4' },
      rounds: { type: 'string', default: '5' },
      connections: { type: 'string', default: '64' },
    },
  });
  if (values.help) {
    process.stdout.write(help);
    return;
  }
  const dataDir = mkdtempSync(join(tmpdir(), 'skilltrace-bench-'));
  const stops: (() => Promise<void>)[] = [];
  try {
    const targets = [await startEcho(stops), await startService(dataDir, stops)];
    const samples = await measure(targets, values);
    process.stdout.write(values.json ? `${JSON.stringify(samples)}\n` : table(samples));
  } finally {
    for (const stop of stops.reverse()) await stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

interface Plan {
  readonly seconds: string;
  readonly rounds: string;
  readonly connections: string;
}

/** The targets take turns, so that a slower minute of the machine hits them all. */
async function measure(targets: readonly Target[], plan: Plan): Promise<Map<string, Sample[]>> {
  const samples = new Map<string, Sample[]>(targets.map(({ name }) => [name, []]));
  // The first round only warms up.
  for (let round = 0; round <= Number(plan.rounds); round++) {
    for (const target of targets) {
      if (process.stderr.isTTY)
        process.stderr.write(`\rround ${round} of ${plan.rounds}: ${target.name}      `);
      const sample = await load(target, plan);
      if (round > 0) samples.get(target.name)?.push(sample);
    }
  }
  if (process.stderr.isTTY) process.stderr.write('\n');
  return samples;
}

async function load(target: Target, { seconds, connections }: Plan): Promise<Sample> {
  const before = cpuOf(target);
  const output = await runProcess([here('./load.js'), `${target.port}`, target.key, connections, seconds]);
  const { answers, errors }: { answers: number; errors: number } = JSON.parse(output);
  if (errors > 0) throw new Error(`${target.name}: ${errors} of ${answers + errors} requests failed`);
  const after = cpuOf(target);
  const cpu = Object.keys(before).map((name) => [
    name,
    ((after[name] ?? 0) - (before[name] ?? 0)) * (1e6 / answers),
  ]);
  return { perSecond: answers / Number(seconds), cpu: Object.fromEntries(cpu) };
}

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

function table(samples: ReadonlyMap<string, readonly Sample[]>): string {
  const rows = [...samples].map(([name, list]) => {
    const parts = Object.keys(list[0]?.cpu ?? {});
    const cpu = parts.map(
      (part) => `${part} ${median(list.map((sample) => sample.cpu[part] ?? 0)).toFixed(1)}`,
    );
    const perSecond = median(list.map((sample) => sample.perSecond)).toFixed(0);
    return `${name.padEnd(14)}${perSecond.padStart(10)}   ${cpu.join(', ')}\n`;
  });
  return `${'target'.padEnd(14)}${'answers/s'.padStart(10)}   CPU µs per answer (medians)\n${rows.join('')}`;
}
