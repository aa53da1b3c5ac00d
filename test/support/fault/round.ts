/** One round of a fault test: clients post answers during a fault, then all stores must agree with their ledger. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ClickHouseClient } from '@clickhouse/client';
import { callerOf, type JsonAnswer } from '../http/http.js';
import { isLongForm } from '../runner/long-form.js';
import type { Scoped } from '../scope.js';
import { askUntil, waitFor } from '../wait.js';
import { startClients } from './clients.js';
import { compareStores, resendAll } from './compare.js';
import type { Deployment } from './deployment.js';
import type { Fault } from './faults.js';
import { type AnswerEvent, confirm, createEntry, type Entry } from './ledger.js';
import { compareDays, setTimeZone, timeZonesChanged, timeZonesOf } from './time-zones.js';

export interface RoundOptions {
  readonly deployment: Deployment;
  readonly clickhouse: ClickHouseClient;
  readonly countOutbox: () => Promise<number>;
  readonly fault: Fault;
  /** Names the learners of the round. */
  readonly number: number;
  readonly random: () => number;
}

const skills = ['algebra', 'geometry', 'reading', 'writing'];
const [answersBefore, answersAfter] = [40, 25];
/** Includes stalled drain jobs and pauses between attempts. */
const limitMs = 180_000;

/** @returns in a passed round, `lost` and `doubled` are 0, and `differences` is empty */
export async function runRound(t: Scoped, options: RoundOptions) {
  const { deployment, clickhouse, countOutbox, fault, number, random } = options;
  const learners = Array.from({ length: 16 }, (_, i) => `round${number}-learner${i}`);
  const erased = `round${number}-erased`;
  const [tenant = ''] = deployment.tenants;
  const caller = callerOf(deployment, tenant);
  const post = (events: readonly AnswerEvent[]): Promise<JsonAnswer> =>
    retryUntil(() => caller.trackAll(events), isOk);
  const timeZones = timeZonesOf(number);
  const changeTimeZone = (i: number): Promise<void> =>
    setTimeZone(deployment, deployment.tenants[i] as string, timeZones[i] as string);
  await Promise.all([0, 1].map(changeTimeZone));
  await post(createAnswers(erased, 'before', answersBefore));
  const clients = startClients(t, {
    ...{ port: deployment.port, tenants: deployment.tenants, learners, skills, loops: isLongForm ? 24 : 12 },
    hangUps: fault.clients === 'hang up' ? 0.3 : 0,
    maxBatch: fault.clients === 'flood' ? 1000 : 30,
    maxRetractions: 4,
    name: `event-${number}`,
    seed: Math.floor(random() * 2 ** 32),
  });
  await sleep(1000 + 2000 * random());

  let statusUrl = '';
  /** Erases the learner during the fault, and posts the answers of a new history, which must remain. */
  const erase = async (): Promise<Entry[]> => {
    const request = { method: 'DELETE', path: `/api/v1/learners/${erased}` };
    const { json } = await retryUntil(
      () => caller.call(request),
      ({ status }) => status === 202,
    );
    statusUrl = json.data.status_url;
    const entries = createAnswers(erased, 'after', answersAfter).map((event) => createEntry(tenant, event));
    confirmAll(entries, await post(entries.map(({ event }) => event)));
    return entries;
  };
  const erasing = erase();
  erasing.catch(() => undefined);
  const changing = changeTimeZone(2);
  changing.catch(() => undefined);
  await fault.inflict(deployment, random);
  const over = Date.now();
  const [learner = ''] = learners;
  const probed = { user_id: learner, skill_id: 'probe', is_correct: true, event_id: 'probe' };
  const probe = createEntry(tenant, probed);
  confirmAll([probe], await post([probe.event]));
  const acceptedAfterMs = Date.now() - over;
  await sleep(1000);
  const ledger = await clients.stop();
  const entries = [...ledger.entries, probe, ...(await erasing)];

  await changing;
  await timeZonesChanged(deployment);
  const changedAfterMs = Date.now() - over;
  const isDrained = async (): Promise<boolean> => (await countOutbox().catch(() => null)) === 0;
  await waitFor('an empty outbox', isDrained, limitMs);
  const drainedAfterMs = Date.now() - over;
  await retryUntil(
    () => caller.get(statusUrl),
    ({ status, json }) => status === 200 && json.data.status === 'done',
  );
  const lost = await resendAll(deployment, entries);
  if (lost > 0) await waitFor('an empty outbox after the repeats', isDrained, limitMs);
  const found = await compareStores(deployment, clickhouse, entries, [...learners, erased]);
  const days = await compareDays(deployment, clickhouse, timeZones, [...learners, erased]);
  const differences = [...found.differences, ...days, ...ledger.invalid];
  if (fault.clients === 'flood' && ledger.retried === 0)
    differences.push('the full outbox rejected no answer');
  const accepted = entries.filter(({ first }) => first !== null).length;
  const { doubled } = found;
  const severalSkills = entries.filter(({ event }) => event.skill_ids !== undefined).length;
  return {
    accepted,
    severalSkills,
    acceptedAfterMs,
    changedAfterMs,
    drainedAfterMs,
    lost: found.lost + lost,
    doubled,
    differences,
  };
}

const isOk = ({ status }: JsonAnswer): boolean => status === 200;

function confirmAll(entries: readonly Entry[], { json }: JsonAnswer): void {
  entries.forEach((entry, i) => {
    const { data, replayed } = json.data.results[i];
    confirm(entry, data, replayed === true);
  });
}

const createAnswers = (learner: string, name: string, count: number): AnswerEvent[] =>
  Array.from({ length: count }, (_, i) => ({
    user_id: learner,
    ...(i % 3 === 0 ? { skill_ids: skills.slice(i % 2, 4) } : { skill_id: skills[i % 2] as string }),
    is_correct: i % 3 > 0,
    item_id: `item-${i}`,
    event_id: `${name}-${i}`,
  }));

/** Retries after lost connections as well. */
async function retryUntil(
  send: () => Promise<JsonAnswer>,
  isWanted: (response: JsonAnswer) => boolean,
): Promise<JsonAnswer> {
  const trySend = () => send().catch(() => null);
  const isDone = (response: JsonAnswer | null) => response !== null && isWanted(response);
  return (await askUntil('a successful response', trySend, isDone)) as JsonAnswer;
}
