/** Piscina entry: replays learners, then restores them or compares them with Redis. */
import { workerData } from 'node:worker_threads';
import { type AttemptRow, decodeAttemptRow } from '../src/contracts/answers/attempt-row.js';
import { type LearnerId, learnerName } from '../src/contracts/learners/learner-name.js';
import type {
  CompareReply,
  CompareTask,
  RestoreReply,
  RestoreTask,
} from '../src/contracts/rebuild/rebuild-tasks.js';
import { utc } from '../src/domain/base/calendar.js';
import type { ReplayedStates } from '../src/domain/history/replay.js';
import { computeSum, groupBy } from '../src/lists.js';
import {
  emptyIds,
  encodeFirstResult,
  fingerprintFromNumber,
  hashEventId,
  openIds,
} from '../src/store/learners/event-ids.js';
import { parseLearners, replayLearner, type StoredLearner } from '../src/store/learners/stored-learners.js';
import {
  describeDifference,
  readLearnerDumps,
  writeReplayedLearners,
} from '../src/store/rebuild/learner-writes.js';
import { partitionOf } from '../src/store/redis/keys.js';
import { toResultFigures } from './track/results.js';
import { connectWorkerRedis, convertApiError } from './track/worker-redis.js';

interface RebuildSettings {
  readonly redisUrl: string;
  readonly waitReplicas: number;
  readonly timeZones: ReadonlyMap<string, string>;
}
const settings = workerData as RebuildSettings;
const redis = connectWorkerRedis(settings);

const maxReportedNames = 10;

export default (task: RestoreTask | CompareTask): Promise<object> =>
  convertApiError<object>(task.kind === 'restore' ? restore(task) : compare(task));

const toLearnerName = ({ tenant, userId }: LearnerId): string => learnerName(tenant, userId);

/** @param idsFrom Unix second of the oldest event id to restore */
function replayWithIds(learner: StoredLearner, partitions: number, idsFrom = Number.POSITIVE_INFINITY) {
  const { tenant, userId, answers } = learner;
  const ids = openIds(emptyIds);
  const result = replayLearner(learner, ({ event, figures }, { effect, advice }) => {
    if (event.eventId === null || event.receivedAt < 1000 * idsFrom) return;
    const fingerprint = fingerprintFromNumber(figures.eventFingerprint);
    const answer = encodeFirstResult(
      toResultFigures(event.skillIds, effect, advice),
      fingerprint,
      event.receivedAt,
    );
    ids.add(hashEventId(event.eventId), answer, Math.floor(event.receivedAt / 1000));
  });
  const partition = partitionOf(tenant, userId, partitions);
  const states = learner.rows.length > 0 ? result.states : inCurrentZone(result.states, tenant);
  return { broken: result.broken, states, tenant, userId, partition, answers, ids: ids.changes() };
}

/** A snapshot has the zone of its time. Rows have the zone of the last change. */
const inCurrentZone = (states: ReplayedStates, tenant: string): ReplayedStates => ({
  ...states,
  learner: { ...states.learner, timeZone: settings.timeZones.get(tenant) ?? utc },
});

async function restore({ rows, partitions, idsFromSecond }: RestoreTask): Promise<RestoreReply> {
  const learners = Array.from(parseLearners(rows), (learner) =>
    replayWithIds(learner, partitions, idsFromSecond),
  );
  await writeReplayedLearners(await redis(), learners);
  const broken = learners.filter((learner) => learner.broken > 0);
  return {
    ...countTotals(learners),
    brokenLearners: broken.slice(0, maxReportedNames).map(toLearnerName),
    brokenCount: broken.length,
  };
}

const countTotals = (learners: readonly { readonly answers: number }[]) => ({
  learners: learners.length,
  answers: computeSum(learners.map(({ answers }) => answers)),
});

/** Reads Redis after the rows: a learner who answers in between is ahead. */
async function compare({
  rows,
  partitions,
  pendingRows,
  expectedLearners,
}: CompareTask): Promise<CompareReply> {
  const learners = Array.from(withPendingRows(parseLearners(rows), pendingRows), (one) =>
    replayWithIds(one, partitions),
  );
  const dumps = await readLearnerDumps(await redis(), learners);
  const names = new Set(learners.map(toLearnerName));
  const withoutRows = expectedLearners.filter((learner) => !names.has(toLearnerName(learner)));
  const differences = withoutRows.map((learner) => ({
    learner: toLearnerName(learner),
    what: 'is missing in ClickHouse',
  }));
  const learnersAhead: LearnerId[] = [];
  for (const [i, { tenant, userId, states }] of learners.entries()) {
    const what = describeDifference(states, dumps[i] ?? null);
    if (what === 'ahead') learnersAhead.push({ tenant, userId });
    else if (what !== null) differences.push({ learner: learnerName(tenant, userId), what });
  }
  return { ...countTotals(learners), differences, learnersAhead };
}

/** Pending rows may repeat stored rows. */
function* withPendingRows(
  learners: Iterable<StoredLearner>,
  pendingRows: readonly string[],
): Generator<StoredLearner> {
  const rowsByLearner = groupBy(pendingRows.map(decodeAttemptRow), ({ event }) => toLearnerName(event));
  const sortBySeq = (rows: AttemptRow[]): AttemptRow[] =>
    rows.sort((a, b) => a.figures.learnerSeq - b.figures.learnerSeq);
  for (const learner of learners) {
    const rows = rowsByLearner.get(toLearnerName(learner)) ?? [];
    rowsByLearner.delete(toLearnerName(learner));
    yield rows.length === 0 ? learner : { ...learner, rows: sortBySeq([...learner.rows, ...rows]) };
  }
  for (const rows of rowsByLearner.values()) {
    const { tenant, userId } = (rows[0] as AttemptRow).event;
    yield { tenant, userId, from: null, rows: sortBySeq(rows), answers: rows.length };
  }
}
