/** Piscina entry: replays a learner without one answer and commits the result. */
import { workerData } from 'node:worker_threads';
import { type AttemptRow, decodeAttemptRow, encodeAttemptRow } from '../src/contracts/answers/attempt-row.js';
import type {
  RetractionReply,
  RetractionResult,
  RetractionTask,
} from '../src/contracts/corrections/retraction-task.js';
import type { WorkerSettings } from '../src/contracts/settings/worker-settings.js';
import { toDay, toMonth } from '../src/domain/base/common.js';
import { formulaVersion } from '../src/domain/base/formula-version.js';
import { type RewrittenRow, replayWithout } from '../src/domain/history/replay.js';
import { createLogger } from '../src/logger.js';
import { countCommonSkills } from '../src/store/catalogue/registered-skills.js';
import { createServedModels } from '../src/store/catalogue/served-models.js';
import { commitRetraction, type Retraction } from '../src/store/corrections/retraction.js';
import { hashEventId } from '../src/store/learners/event-ids.js';
import { readEventIds } from '../src/store/learners/learner-reads.js';
import { decodeSnapshot } from '../src/store/learners/learner-snapshot.js';
import type { RedisClient } from '../src/store/redis/connection/client.js';
import { partitionOf } from '../src/store/redis/keys.js';
import { createItemCache } from './track/item-cache.js';
import { toAttemptFigures } from './track/results.js';
import { connectWorkerRedis, convertApiError } from './track/worker-redis.js';

const settings = workerData as WorkerSettings;
const redis = connectWorkerRedis(settings);
const models = createServedModels(redis, createLogger('info', 'retraction worker'));
const items = createItemCache(redis);

export default (task: RetractionTask): Promise<RetractionReply> =>
  convertApiError(redis().then((client) => retract(client, task)));

async function retract(client: RedisClient, task: RetractionTask): Promise<RetractionResult> {
  const history = assembleHistory(task);
  if (history === null) return { status: 'incomplete' };
  const { from, rows, covered } = history;
  const hasEventId = ({ event }: AttemptRow): boolean => event.eventId === task.eventId;
  const answerIndex = rows.findLastIndex(hasEventId);
  const answer = rows[answerIndex];
  if (answer === undefined) return { status: covered.some(hasEventId) ? 'archived' : 'absent' };
  // Only the snapshot would remain, and no row could carry the new learner version to a rebuild.
  if (from !== null && rows.length === 1) return { status: 'archived' };
  const commit = await buildRetraction(client, task, history, answerIndex, answer);
  const status = await commitRetraction(client, commit, settings.maxOutboxRows);
  return status === 'done' ? { status, skillIds: answer.event.skillIds } : { status };
}

/** @returns null if a row is missing. `covered`: rows that the snapshot already contains */
function assembleHistory({ outboxRows, storedRows, snapshot, attempts }: RetractionTask) {
  const bySeq = new Map<number, AttemptRow>();
  for (const line of [...outboxRows, ...storedRows.split('\n')]) {
    if (line === '') continue;
    const row = decodeAttemptRow(line);
    const { learnerSeq } = row.figures;
    if (learnerSeq <= attempts && !bySeq.has(learnerSeq)) bySeq.set(learnerSeq, row);
  }
  const snapshotStates = snapshot === null ? null : decodeSnapshot(snapshot);
  // A rebuild starts from the snapshot's ability. A replay of all rows would differ.
  const needsSnapshot = snapshotStates !== null && snapshotStates.learner.abilityVersion !== formulaVersion;
  const from = bySeq.size === attempts && !needsSnapshot ? null : snapshotStates;
  const firstSeq = (from?.learner.attempts ?? 0) + 1;
  const rows = Array.from({ length: attempts + 1 - firstSeq }, (_, i) => bySeq.get(firstSeq + i));
  if (!rows.every((row) => row !== undefined)) return null;
  const covered = [...bySeq.values()].filter(({ figures }) => figures.learnerSeq < firstSeq);
  return { from, rows, covered };
}

async function buildRetraction(
  client: RedisClient,
  { tenant, userId, eventId, version }: RetractionTask,
  { from, rows }: NonNullable<ReturnType<typeof assembleHistory>>,
  answerIndex: number,
  answer: AttemptRow,
): Promise<Retraction> {
  const partition = partitionOf(tenant, userId, settings.partitions);
  const model = await models.get(tenant);
  const itemIds = new Set(rows.slice(answerIndex).flatMap(({ event }) => event.itemId ?? []));
  await items.load(tenant, model.version, [...itemIds]);
  const { rewritten, states } = replayWithout(rows, from, answerIndex, {
    ...{ model, version: version + 1 },
    findItem: (itemId) => items.find(tenant, model.version, itemId),
    registeredSkills: await countCommonSkills(client, tenant),
  });
  const { skillIds, receivedAt } = answer.event;
  const { learnerSeq } = answer.figures;
  const affectedRows = [answer, ...rewritten.map(({ row }) => row)];
  const fromSeq = findMinimum(affectedRows.map((row) => row.figures.learnerSeq));
  const id = hashEventId(eventId);
  const firstResult = (await readEventIds(client, { partition, tenant, userId }, [id])).find(
    id,
    Date.now() / 1000,
  );
  return {
    ...{ partition, expectedVersion: version, states, rows: rewritten.map(encodeRewrittenRow) },
    correction: { v: 1, kind: 'rewrite', tenant, userId, fromSeq, takenBackDay: toDay(receivedAt) },
    answer: {
      ...{ tenant, userId, eventId, skillId: skillIds[0], learnerSeq, receivedAt },
      firstAnswer: firstResult?.toString('base64') ?? '',
    },
    month: findMinimum(affectedRows.map((row) => toMonth(row.event.receivedAt))),
  };
}

/** Math.min fails with this many arguments. */
const findMinimum = (numbers: readonly number[]): number => numbers.reduce((a, b) => Math.min(a, b));

function encodeRewrittenRow(rewritten: RewrittenRow<AttemptRow>): string {
  const { row, conditions, effect, advice, learnerSeq, learnerVersion, baselineTotal } = rewritten;
  const { eventFingerprint } = row.figures;
  const learnerFigures = { learnerSeq, baselineTotal, eventFingerprint, learnerVersion };
  return encodeAttemptRow(
    row.event,
    toAttemptFigures(effect, conditions, advice, learnerFigures),
    conditions,
  );
}
