import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { type CommandContext, commandOf } from '../src/cli/command.js';
import { type Bench, createBench } from './bench.js';
import { inOrder } from './goals.js';
import { createLoadRunner } from './load/run.js';
import { commit, machine, versions } from './machine.js';
import { main as micro } from './micro/main.js';
import { main as movers } from './movers/main.js';
import { main as nextItems } from './next-items/main.js';
import { watchNoise } from './noise.js';
import { type Arguments, benchArguments, listScenarios } from './options.js';
import { profileAll } from './profile/run.js';
import { comparison } from './report/compare.js';
import { writeReport } from './report/page.js';
import { tableOf } from './report/table.js';
import type { BenchResults } from './results.js';
import { runScenario } from './scenario.js';

export async function main(argv: readonly string[]): Promise<void> {
  if (argv[0] === '--micro') return micro(argv[1]);
  if (argv[0] === '--movers') return movers(argv.slice(1));
  if (argv[0] === '--next-items') return nextItems(argv.slice(1), progress);
  if (argv.includes('--list')) {
    process.stdout.write(listScenarios());
    return;
  }
  await commandOf({ name: 'bench', ...benchArguments, work })(argv);
}

async function work({ closers }: CommandContext, args: Arguments): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'skilltrace-bench-'));
  closers.add('temporary folder', () => rmSync(root, { recursive: true, force: true, maxRetries: 10 }));
  const bench = createBench({
    root,
    settings: args,
    tenants: args.profile ? profiled : args.scenarios.map(({ name }) => name),
    profile: args.profile,
    closers,
    runner: createLoadRunner(root, closers),
    progress,
  });
  if (args.profile) return profile(bench);
  const { results, failure } = await runAll(bench, args);
  process.stdout.write(`${tableOf(results)}\n${keep(results, args.json)}\n`);
  if (failure !== null) throw failure;
  if (args.compare !== null) process.stdout.write(`\n${comparison(args.compare, results)}`);
  if (args.report === null) return;
  writeReport(results, args.report);
  process.stdout.write(`Report: ${args.report}\n`);
}

const profiled = ['single', 'batches'] as const;

async function profile(bench: Bench): Promise<void> {
  const folder = resolve('bench-results', `profile-${new Date().toISOString().replaceAll(':', '-')}`);
  const text = await profileAll(bench, profiled, folder);
  progress('');
  process.stdout.write(`${text}\nProfiles and flame graphs: ${folder}\n`);
}

function keep(results: BenchResults, wanted: string | null): string {
  const file = wanted ?? join('bench-results', `${results.startedAt.replaceAll(':', '-')}.json`);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify(results, null, 1)}\n`);
  return `Results: ${file}`;
}

function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
}

/** A failure keeps the results of earlier scenarios. */
async function runAll(
  bench: Bench,
  args: Arguments,
): Promise<{ readonly results: BenchResults; readonly failure: Error | null }> {
  const startedAt = new Date();
  const findings: Awaited<ReturnType<typeof runScenario>>[] = [];
  const noise = watchNoise(bench, args.scenarios[0]?.name ?? '');
  await noise.look();
  let failure: Error | null = null;
  for (const [i, scenario] of args.scenarios.entries()) {
    const place = `${i + 1} of ${args.scenarios.length}`;
    try {
      const placed = { ...bench, progress: (text: string) => progress(`[${place}] ${text}`) };
      findings.push(await runScenario(placed, scenario));
      await noise.look();
    } catch (error) {
      process.stderr.write(`\nskilltrace: the benchmark ended with ${scenario.name}\n`);
      failure = error as Error;
      break;
    }
  }
  progress('');
  const results: BenchResults = {
    format: 1,
    startedAt: startedAt.toISOString(),
    form: args.full ? 'full' : 'short',
    seconds: (Date.now() - startedAt.getTime()) / 1000,
    machine: machine(),
    noise: noise.told,
    versions: versions(),
    commit: commit(),
    scenarios: findings.flatMap(({ results }) => results),
    figures: inOrder(findings.flatMap(({ figures }) => figures)),
  };
  return { results, failure };
}
