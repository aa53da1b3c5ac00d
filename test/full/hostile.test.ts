/** Callers who want to do harm: memory, and what others wait, beside the largest and the most that anybody may ask for. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type FloodFigures, flood, floods } from '../support/hostile/floods.js';
import { largestCases } from '../support/hostile/largest.js';
import { type LoopFigures, measureCase } from '../support/hostile/loop.js';
import { attackNames, type NamesFigures, namesAttacks } from '../support/hostile/names.js';
import { type Neighbour, startNeighbour } from '../support/hostile/neighbour.js';
import { attackUnread, settledMb, type UnreadFigures } from '../support/hostile/readers.js';
import { type Seeded, seed } from '../support/hostile/seeding.js';
import { keys, launchStand, type Stand } from '../support/hostile/stand.js';
import { tellFloods, tellLargest, tellMany, tellUnread } from '../support/hostile/tables.js';
import { unreadCases } from '../support/hostile/unread-requests.js';
import { progress } from '../support/runner/long-form.js';
import { type Servers, startServers } from '../support/servers/servers.js';

/** Resident memory, MB (docs/operations.md): whatever readers leave unread, and after the largest of every kind in a row. */
const boundMb = { unread: 600, largest: 1200 } as const;
/** What no machine's noise reaches; what the figures should be is told with the tables in docs/operations.md. */
const loopBoundMs = { alone: 100, together: 250 } as const;
/** Of another tenant's p99, with an attack to without, unless it stays below what two busy cores cost by themselves. */
const waitBound = { times: 2, noiseMs: 100 } as const;
const neighbourRate = 200;
const withoutMs = 6000;

async function besideNeighbour(t: TestContext, servers: Servers): Promise<[Stand, Neighbour, number]> {
  const stand = await launchStand(t, servers);
  const neighbour = await startNeighbour({ port: stand.port, key: keys.neighbour, rate: neighbourRate });
  t.after(async () => {
    await neighbour.stop();
    await stand.stop();
  });
  await neighbour.lookFor(2000);
  return [stand, neighbour, (await neighbour.lookFor(withoutMs)).p99];
}

interface Waited {
  readonly name: string;
  readonly loopDelay: number;
  readonly loopBound: number;
  /** Another tenant, with the attack. */
  readonly neighbour: { readonly p99: number; readonly refused: number };
}

function problemsOf(
  { name, loopDelay, loopBound, neighbour: { p99, refused } }: Waited,
  without: number,
): string[] {
  const bound = Math.max(waitBound.noiseMs, waitBound.times * without);
  return [
    ...(p99 > bound ? [`${name}: another tenant's p99 is ${p99.toFixed(0)} ms`] : []),
    ...(loopDelay > loopBound ? [`${name}: the event loop stands for ${loopDelay.toFixed(0)} ms`] : []),
    ...(refused > 0 ? [`${name}: ${refused} of another tenant's answers are refused`] : []),
  ];
}

test('callers who want to do harm', { timeout: 1_200_000, skip: process.platform !== 'linux' }, async (t) => {
  const servers = await startServers(t);
  const seeded = await seed(t, servers);
  await t.test('as many skills as can be made', (t) => manySkills(t, servers, seeded));
  await t.test('the largest that each endpoint may be asked for', (t) => largest(t, servers, seeded));
  await t.test('little bytes that make much work', (t) => flooded(t, servers));
  await t.test('answers that nobody reads', (t) => unread(t, servers, seeded));
});

async function manySkills(t: TestContext, servers: Servers, { big }: Seeded): Promise<void> {
  const [stand, neighbour, without] = await besideNeighbour(t, servers);
  const all: NamesFigures[] = [];
  for (const one of namesAttacks(big)) all.push(await attackNames(stand, neighbour, one));
  tellMany(all, without);
  assert.deepEqual(
    all.flatMap((one) => problemsOf({ ...one, loopBound: loopBoundMs.together }, without)),
    [],
  );
}

async function largest(t: TestContext, servers: Servers, seeded: Seeded): Promise<void> {
  const [stand, neighbour, without] = await besideNeighbour(t, servers);
  const all: LoopFigures[] = [];
  for (const one of largestCases(seeded)) {
    progress(one.name);
    all.push(await measureCase(stand, neighbour, one));
  }
  tellLargest(all, without);
  const problems = all.flatMap(({ name, delayAlone, delayTogether, waitAlone, waitTogether, refused }) => {
    const alone = { name, loopDelay: delayAlone, loopBound: loopBoundMs.alone };
    const together = {
      name: `${name}, 20 at once`,
      loopDelay: delayTogether,
      loopBound: loopBoundMs.together,
    };
    return [
      ...problemsOf({ ...alone, neighbour: { p99: waitAlone, refused } }, without),
      ...problemsOf({ ...together, neighbour: { p99: waitTogether, refused: 0 } }, without),
    ];
  });
  const large = all.filter(({ memory }) => memory > boundMb.largest);
  assert.deepEqual([...problems, ...large.map(({ name, memory }) => `${name}: ${memory.toFixed(0)} MB`)], []);
}

async function flooded(t: TestContext, servers: Servers): Promise<void> {
  const [stand, neighbour, without] = await besideNeighbour(t, servers);
  const all: FloodFigures[] = [];
  for (const one of floods) all.push(await flood(stand, neighbour, one));
  tellFloods(all, without);
  assert.deepEqual(
    all.flatMap((one) => problemsOf({ ...one, loopBound: loopBoundMs.together }, without)),
    [],
  );
}

async function unread(t: TestContext, servers: Servers, seeded: Seeded): Promise<void> {
  const all: UnreadFigures[] = [];
  for (const one of unreadCases(seeded)) {
    progress(one.name);
    all.push(await attackUnread(t, servers, one));
  }
  tellUnread(all);
  const bad = all.filter(
    ({ peak, end, goesOn, neighbour: { refused } }) =>
      peak > boundMb.unread || end > settledMb || !goesOn || refused > 0,
  );
  assert.deepEqual(
    bad.map(({ name }) => name),
    [],
  );
}
