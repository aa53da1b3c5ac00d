import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { aligned } from '../../src/lab/report/numbers.js';
import { type Bench, warm } from '../bench.js';
import { usualTraffic } from '../load/traffic.js';
import { type Contestant, measure, type Sample } from '../measure.js';
import { partsInOrder } from '../report/style.js';
import { shown } from '../report/view.js';
import { atItsPace, peerContestant, serviceContestant } from '../scenario.js';
import { untilDone } from '../wait.js';
import { flameOf, functionTimes, readProfile } from './cpu-profile.js';
import { flamePage } from './flame.js';
import { requestFile } from './recorder.js';
import { type RuntimeSplit, watchRuntime } from './runtime-split.js';
import { type Counts, commandCounts, engineCounts, grown, threadCounts } from './servers.js';

const batchConnections = 4;
const listed = 15;
/** Threads below this took no part in the answers. */
const leastMicros = 0.3;
const peers = ['echo', 'fastify', 'fastify-outbox'] as const;

interface Subject {
  readonly contestant: Contestant;
  readonly name: string;
  readonly notes: string;
  readonly counts: () => Promise<Readonly<Record<string, Counts>>>;
}

/** @returns the tables */
export async function profileAll(
  bench: Bench,
  tenants: readonly [string, string],
  folder: string,
): Promise<string> {
  const subjects = [...(await servicesOf(bench, tenants)), ...(await peersOf(bench, tenants[0]))];
  const texts: string[] = [];
  for (const subject of subjects) {
    const into = join(folder, subject.name);
    mkdirSync(into, { recursive: true });
    texts.push(await profileOne(bench, subject, into));
  }
  const text = `${texts.join('\n\n')}\n`;
  writeFileSync(join(folder, 'tables.txt'), text);
  return text;
}

async function servicesOf(bench: Bench, [single, batches]: readonly [string, string]): Promise<Subject[]> {
  const service = await bench.service();
  const { redis, clickhouse, notes, pids } = service;
  const counts = async () => ({
    ...(await commandCounts(redis as Redis)),
    'sums of ClickHouse': await engineCounts(clickhouse),
    'threads of ClickHouse, CPU µs': threadCounts(pids.clickhouse as number),
    'threads of the pipeline, CPU µs': threadCounts(pids.pipeline as number),
  });
  const one = atItsPace(serviceContestant(service, single, usualTraffic));
  const thousands = { ...usualTraffic, batch: 1000 };
  const many = atItsPace(serviceContestant(service, batches, thousands));
  return [
    { name: 'single', contestant: one, notes, counts },
    { name: 'batches', contestant: { ...many, connections: batchConnections }, notes, counts },
  ];
}

async function peersOf(bench: Bench, key: string): Promise<Subject[]> {
  const subjects: Subject[] = [];
  for (const name of peers) {
    const peer = await bench.peer(name);
    const redis = peer.redisUrl === '' ? null : new Redis(peer.redisUrl);
    if (redis !== null) bench.closers.add('Redis connection', () => redis.disconnect());
    const counts = async () => (redis === null ? {} : commandCounts(redis));
    subjects.push({ name, contestant: peerContestant(peer, key, usualTraffic), notes: peer.notes, counts });
  }
  return subjects;
}

async function profileOne(bench: Bench, subject: Subject, into: string): Promise<string> {
  const { contestant, name, notes, counts } = subject;
  await warm({ ...bench, progress: (text) => bench.progress(`${name}: ${text}`) }, contestant);
  bench.progress(`profile: ${name}`);
  const perf = join(into, 'perf.data');
  const before = await counts();
  const watch = watchRuntime(contestant.target.threads?.() ?? [], perf);
  writeFileSync(requestFile(notes), into);
  const { connections, main } = bench.settings;
  const settings = { connections, seconds: main.rounds * main.seconds, rate: null };
  const sample = await measure(bench.runner, contestant, settings);
  rmSync(requestFile(notes));
  const split = (await watch?.end()) ?? null;
  rmSync(perf, { force: true });
  const after = await counts();
  const threads = await profilesIn(into, contestant.target.threads?.() ?? []);
  const tables = Object.entries(after).map(([title, now]) =>
    countTable(title, grown(before[title] ?? {}, now), sample.units),
  );
  return [
    `${name}: ${contestant.name}, ${shown(sample.units)} answers, ${shown(sample.perSecond)} a second`,
    partsText(sample, split),
    ...threads.map((file) => threadTable(into, file, sample.units)),
    ...tables,
  ]
    .filter((text) => text !== '')
    .join('\n');
}

const writeLimitMs = 30_000;
const pollMs = 100;

async function profilesIn(folder: string, threads: readonly { readonly part: string }[]): Promise<string[]> {
  const expected = threads.filter(({ part }) => part !== 'runtime' && part !== 'libuv').length;
  const files = (): string[] => readdirSync(folder).filter((name) => name.endsWith('.cpuprofile'));
  const missing = async (): Promise<string | null> => {
    const { length } = files();
    return length >= expected ? null : `${length} of ${expected} threads wrote a profile`;
  };
  await untilDone(missing, { limitMs: writeLimitMs, pollMs });
  return files().sort();
}

function partsText({ cpu }: Sample, split: RuntimeSplit | null): string {
  const parts = partsInOrder(Object.keys(cpu)).map((part) => `${part} ${shown(cpu[part] ?? 0)}`);
  const runtime = cpu.runtime ?? 0;
  const told =
    split === null
      ? 'not split: perf is not installed or may not look'
      : `compiling ${shown(runtime * split.compiling)}, collecting garbage ${shown(runtime * split.collecting)}`;
  return `  CPU µs an answer, profiler included: ${parts.join(', ')}\n  of the runtime, by perf: ${told}`;
}

function threadTable(folder: string, file: string, answers: number): string {
  const thread = file.replace('.cpuprofile', '');
  const flame = flameOf(readProfile(join(folder, file)));
  if (flame.total / answers < leastMicros) return '';
  writeFileSync(join(folder, `${thread}.html`), flamePage(thread, flame, answers));
  const rows = functionTimes(flame)
    .slice(0, listed)
    .map(({ label, self, total }) => [label, (self / answers).toFixed(2), (total / answers).toFixed(2)]);
  const head = [
    `  ${thread}: ${shown(flame.total / answers)} µs an answer by the clock, idle apart`,
    'itself',
    'with calls',
  ];
  return aligned([head, ...rows]);
}

function countTable(title: string, counts: Counts, answers: number): string {
  const rows = Object.entries(counts)
    .filter(([, value]) => value / answers >= 0.01)
    .sort(([, a], [, b]) => b - a)
    .map(([name, value]) => [name, (value / answers).toFixed(2)]);
  return rows.length === 0 ? '' : aligned([[title, 'an answer'], ...rows]);
}
