/** Piscina entry: replays learners without one answer or in another time zone, and commits the results. */
import { workerData } from 'node:worker_threads';
import { type AttemptRow, decodeAttemptRow, encodeAttemptRow } from '../src/contracts/answers/attempt-row.js';
import type {
  LearnerHistory,
  RetractionResult,
  RetractionTask,
  RewriteStatus,
  TimeZoneReply,
  TimeZoneTask,
} from '../src/contracts/corrections/rewrite-tasks.js';
import { encodeRetractionRow } from '../src/contracts/journal/journal.js';
import type { WorkerSettings } from '../src/contracts/settings/worker-settings.js';
import { toMonth, toUtcDay } from '../src/domain/base/common.js';
import { formulaVersion } from '../src/domain/base/formula-version.js';
import {
  type RewriteContext,
  type RewrittenHistory,
  type RewrittenRow,
  replayInTimeZone,
  replayWithout,
} from '../src/domain/history/replay.js';
import { createLogger } from '../src/logger.js';
import { countCommonSkills } from '../src/store/catalogue/registered-skills.js';
import { createServedModels } from '../src/store/catalogue/served-models.js';
import { commitRewrites, type Rewrite } from '../src/store/corrections/rewrites.js';
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
const models = createServedModels(redis, createLogger('info', 'rewrite worker'));
const items = createItemCache(redis);

export default (task: RetractionTask | TimeZoneTask): Promise<object> =>
  convertApiError<object>(
    redis().then<object>((client) =>
      task.kind === 'retraction' ? retract(client, task) : changeTimeZone(client, task),
    ),
  );

async function retract(client: RedisClient, task: RetractionTask): Promise<RetractionResult> {
  const { tenant, userId, eventId, version } = task;
  const history = assembleHistory(task);
  if (history === null) return { status: 'incomplete' };
  const { from, rows, covered } = history;
  const hasEventId = ({ event }: AttemptRow): boolean => event.eventId === eventId;
  const answerIndex = rows.findLastIndex(hasEventId);
  const answer = rows[answerIndex];
  if (answer === undefined) return { status: covered.some(hasEventId) ? 'archived' : 'absent' };
  // Only the snapshot would remain, and no row could carry the new learner version to a rebuild.
  if (from !== null && rows.length === 1) return { status: 'archived' };
  const context = await loadContext(client, tenant, rows.slice(answerIndex), version);
  const replayed = replayWithout(rows, from, answerIndex, context);
  const takenBackDay = toUtcDay(answer.event.receivedAt);
  const rewrite = buildRewrite(task, replayed, [answer], takenBackDay);
  const partition = partitionOf(tenant, userId, settings.partitions);
  const id = hashEventId(eventId);
  const ids = await readEventIds(client, { partition, tenant, userId }, [id]);
  const { skillIds, receivedAt } = answer.event;
  const journalRow = encodeRetractionRow({
    ...{ tenant, userId, eventId, skillId: skillIds[0], learnerSeq: answer.figures.learnerSeq, receivedAt },
    firstAnswer: ids.find(id, Date.now() / 1000)?.toString('base64') ?? '',
  });
  const commit = [client, partition, [rewrite], settings.maxOutboxRows, journalRow] as const;
  const [status = 'conflict'] = await commitRewrites(...commit);
  return status === 'done' ? { status, skillIds } : { status };
}

async function changeTimeZone(client: RedisClient, task: TimeZoneTask): Promise<TimeZoneReply> {
  const { tenant, partition, timeZone, learners } = task;
  const rewrites: Rewrite[] = [];
  const statuses: RewriteStatus[] = learners.map(() => 'incomplete');
  const places: number[] = [];
  for (const [place, { userId, ...history }] of learners.entries()) {
    const found = assembleHistory(history);
    if (found === null) continue;
    const context = await loadContext(client, tenant, found.rows, history.version);
    const replayed = replayInTimeZone(found.rows, found.from, timeZone, context);
    rewrites.push(buildRewrite({ tenant, userId, version: history.version }, replayed, [], null));
    places.push(place);
  }
  const committed = await commitRewrites(client, partition, rewrites, settings.maxOutboxRows);
  for (const [i, place] of places.entries()) statuses[place] = committed[i] as RewriteStatus;
  return { statuses };
}

/** @returns null if a row is missing. `covered`: rows that the snapshot already contains */
function assembleHistory({ outboxRows, storedRows, snapshot, attempts }: LearnerHistory) {
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

/** @param rows that may change */
async function loadContext(
  client: RedisClient,
  tenant: string,
  rows: readonly AttemptRow[],
  version: number,
): Promise<RewriteContext> {
  const model = await models.get(tenant);
  const itemIds = new Set(rows.flatMap(({ event }) => event.itemId ?? []));
  await items.load(tenant, model.version, [...itemIds]);
  return {
    ...{ model, version: version + 1, registeredSkills: await countCommonSkills(client, tenant) },
    findItem: (itemId) => items.find(tenant, model.version, itemId),
  };
}

function buildRewrite(
  { tenant, userId, version }: Pick<RetractionTask, 'tenant' | 'userId' | 'version'>,
  { rewritten, states }: RewrittenHistory<AttemptRow>,
  removed: readonly AttemptRow[],
  takenBackDay: number | null,
): Rewrite {
  const affected = [...removed, ...rewritten.map(({ row }) => row)];
  const fromSeq = findMinimum(
    affected.map((row) => row.figures.learnerSeq),
    1,
  );
  return {
    ...{ expectedVersion: version, states, rows: rewritten.map(encodeRewrittenRow) },
    correction: { v: 1, kind: 'rewrite', tenant, userId, fromSeq, takenBackDay },
    month: findMinimum(
      affected.map((row) => toMonth(row.event.receivedAt)),
      Number.MAX_SAFE_INTEGER,
    ),
  };
}

/** Math.min fails with this many arguments. */
const findMinimum = (numbers: readonly number[], ofNone: number): number =>
  numbers.length === 0 ? ofNone : numbers.reduce((a, b) => Math.min(a, b));

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
