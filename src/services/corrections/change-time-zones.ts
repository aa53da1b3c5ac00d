/**
 * Moves the answers of a tenant's learners to their days in a new time zone. Each learner changes in one transaction
 * and counts new answers in the previous zone until then. A run that was killed continues with the remaining learners.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Compute } from '../../compute/compute.js';
import { waitForAll } from '../../concurrency.js';
import type { LearnerId } from '../../contracts/learners/learner-name.js';
import { ApiError } from '../../errors.js';
import { computeSum } from '../../lists.js';
import type { Logger } from '../../logger.js';
import type { TimeZoneChange, TimeZoneStore } from '../../store/catalogue/time-zones.js';
import { maxRewrittenAnswers, rewritesPerStatement } from '../../store/corrections/rewrites.js';
import type { CorrectionWarehouse } from '../../warehouse/maintenance/correction-warehouse.js';
import type { FactsHistory } from '../../warehouse/reads/facts-history.js';
import { type StorageWaitPorts, waitUntilStored } from '../outbox/wait-until-stored.js';
import { type LearnerHistoryPorts, readLearnerHistory } from './retract-answer.js';

export interface TimeZonePorts extends LearnerHistoryPorts, StorageWaitPorts {
  readonly timeZones: Pick<TimeZoneStore, 'listOpen' | 'update'>;
  readonly scanLearners: (tenant: string) => AsyncIterable<readonly LearnerId[]>;
  readonly partitionOf: (tenant: string, userId: string) => number;
  /** In the outbox of a partition. */
  readonly countPendingRows: (partition: number) => Promise<number>;
  readonly rewriter: Pick<Compute, 'changeTimeZone'>;
  readonly history: Pick<FactsHistory, 'recordTimeZone'>;
  readonly warehouse: Pick<CorrectionWarehouse, 'dropCopies'>;
  readonly logger: Logger;
}

/** A commit with this many answers blocks Redis for about 20 ms. */
const answersPerCommit = 2000;
/** A worker that still has the previous zone creates no learner after this time. */
const settleMs = 5000;
const pauseMs = 500;
const maxPasses = 100;

/** A tenant whose change fails does not block the others. */
export async function changeTimeZones(ports: TimeZonePorts, signal: AbortSignal): Promise<void> {
  const moves: Promise<void>[] = [];
  for (const [tenant, change] of await ports.timeZones.listOpen()) {
    const move = createZoneMove(ports, tenant, change, signal).run();
    moves.push(move);
    await Promise.allSettled([move]);
  }
  await waitForAll(moves);
}

interface MovingLearner {
  readonly userId: string;
  readonly attempts: number;
}

function createZoneMove(ports: TimeZonePorts, tenant: string, change: TimeZoneChange, signal: AbortSignal) {
  const { timeZones, learners, rewriter, history, warehouse, now, logger } = ports;
  const { timeZone, requestedAt } = change;
  let current: TimeZoneChange | null = change;

  /** `current` becomes null if another change replaced this one, or if Redis was emptied. */
  async function save(next: Partial<TimeZoneChange>): Promise<void> {
    const changed: TimeZoneChange = { ...(current as TimeZoneChange), ...next };
    current = (await timeZones.update(tenant, current as TimeZoneChange, changed)) ? changed : null;
  }

  async function moveBatch(partition: number, batch: readonly MovingLearner[]): Promise<void> {
    signal.throwIfAborted();
    await waitForRoom(ports, partition, signal);
    const read = async ({ userId }: MovingLearner) => ({
      userId,
      ...(await readLearnerHistory(ports, tenant, userId)),
    });
    const found = await Promise.all(batch.map((one) => read(one).catch(ignoreErased)));
    const histories = found.filter((one) => one !== null);
    const task = { kind: 'time zone', tenant, partition, timeZone, learners: histories } as const;
    const { statuses } = await rewriter.changeTimeZone(task);
    const moved = statuses.filter((status) => status === 'done').length;
    if (current !== null && moved > 0) await save({ learners: current.learners + moved });
  }

  /** @returns number of learners who had another zone */
  async function moveLearners(): Promise<number> {
    const batches = new Map<number, MovingLearner[]>();
    let found = 0;
    for await (const ids of ports.scanLearners(tenant)) {
      const states = await Promise.all(ids.map(({ userId }) => learners.readState(tenant, userId)));
      for (const [i, { userId }] of ids.entries()) {
        const state = states[i] ?? null;
        if (state === null || state.timeZone === timeZone || isTooLong(state.attempts)) continue;
        found += 1;
        const partition = ports.partitionOf(tenant, userId);
        const batch = [...(batches.get(partition) ?? []), { userId, attempts: state.attempts }];
        const isComplete = isFull(batch);
        batches.set(partition, isComplete ? [] : batch);
        if (isComplete) await moveBatch(partition, batch);
        if (current === null) return found;
      }
    }
    for (const [partition, batch] of batches)
      if (batch.length > 0 && current !== null) await moveBatch(partition, batch);
    return found;
  }

  async function run(): Promise<void> {
    // The process that set the zone may have died in between.
    await history.recordTimeZone(tenant, change);
    for (let passes = 1; current !== null; passes++) {
      const startedAt = now();
      const found = await moveLearners();
      if (found === 0 && startedAt - requestedAt >= settleMs) break;
      if (passes === maxPasses)
        throw new Error(`${found} learners have incomplete answers or changed too often`);
      await sleep(pauseMs, undefined, { signal });
    }
    await waitUntilStored(ports);
    if (current === null) return;
    await save({ doneAt: now() });
    // A rebuild needs the copies if Redis was emptied.
    if (current === null) return;
    await warehouse.dropCopies(tenant);
    logger.info({ tenant, time_zone: timeZone, learners: current?.learners }, 'time zone changed');
  }
  return { run };
}

/** The learner may have been erased since the scan. */
function ignoreErased(error: unknown): null {
  if (error instanceof ApiError && error.status === 404) return null;
  throw error;
}

const isTooLong = (attempts: number): boolean => attempts > maxRewrittenAnswers;

const isFull = (batch: readonly MovingLearner[]): boolean =>
  batch.length === rewritesPerStatement ||
  computeSum(batch.map(({ attempts }) => attempts)) >= answersPerCommit;

const maxPendingRows = 5000;

/** New answers wait behind rewritten ones. */
async function waitForRoom(
  { countPendingRows }: TimeZonePorts,
  partition: number,
  signal: AbortSignal,
): Promise<void> {
  while ((await countPendingRows(partition)) > maxPendingRows) await sleep(pauseMs, undefined, { signal });
}
