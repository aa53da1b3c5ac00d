/**
 * Restores Redis from ClickHouse: every learner by replay, and all that only Redis knew. What tells that Redis may be
 * used comes last, so that a service beside it answers 503 until then. A run that dies is taken up by the next at the
 * last learner that is known to be there; everything may be written twice.
 */
import { modelVersion } from '../../domain/base/params.js';
import type { DeploymentFacts } from './deployment-facts.js';
import type { Checkpoint, RebuildSource, RebuildStore, RebuildThreads, SharedState } from './ports.js';
import { restoreLearners } from './restore-learners.js';
import { restoreShared, restoreTenants } from './restore-shared.js';

export interface RebuildParts {
  readonly source: RebuildSource;
  readonly store: RebuildStore;
  /** Opened where learners are to be restored. */
  readonly openThreads: () => RebuildThreads;
}

export interface RebuildOptions {
  /** Event ids are remembered this long, in seconds. */
  readonly idWindowSeconds: number;
  /** Partitions of a deployment from before ClickHouse was told of it. */
  readonly defaultPartitions: number;
  readonly now: () => number;
  /** @throws Error where somebody else rebuilds now, or the run is to end */
  readonly check: () => void;
  readonly onProgress: (progress: RebuildProgress) => void;
}

export interface RebuildProgress {
  readonly step: string;
  readonly answers: number;
  /** Answers to be replayed. */
  readonly total: number;
}

export interface RebuildResult {
  readonly partitions: number;
  readonly learners: number;
  readonly answers: number;
  /** Answers that an earlier run had restored. */
  readonly resumedAfter: number;
  readonly seconds: number;
  /** How long the replay took of them. */
  readonly replaySeconds: number;
  /** Learners whose rows are not without gaps and doubles, and some of their names. */
  readonly brokenCount: number;
  readonly broken: readonly string[];
  /** Keys whose hashes cannot be read, because the password of ClickHouse is another one now. */
  readonly unreadableKeys: number;
  /** Learners whose abilities are those of a snapshot of earlier formulas. */
  readonly keptAbilities: number;
  /** Baselines that were taken anew, because rows have those of earlier formulas. */
  readonly newBaselines: number;
}

/** A rebuild that cannot be made; the message is for the user. */
export class RebuildError extends Error {
  override readonly name = 'RebuildError';
}

/** @returns null where nothing is to be restored. @throws RebuildError, and what source, store and threads throw */
export async function rebuild(parts: RebuildParts, options: RebuildOptions): Promise<RebuildResult | null> {
  const { source, store } = parts;
  const since = performance.now();
  // Marks that were moved aside come back also where there is nothing else.
  if ((await store.partitions()) === null && !(await source.holdsState())) return null;
  const facts = await factsOf(parts, options);
  const missing = await store.lost(facts.partitions);
  const shared = await lostShared(parts);
  if (missing.length === 0 && shared.length === 0 && (await store.partitions()) !== null) return null;
  const begun = await begin(parts, options, missing, shared);
  // Baselines that are taken anew look at them.
  await restoreTenants(parts, options, begun);
  const { checkpoint, ...replayed } = await restoreLearners(parts, options, facts.partitions, begun);
  await restoreTakenBack(parts, checkpoint, facts.partitions);
  const unreadableKeys = await restoreShared(parts, options, checkpoint, facts.partitions);
  options.check();
  await store.finish(checkpoint, facts);
  const { learners, answers, keptAbilities, newBaselines } = checkpoint;
  const seconds = (performance.now() - since) / 1000;
  return {
    partitions: checkpoint.partitions.length,
    learners,
    answers,
    keptAbilities,
    newBaselines,
    resumedAfter: begun.answers,
    seconds,
    ...replayed,
    unreadableKeys,
  };
}

/** Ids of answers that were taken back stay taken; the others came with their learners. */
async function restoreTakenBack(
  { source, store }: RebuildParts,
  { partitions, idsFrom }: Checkpoint,
  count: number,
): Promise<void> {
  for await (const ids of source.takenBack(idsFrom)) await store.putTakenBack(ids, partitions, count);
}

/** What belongs to no partition and is missing; what was never there is not. */
async function lostShared({ source, store }: RebuildParts): Promise<SharedState[]> {
  const has: Readonly<Record<SharedState, () => Promise<boolean>>> = {
    keys: async () => (await source.keys()).keys.length > 0,
    catalogues: async () => (await source.catalogue()).length > 0,
    models: async () => (await source.modelChanges()).length > 0,
  };
  const missing = await store.lostShared();
  const lost = await Promise.all(missing.map((name) => has[name]()));
  // Items have their counters without any published model.
  if ((await store.partitions()) === null) return missing;
  return missing.filter((_, i) => lost[i]);
}

/** The deployment as it was; one of before it was recorded had the default size, which its rows must show. */
async function factsOf(
  { source, store }: RebuildParts,
  { defaultPartitions, now }: RebuildOptions,
): Promise<DeploymentFacts> {
  const recorded = await source.deployment();
  const partitions = (await store.partitions()) ?? recorded?.partitions ?? defaultPartitions;
  if (!store.agrees(await source.samplePlaces(), partitions))
    throw new RebuildError(
      `the rows in ClickHouse are not those of a deployment of ${partitions} partitions: is it the right database?`,
    );
  const createdAt = new Date(now()).toISOString();
  return { deploymentId: `rebuilt-${now()}`, createdAt, ...recorded, partitions };
}

/** Where an earlier run stopped, if it was about the same; else from the start. */
async function begin(
  { store }: RebuildParts,
  { idWindowSeconds, now }: RebuildOptions,
  partitions: readonly number[],
  shared: Checkpoint['shared'],
): Promise<Checkpoint> {
  const found = await store.checkpoint();
  const isOurs = found?.v === 3 && found.modelVersion === modelVersion;
  if (isOurs && found.partitions.join() === partitions.join()) return found;
  const counted = await store.counted(partitions);
  const checkpoint: Checkpoint = {
    v: 3,
    modelVersion,
    partitions,
    shared,
    counted,
    idsFrom: Math.floor(now() / 1000) - idWindowSeconds,
    after: null,
    learnersDone: false,
    learners: 0,
    answers: 0,
    keptAbilities: 0,
    newBaselines: 0,
  };
  await store.save(checkpoint);
  return checkpoint;
}
