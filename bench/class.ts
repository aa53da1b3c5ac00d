/**
 * What predictions cost a service, per learner: one request for each learner of a class, and one for all of them.
 * 500 learners with 40 skills each.
 *
 * Run: node dist/bench/class.js [rounds]
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cpuOf, startService, type Target } from './targets.js';

const learners = Array.from({ length: 500 }, (_, i) => `learner-${i}`);
const skills = 40;
const connections = 16;
const rounds = Number(process.argv[2] ?? 5);

const dataDir = mkdtempSync(join(tmpdir(), 'skilltrace-bench-'));
const stops: (() => Promise<void>)[] = [];
try {
  const service = await startService(dataDir, stops);
  await seed(service);
  await inOneRequest(service);
  process.stdout.write(`CPU µs per learner, medians of ${rounds} rounds of ${learners.length} learners\n`);
  for (const way of [oneByOne, inOneRequest]) process.stdout.write(`  ${await measure(service, way)}\n`);
} finally {
  for (const stop of stops.reverse()) await stop();
  rmSync(dataDir, { recursive: true, force: true });
}

async function request({ port, key }: Target, path: string, body?: object): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`, {
    headers: { 'X-API-Key': key, 'Content-Type': 'application/json' },
    ...(body && { method: 'POST', body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  await response.arrayBuffer();
}

/** Three answers of each learner on each skill. */
async function seed(service: Target): Promise<void> {
  for (const user_id of learners) {
    const events = Array.from({ length: 3 * skills }, (_, i) => ({
      user_id,
      skill_id: `skill-${i % skills}`,
      is_correct: (i * 7919) % 10 < 6,
    }));
    await request(service, 'track-answers', { events });
  }
}

async function oneByOne(service: Target): Promise<void> {
  const waiting = [...learners];
  const next = async (): Promise<void> => {
    for (let id = waiting.pop(); id !== undefined; id = waiting.pop())
      await request(service, `predictions/${id}`);
  };
  await Promise.all(Array.from({ length: connections }, next));
}

async function inOneRequest(service: Target): Promise<void> {
  await request(service, 'predictions', { user_ids: learners });
}

async function measure(service: Target, way: (service: Target) => Promise<void>): Promise<string> {
  const samples: Record<string, number>[] = [];
  for (let round = 0; round < rounds; round++) {
    const before = cpuOf(service);
    await way(service);
    const after = cpuOf(service);
    samples.push(
      Object.fromEntries(Object.entries(after).map(([name, cpu]) => [name, cpu - (before[name] ?? 0)])),
    );
  }
  const median = (name: string): number =>
    samples.map((sample) => sample[name] ?? 0).sort((a, b) => a - b)[rounds >> 1] as number;
  const parts = ['server', 'redis'].map(
    (name) => `${name} ${((1e6 * median(name)) / learners.length).toFixed(0)}`,
  );
  return `${way.name}: ${parts.join(', ')}`;
}
