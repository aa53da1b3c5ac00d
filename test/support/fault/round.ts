/** One round of a fault test: clients post, a fault comes, and then everything is compared with their ledger. */
import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ClickHouseClient } from '@clickhouse/client';
import type { PipelineFacts } from '../../../src/store/outbox/outbox.js';
import type { Scoped } from '../servers/service.js';
import { askUntil, waitFor } from '../wait.js';
import { compare, type Findings, resendAll } from './check.js';
import type { ClientSettings } from './client.js';
import { startClients } from './clients.js';
import { plantLearner } from './erasure.js';
import { exchange, type Heard } from './exchange.js';
import type { Fault } from './faults.js';
import { confirm, type Entry, newEntry } from './ledger.js';
import type { Stand } from './stand.js';

export interface RoundOptions {
  readonly stand: Stand;
  readonly clickhouse: ClickHouseClient;
  readonly facts: () => Promise<PipelineFacts>;
  readonly fault: Fault;
  /** Of all rounds of a run: names the learners. */
  readonly number: number;
  readonly random: () => number;
}

export interface Round extends Findings {
  readonly stand: string;
  readonly fault: string;
  readonly accepted: number;
  readonly takenBack: number;
  readonly refused: number;
  /** From the end of the fault until an answer was accepted, in milliseconds. */
  readonly acceptedAfterMs: number;
  /** From the end of the fault until all rows were in ClickHouse, answers going on to arrive for a second. */
  readonly drainedAfterMs: number;
}

const learnersPerTenant = 16;
const skills = ['algebra', 'geometry', 'reading', 'writing'];
const clientProcesses = 2;
const loops = 12;
const afterMs = 1000;
/** The outbox may be drained by attempts 6 s apart, over a job that must be found to be stalled first. */
const drainLimitMs = 180_000;

export async function runRound(t: Scoped, options: RoundOptions): Promise<Round> {
  const { stand, clickhouse, facts, fault, number, random } = options;
  const learners = Array.from({ length: learnersPerTenant }, (_, i) => `round${number}-learner${i}`);
  const erased = `round${number}-erased`;
  const planted = await plantLearner(stand, erased);
  const clients = startClients(t, clientsOf(options, learners));
  await sleep(1000 + 2000 * random());
  const erasing = planted.erase();
  erasing.catch(() => undefined);
  await fault.inflict(stand, random);
  const over = Date.now();
  const probed = await probe(stand, learners[0] as string);
  const acceptedAfterMs = Date.now() - over;
  await sleep(afterMs);
  const ledger = await clients.stop();
  const entries = [...ledger.entries, probed, ...(await erasing)];
  const drained = async (): Promise<boolean> => (await facts().catch(() => null))?.outboxLength === 0;
  await waitFor('the outbox to be empty', drained, drainLimitMs);
  const drainedAfterMs = Date.now() - over;
  await planted.done();
  const lost = await resendAll(stand, entries);
  if (lost > 0) await waitFor('the outbox to be empty again', drained, drainLimitMs);
  const missing = fault.clients === 'flood' && ledger.refused === 0 ? ['nobody was refused'] : [];
  const found = await compare(stand, clickhouse, entries, [...learners, erased]);
  return {
    stand: stand.name,
    fault: fault.name,
    accepted: entries.filter(({ first }) => first !== null).length,
    takenBack: entries.filter(({ takenBack }) => takenBack).length,
    refused: ledger.refused,
    acceptedAfterMs,
    drainedAfterMs,
    doubled: found.doubled,
    lost: found.lost + lost,
    differences: [...found.differences, ...ledger.faulty, ...missing],
  };
}

function clientsOf({ stand, fault, number, random }: RoundOptions, learners: string[]): ClientSettings[] {
  return Array.from({ length: clientProcesses }, (_, i) => ({
    port: stand.port,
    tenants: stand.tenants,
    learners,
    skills,
    loops,
    hangUps: fault.clients === 'hang up' ? 0.3 : 0,
    largestBatch: fault.clients === 'flood' ? 1000 : 30,
    mostTakenBack: 2,
    name: `event-${number}-${i}`,
    seed: Math.floor(random() * 2 ** 32),
  }));
}

/** Posts one more answer until it is confirmed. */
async function probe({ port, tenants: [key = ''] }: Stand, learner: string): Promise<Entry> {
  const event = { user_id: learner, skill_id: 'probe', is_correct: true, event_id: 'probe' };
  const entry = newEntry(key, event);
  const agent = new Agent();
  const order = {
    agent,
    port,
    key,
    path: '/api/v1/track-answer',
    body: JSON.stringify(event),
    hangUpAfterMs: null,
  };
  const { text, replayed } = (await askUntil(
    'an answer to be accepted',
    () => exchange(order),
    (heard) => heard?.status === 200,
  )) as Heard;
  confirm(entry, JSON.parse(text).data, replayed);
  return entry;
}
