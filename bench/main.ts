import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { type CommandContext, defineCommand } from '../src/cli/support/command.js';
import { loadDeployment } from './deployment/main.js';
import { createLoadRunner } from './load/load-runner.js';
import { type Bench, createBench } from './measurement/bench.js';
import { describeMachine, readCommit, readVersions } from './measurement/machine.js';
import { watchNoise } from './measurement/noise.js';
import { runScenario } from './measurement/scenario.js';
import { main as micro } from './micro/main.js';
import { main as movers } from './movers/main.js';
import { main as nextItems } from './next-items/main.js';
import { type BenchArguments, benchArguments, formatScenarios } from './options.js';
import { profileAll } from './profile/profile-targets.js';
import { writeReport } from './report/page.js';
import { formatTables } from './report/table.js';
import { sortFigures } from './results/goals.js';
import type { BenchResults } from './results/results.js';

export async function main(argv: readonly string[]): Promise<void> {
  if (argv.some((one) => /^--url(=|$)/.test(one))) return loadDeployment(argv);
  if (argv[0] === '--micro') return micro(argv[1]);
  if (argv[0] === '--movers') return movers(argv.slice(1));
  if (argv[0] === '--next-items') return nextItems(argv.slice(1), showProgress);
  if (argv.includes('--list')) {
    process.stdout.write(formatScenarios());
    return;
  }
  await defineCommand({ name: 'bench', ...benchArguments, run: runBenchmark })(argv);
}

async function runBenchmark({ closers }: CommandContext, args: BenchArguments): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'skilltrace-bench-'));
  closers.add('temporary folder', () => rmSync(root, { recursive: true, force: true, maxRetries: 10 }));
  const bench = createBench({
    root,
    settings: args,
    tenants: args.profile ? profiledScenarios : args.scenarios.map(({ name }) => name),
    profile: args.profile,
    closers,
    runner: createLoadRunner(closers),
    progress: showProgress,
  });
  if (args.profile) return runProfile(bench);
  const { results, failure } = await runScenarios(bench, args);
  process.stdout.write(`${formatTables(results)}\n${saveResults(results, args.json)}\n`);
  if (failure !== null) throw failure;
  if (args.report === null) return;
  writeReport(results, args.report);
  process.stdout.write(`Report: ${args.report}\n`);
}

const profiledScenarios = ['single', 'batches'] as const;

async function runProfile(bench: Bench): Promise<void> {
  const folder = resolve('bench-results', `profile-${new Date().toISOString().replaceAll(':', '-')}`);
  const text = await profileAll(bench, profiledScenarios, folder);
  showProgress('');
  process.stdout.write(`${text}\nProfiles for Chrome DevTools: ${folder}\n`);
}

function saveResults(results: BenchResults, requestedFile: string | null): string {
  const file = requestedFile ?? join('bench-results', `${results.startedAt.replaceAll(':', '-')}.json`);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify(results, null, 1)}\n`);
  return `Results: ${file}`;
}

function showProgress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
}

/** A failure keeps the results of earlier scenarios. */
async function runScenarios(
  bench: Bench,
  args: BenchArguments,
): Promise<{ readonly results: BenchResults; readonly failure: Error | null }> {
  const startedAt = new Date();
  const findings: Awaited<ReturnType<typeof runScenario>>[] = [];
  const noise = watchNoise(bench, args.scenarios[0]?.name ?? '');
  await noise.look();
  let failure: Error | null = null;
  for (const [i, scenario] of args.scenarios.entries()) {
    const place = `${i + 1} of ${args.scenarios.length}`;
    try {
      const placed = { ...bench, progress: (text: string) => showProgress(`[${place}] ${text}`) };
      findings.push(await runScenario(placed, scenario));
      await noise.look();
    } catch (error) {
      process.stderr.write(`\nskilltrace: the benchmark failed in scenario ${scenario.name}\n`);
      failure = error as Error;
      break;
    }
  }
  showProgress('');
  const results: BenchResults = {
    format: 2,
    startedAt: startedAt.toISOString(),
    form: args.full ? 'full' : 'short',
    seconds: (Date.now() - startedAt.getTime()) / 1000,
    machine: describeMachine(),
    noise: noise.told,
    versions: readVersions(),
    commit: readCommit(),
    scenarios: findings.map(({ result }) => result),
    figures: sortFigures(findings.flatMap(({ figures }) => figures)),
  };
  return { results, failure };
}
