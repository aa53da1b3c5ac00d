/** Piscina entry: replays a learner without one answer, and writes what comes out. */
import { workerData } from 'node:worker_threads';
import { type AttemptRow, encodeAttemptRow } from '../src/contracts/attempt-row.js';
import { decodeAttemptRow } from '../src/contracts/attempt-row-reader.js';
import type { TakeBackReply, TakeBackTask } from '../src/contracts/take-back-tasks.js';
import type { WorkerSettings } from '../src/contracts/tasks.js';
import { dayOf } from '../src/domain/base/days.js';
import { modelVersion } from '../src/domain/base/params.js';
import type { ReplayedStates } from '../src/domain/history/replay.js';
import { type RewrittenRow, takeBack } from '../src/domain/history/take-back.js';
import { countKnownSkills } from '../src/store/catalogue/known-skills.js';
import { commitTakeBack, type TakeBackCommit } from '../src/store/corrections/take-back-store.js';
import { hashEventId } from '../src/store/learners/event-ids.js';
import { readIds } from '../src/store/learners/learner-reads.js';
import { decodeSnapshot } from '../src/store/learners/snapshot-codec.js';
import type { RedisClient } from '../src/store/redis/client.js';
import { partitionOf } from '../src/store/redis/keys.js';
import { createItemTable } from './track/item-table.js';
import { createWorkerModels } from './track/models.js';
import { tellRefusal, workerRedis } from './track/redis.js';
import { rowFigures } from './track/told.js';

const settings = workerData as WorkerSettings;
const redis = workerRedis(settings);
const models = createWorkerModels(redis, 'take-back worker');
const items = createItemTable(redis, Date.now);

export default (task: TakeBackTask): Promise<TakeBackReply> =>
  tellRefusal(redis().then((client) => takeBackIn(client, task)));

async function takeBackIn(client: RedisClient, task: TakeBackTask): Promise<TakeBackReply> {
  const history = historyOf(task);
  if (history === null) return { status: 'incomplete' };
  const { from, rows, covered } = history;
  const place = rows.findLastIndex(({ event }) => event.eventId === task.eventId);
  const taken = rows[place];
  if (taken === undefined)
    return { status: covered.some(({ event }) => event.eventId === task.eventId) ? 'archived' : 'absent' };
  // What is left would begin with the snapshot alone, whose version nobody could write anew.
  if (from !== null && rows.length === 1) return { status: 'archived' };
  const commit = await commitOf(client, task, history, place);
  const status = await commitTakeBack(client, commit, settings.outboxBound);
  return status === 'done' ? { status, skillId: taken.event.skillId } : { status };
}

interface History {
  readonly from: ReplayedStates | null;
  /** In order, without gaps, up to the learner's last. */
  readonly rows: readonly AttemptRow[];
  /** Those that the state has: their commit began in a month that is dropped. */
  readonly covered: readonly AttemptRow[];
}

/** Null where a row is missing. */
function historyOf({ waiting, stored, snapshot, attempts }: TakeBackTask): History | null {
  const bySeq = new Map<number, AttemptRow>();
  for (const line of [...waiting, ...stored.split('\n')]) {
    if (line === '') continue;
    const row = decodeAttemptRow(line);
    const { learnerSeq } = row.figures;
    if (learnerSeq <= attempts && !bySeq.has(learnerSeq)) bySeq.set(learnerSeq, row);
  }
  const snapshotted = snapshot === null ? null : decodeSnapshot(snapshot);
  // A rebuild keeps its ability, which the rows before it would not give again.
  const isKept = snapshotted !== null && snapshotted.learner.abilityVersion !== modelVersion;
  const from = bySeq.size === attempts && !isKept ? null : snapshotted;
  const first = (from?.learner.attempts ?? 0) + 1;
  const rows: AttemptRow[] = [];
  for (let seq = first; seq <= attempts; seq++) {
    const row = bySeq.get(seq);
    if (row === undefined) return null;
    rows.push(row);
  }
  const covered = [...bySeq.values()].filter(({ figures }) => figures.learnerSeq < first);
  return { from, rows, covered };
}

async function commitOf(
  client: RedisClient,
  { tenant, userId, version, baselineTotal }: TakeBackTask,
  { from, rows }: History,
  place: number,
): Promise<TakeBackCommit> {
  const taken = rows[place] as AttemptRow;
  const partition = partitionOf(tenant, userId, settings.partitions);
  const model = await models.get(tenant);
  await items.load(tenant, model.version, itemIdsOf(rows.slice(place)));
  const newVersion = version + 1;
  const { rewritten, states } = takeBack(rows, from, place, {
    model,
    findItem: (itemId) => items.find(tenant, model.version, itemId),
    knownSkills: await countKnownSkills(client, tenant),
    baselineTotal,
    version: newVersion,
  });
  const { event, figures } = taken;
  const old = [taken, ...rewritten.map(({ row }) => row)];
  const eventId = event.eventId as string;
  return {
    partition,
    expectedVersion: version,
    correction: {
      v: 1,
      kind: 'rewrite',
      tenant,
      userId,
      fromSeq: least(old.map((row) => row.figures.learnerSeq)),
      takenBackDay: figures.learnerVersion > 0 ? dayOf(event.receivedAt) : null,
    },
    answer: {
      tenant,
      userId,
      eventId,
      skillId: event.skillId,
      learnerSeq: figures.learnerSeq,
      receivedAt: event.receivedAt,
      firstAnswer: await rememberedOf(client, { partition, tenant, userId }, eventId),
    },
    states,
    rows: rewritten.map(encodeRewritten),
    month: least(old.map((row) => monthOf(row.event.receivedAt))),
    arrivalDays: rewritten
      .filter(({ row, learnerVersion }) => row.figures.learnerVersion === 0 && learnerVersion > 0)
      .map(({ row }) => dayOf(row.event.receivedAt)),
  };
}

/** Of as many as there are answers: more than a call takes. */
const least = (numbers: readonly number[]): number => numbers.reduce((a, b) => Math.min(a, b));

const itemIdsOf = (rows: readonly AttemptRow[]): string[] => [
  ...new Set(rows.flatMap(({ event }) => event.itemId ?? [])),
];

function encodeRewritten(rewritten: RewrittenRow<AttemptRow>): string {
  const { row, conditions, effect, advice, learnerSeq, learnerVersion, baselineTotal } = rewritten;
  const { eventFingerprint } = row.figures;
  const place = { learnerSeq, baselineTotal, eventFingerprint, learnerVersion };
  return encodeAttemptRow(row.event, rowFigures(effect, advice, place), conditions);
}

function monthOf(ms: number): number {
  const date = new Date(ms);
  return 100 * date.getUTCFullYear() + date.getUTCMonth() + 1;
}

/** The first answer to the event, in base64; empty where its id is forgotten. */
async function rememberedOf(
  client: RedisClient,
  place: { readonly partition: number; readonly tenant: string; readonly userId: string },
  eventId: string,
): Promise<string> {
  const id = hashEventId(eventId);
  return (await readIds(client, place, [id])).find(id, Date.now() / 1000)?.toString('base64') ?? '';
}
