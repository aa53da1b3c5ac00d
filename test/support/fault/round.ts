/** One round of a fault test: clients post, a fault comes, and then everything is compared with their ledger. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ClickHouseClient } from '@clickhouse/client';
import type { PipelineFacts } from '../../../src/services/pipeline-ports.js';
import type { Scoped } from '../service.js';
import { waitFor } from '../wait.js';
import { compare, type Findings, resendAll } from './check.js';
import type { ClientSettings } from './client.js';
import { startClients } from './clients.js';
import type { Fault } from './faults.js';
import type { Ledger } from './ledger.js';
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
  readonly refused: number;
  /** From the end of the fault to the first answer that was sent after it and confirmed, in milliseconds. */
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
  const clients = startClients(t, clientsOf(options, learners));
  await sleep(1000 + 2000 * random());
  await fault.inflict(stand, random);
  const over = Date.now();
  await sleep(afterMs);
  const ledger = await clients.stop();
  const drained = async (): Promise<boolean> => (await facts().catch(() => null))?.outboxLength === 0;
  await waitFor('the outbox to be empty', drained, drainLimitMs);
  const drainedAfterMs = Date.now() - over;
  const { entries, faulty, refused } = ledger;
  const lost = await resendAll(stand, entries);
  if (lost > 0) await waitFor('the outbox to be empty again', drained, drainLimitMs);
  const found = await compare(stand, clickhouse, entries, learners);
  return {
    stand: stand.name,
    fault: fault.name,
    accepted: entries.filter(({ first }) => first !== null).length,
    refused,
    acceptedAfterMs: acceptedAfter(ledger, over),
    drainedAfterMs,
    doubled: found.doubled,
    lost: found.lost + lost,
    differences: [...found.differences, ...faulty],
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
    name: `event-${number}-${i}`,
    seed: Math.floor(random() * 2 ** 32),
  }));
}

/** @throws where nothing was accepted any more */
function acceptedAfter({ accepted }: Ledger, over: number): number {
  const after = accepted.filter(({ sentAt }) => sentAt >= over).map(({ heardAt }) => heardAt - over);
  if (after.length === 0) throw new Error('no answer was accepted after the fault');
  return after.reduce((least, ms) => Math.min(least, ms));
}
