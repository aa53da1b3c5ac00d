import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { formatTable } from '../../src/lab/report/format.js';
import { computeSum } from '../../src/lists.js';
import { usualTraffic } from '../load/traffic.js';
import { type Bench, warmUpTarget } from '../measurement/bench.js';
import { type Contestant, measureLoad, type Sample } from '../measurement/measure.js';
import {
  createPeerContestant,
  createServiceContestant,
  withScheduledDrain,
} from '../measurement/scenario.js';
import { formatFigure } from '../report/section.js';
import { sortParts } from '../report/style.js';
import { waitUntilDone } from '../targets/wait.js';
import { readProfile, sumFunctionTimes } from './cpu-profile.js';
import { requestFile } from './recorder.js';
import {
  type Counters,
  readCommandCounters,
  readEngineCounters,
  readThreadCounters,
  subtractCounters,
} from './server-counters.js';

const batchConnections = 4;
const maxFunctions = 15;
/** Threads below this took no part in the answers. */
const minThreadMicros = 0.3;
const peers = ['echo', 'fastify', 'fastify-outbox'] as const;

interface ProfileSubject {
  readonly contestant: Contestant;
  readonly name: string;
  readonly notesFolder: string;
  readonly readCounters: () => Promise<Readonly<Record<string, Counters>>>;
}

/** @returns the tables */
export async function profileAll(
  bench: Bench,
  tenants: readonly [string, string],
  folder: string,
): Promise<string> {
  const subjects = [
    ...(await createServiceSubjects(bench, tenants)),
    ...(await createPeerSubjects(bench, tenants[0])),
  ];
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

async function createServiceSubjects(
  bench: Bench,
  [single, batches]: readonly [string, string],
): Promise<ProfileSubject[]> {
  const service = await bench.service();
  const { redis, clickhouse, notesFolder, pids } = service;
  const readCounters = async () => ({
    ...(await readCommandCounters(redis as Redis)),
    'ClickHouse events': await readEngineCounters(clickhouse),
    'ClickHouse threads, CPU µs': readThreadCounters(pids.clickhouse as number),
    'pipeline threads, CPU µs': readThreadCounters(pids.pipeline as number),
  });
  const one = withScheduledDrain(createServiceContestant(service, single, usualTraffic));
  const thousands = { ...usualTraffic, batch: 1000 };
  const many = withScheduledDrain(createServiceContestant(service, batches, thousands));
  return [
    { name: 'single', contestant: one, notesFolder, readCounters },
    { name: 'batches', contestant: { ...many, connections: batchConnections }, notesFolder, readCounters },
  ];
}

async function createPeerSubjects(bench: Bench, key: string): Promise<ProfileSubject[]> {
  const subjects: ProfileSubject[] = [];
  for (const name of peers) {
    const peer = await bench.peer(name);
    const redis = peer.redisUrl === '' ? null : new Redis(peer.redisUrl);
    if (redis !== null) bench.closers.add('Redis connection', () => redis.disconnect());
    const readCounters = async () => (redis === null ? {} : readCommandCounters(redis));
    subjects.push({
      name,
      contestant: createPeerContestant(peer, key, usualTraffic),
      notesFolder: peer.notesFolder,
      readCounters,
    });
  }
  return subjects;
}

async function profileOne(bench: Bench, subject: ProfileSubject, into: string): Promise<string> {
  const { contestant, name, notesFolder, readCounters } = subject;
  await warmUpTarget({ ...bench, progress: (text) => bench.progress(`${name}: ${text}`) }, contestant);
  bench.progress(`profile: ${name}`);
  const before = await readCounters();
  writeFileSync(requestFile(notesFolder), into);
  const { connections, main } = bench.settings;
  const settings = { connections, seconds: main.rounds * main.seconds, rate: null, seed: 1 };
  const sample = await measureLoad(bench.runner, contestant, settings);
  rmSync(requestFile(notesFolder));
  const after = await readCounters();
  const threads = await waitForProfiles(into, contestant.target.threads?.() ?? []);
  const tables = Object.entries(after).map(([title, now]) =>
    formatCounters(title, subtractCounters(before[title] ?? {}, now), sample.units),
  );
  return [
    `${name}: ${contestant.name}, ${formatFigure(sample.units)} answers, ${formatFigure(sample.perSecond)} per second`,
    formatParts(sample),
    ...threads.map((file) => writeThreadTable(into, file, sample.units)),
    ...tables,
  ]
    .filter((text) => text !== '')
    .join('\n');
}

const maxWriteMs = 30_000;
const pollMs = 100;

async function waitForProfiles(
  folder: string,
  threads: readonly { readonly part: string }[],
): Promise<string[]> {
  const expected = threads.filter(({ part }) => part !== 'runtime' && part !== 'libuv').length;
  const files = (): string[] => readdirSync(folder).filter((name) => name.endsWith('.cpuprofile'));
  const missing = async (): Promise<string | null> => {
    const { length } = files();
    return length >= expected ? null : `Only ${length} of ${expected} threads wrote a profile`;
  };
  await waitUntilDone(missing, { limitMs: maxWriteMs, pollMs });
  return files().sort();
}

function formatParts({ cpu }: Sample): string {
  const parts = sortParts(Object.keys(cpu)).map((part) => `${part} ${formatFigure(cpu[part] ?? 0)}`);
  return `  CPU µs per answer, including the profiler: ${parts.join(', ')}`;
}

function writeThreadTable(folder: string, file: string, answers: number): string {
  const thread = file.replace('.cpuprofile', '');
  const times = sumFunctionTimes(readProfile(join(folder, file)));
  const micros = computeSum(times.map(({ self }) => self)) / answers;
  if (micros < minThreadMicros) return '';
  const rows = times
    .slice(0, maxFunctions)
    .map(({ label, self, total }) => [label, (self / answers).toFixed(2), (total / answers).toFixed(2)]);
  const head = [
    `  ${thread}: ${formatFigure(micros)} µs per answer, wall clock without idle time`,
    'self',
    'total',
  ];
  return formatTable([head, ...rows]);
}

function formatCounters(title: string, counts: Counters, answers: number): string {
  const rows = Object.entries(counts)
    .filter(([, value]) => value / answers >= 0.01)
    .sort(([, a], [, b]) => b - a)
    .map(([name, value]) => [name, (value / answers).toFixed(2)]);
  return rows.length === 0 ? '' : formatTable([[title, 'per answer'], ...rows]);
}
