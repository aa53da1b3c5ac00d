/**
 * Counts a batch: loads learners, applies their events in order, and commits. Retries after concurrent
 * writes.
 */
import type { TrackOutcome, TrackReply, TrackTask } from '../../src/contracts/answers/track-task.js';
import type { WorkerSettings } from '../../src/contracts/settings/worker-settings.js';
import type { TenantModel } from '../../src/domain/catalogue/tenant-model.js';
import { ApiError } from '../../src/errors.js';
import { distinct, groupBy, groupByPartition } from '../../src/lists.js';
import { runInSlices } from '../../src/slices.js';
import { recordTiming, type StepTiming, unixMs } from '../../src/spans.js';
import { countCommonSkills } from '../../src/store/catalogue/registered-skills.js';
import type { ServedModels } from '../../src/store/catalogue/served-models.js';
import {
  CommitSession,
  type CommitStatus,
  type LoadedBatch,
  WatchLostError,
} from '../../src/store/learners/commit-session.js';
import type { LoadedLearner } from '../../src/store/learners/learner-commands.js';
import { readPacked } from '../../src/store/learners/learner-reads.js';
import { isCluster, type RedisClient } from '../../src/store/redis/connection/client.js';
import type { HotConnections } from '../../src/store/redis/connection/hot-connection.js';
import type { ItemCache } from './item-cache.js';
import {
  type LearnerPlan,
  type LearnerSkills,
  needsAllSkills,
  type PlanContext,
  planLearner,
} from './plan-learner.js';
import { groupByLearner, type IndexedEvent, type LearnerEvents, readEvents } from './read-events.js';
import { createReplyBuilder, type ReplyBuilder } from './results.js';
import type { SkillRegistry } from './skill-registry.js';

type LoadedTenant = Pick<PlanContext, 'model' | 'subscribedTypes'>;

interface TrackDependencies {
  /** @throws ApiError UNAVAILABLE */
  readonly redis: () => Promise<RedisClient>;
  /** Reserved for this task. */
  readonly hotConnections: HotConnections;
  readonly isOnlyTask: () => boolean;
  readonly settings: WorkerSettings;
  readonly skillRegistry: SkillRegistry;
  readonly models: ServedModels;
  /** Used if the types are not loaded with the learners. @throws ApiError UNAVAILABLE */
  readonly fetchSubscriptions: (tenant: string) => Promise<string>;
  readonly items: ItemCache;
  readonly maxOutboxRows: () => number;
}

/** After this many failed commits, a learner's events are `unavailable`. */
const maxAttempts = 40;

/** Redis blocks during a transaction. With 512 instead of 128 events, an answer cost 10 % more. */
const maxCommitEvents = 128;
/** For a batch while another task runs: leaves time between commits (ADR 30), but an answer costs 14 % more. */
const maxSharedEvents = 32;

/** If the task fails as a whole, every event gets the error. */
export async function trackBatch(dependencies: TrackDependencies, task: TrackTask): Promise<TrackReply> {
  const [start, timings] = [unixMs(), task.isTimed ? [] : null];
  const reply = createReplyBuilder();
  const events: IndexedEvent[] = [];
  const counts = await runInSlices(readEvents(task, dependencies.settings.partitions, events, reply));
  const run = new TaskRun(dependencies, task.importId, reply, timings);
  for (let from = 0, end = 0; from < events.length; from = end) {
    end = from + chooseCommitSize(dependencies, task, events.length);
    await run.track(events.slice(from, end));
  }
  const taskReply = reply.build(counts);
  return timings ? { ...taskReply, times: { start, end: unixMs(), steps: timings } } : taskReply;
}

function chooseCommitSize(
  { isOnlyTask }: TrackDependencies,
  { form, importId }: TrackTask,
  eventCount: number,
): number {
  // The import's feeder relies on one commit per task (src/services/import/feeder.ts).
  if (importId !== null) return eventCount;
  return form === 'event' || isOnlyTask() ? maxCommitEvents : maxSharedEvents;
}

const rejectionMessages = {
  'outbox-full': 'Too many answers are waiting for ClickHouse; retry later.',
  'not-restored': 'Learner state was lost and is not rebuilt yet; retry later.',
};

class TaskRun {
  constructor(
    private readonly dependencies: TrackDependencies,
    private readonly importId: string | null,
    private readonly reply: ReplyBuilder,
    private readonly timings: StepTiming[] | null,
  ) {}

  async track(events: readonly IndexedEvent[]): Promise<void> {
    const learners = groupByLearner(events, this.dependencies.settings.partitions);
    try {
      const client = await this.dependencies.redis();
      // On a Cluster, a transaction covers one partition and fails alone if its node is unavailable.
      const groups = isCluster(client) ? [...groupByPartition(learners).values()] : [learners];
      await Promise.all(groups.map((group) => this.commitWithRetries(client, group, 0)));
    } catch (error) {
      this.rejectUnavailable(learners, error);
    }
  }

  /** After a Redis error the transaction may be committed or not. @throws any other error */
  private rejectUnavailable(learners: readonly LearnerEvents[], error: unknown): void {
    if (!(error instanceof ApiError)) throw error;
    this.setOutcome(learners, 'unavailable', error.message);
  }

  private setOutcome(learners: readonly LearnerEvents[], outcome: TrackOutcome, data: string): void {
    for (const { events } of learners)
      for (const { replyIndex } of events) this.reply.set(replyIndex, outcome, data);
  }

  /** One conflicting learner fails the whole transaction. Halving separates it from the others. */
  private async commitWithRetries(
    client: RedisClient,
    learners: readonly LearnerEvents[],
    failedAttempts: number,
  ): Promise<void> {
    if (failedAttempts === maxAttempts)
      return this.setOutcome(
        learners,
        'unavailable',
        'Too many concurrent requests for this learner; retry with the same event_id.',
      );
    let conflicting: readonly LearnerEvents[] = [];
    try {
      conflicting = await this.tryCommit(client, learners);
    } catch (error) {
      if (error instanceof WatchLostError) conflicting = learners;
      else this.rejectUnavailable(learners, error);
    }
    const middle = Math.ceil(conflicting.length / 2);
    for (const half of [conflicting.slice(0, middle), conflicting.slice(middle)])
      if (half.length > 0) await this.commitWithRetries(client, half, failedAttempts + 1);
  }

  /** @returns learners with a conflict @throws WatchLostError, ApiError */
  private async tryCommit(client: RedisClient, learners: readonly LearnerEvents[]): Promise<LearnerEvents[]> {
    const { hotConnections, maxOutboxRows, skillRegistry } = this.dependencies;
    const connection = await hotConnections.forPartition((learners[0] as LearnerEvents).partition);
    const session = new CommitSession(connection, {
      importId: this.importId,
      maxOutboxRows: maxOutboxRows(),
    });
    const plans = await this.planIsolated(client, session, learners);
    await skillRegistry.register(
      client,
      plans.flatMap(({ newSkills }) => newSkills),
    );
    const commits = plans.flatMap(({ commit }) => commit ?? []);
    const statuses = await recordTiming(this.timings, 'commit', () => session.commit(commits));
    const conflicting: LearnerEvents[] = [];
    let nextStatus = 0;
    for (const plan of plans) {
      const status = plan.commit === null ? 'committed' : (statuses[nextStatus++] as CommitStatus);
      if (status === 'committed') this.reportOutcomes(plan);
      else if (status === 'conflict') conflicting.push(plan.learnerEvents);
      else this.setOutcome([plan.learnerEvents], 'unavailable', rejectionMessages[status]);
    }
    return conflicting;
  }

  private reportOutcomes({ learnerEvents, outcomes, itemDeltas, tenantModelVersion }: LearnerPlan): void {
    for (const delta of itemDeltas)
      this.dependencies.items.addAnswers(learnerEvents.tenant, tenantModelVersion, delta);
    learnerEvents.events.forEach(({ replyIndex }, i) => {
      const { outcome, data } = outcomes[i] as LearnerPlan['outcomes'][number];
      this.reply.set(replyIndex, outcome, data);
    });
  }

  /** If planning throws, plans each learner alone, so that only an unreadable one fails. Nothing is written yet. */
  private async planIsolated(
    client: RedisClient,
    session: CommitSession,
    learners: readonly LearnerEvents[],
  ): Promise<LearnerPlan[]> {
    try {
      return await this.planTogether(client, session, learners);
    } catch (error) {
      if (error instanceof ApiError || error instanceof WatchLostError) throw error;
      if (learners.length > 1)
        return (
          await Promise.all(
            learners.map((learnerEvents) => this.planIsolated(client, session, [learnerEvents])),
          )
        ).flat();
      const reason = error instanceof Error ? (error.stack ?? error.message) : String(error);
      this.setOutcome(learners, 'failed', reason);
      return [];
    }
  }

  private async planTogether(
    client: RedisClient,
    session: CommitSession,
    learners: readonly LearnerEvents[],
  ): Promise<LearnerPlan[]> {
    const { items, skillRegistry } = this.dependencies;
    const loading = recordTiming(this.timings, 'load', () => session.load(learners));
    // On a Cluster, another node has the tenants' data, which is read in parallel.
    const loadedBatch = session.loadsTenants ? loading : Promise.resolve(null);
    const [{ learners: loaded }, tenants] = await Promise.all([
      loading,
      this.loadTenants(learners, loadedBatch),
    ]);
    const learnerSkills = await loadLearnerSkills(
      client,
      learners.filter((learnerEvents, i) =>
        needsAllSkills((loaded[i] as LoadedLearner).learner, learnerEvents),
      ),
    );
    const allowances = await skillRegistry.computeAllowances(client, learners, loaded);
    const plans: LearnerPlan[] = [];
    for (const [i, learnerEvents] of learners.entries()) {
      const tenant = tenants.get(learnerEvents.tenant) as LoadedTenant | ApiError;
      if (tenant instanceof ApiError) this.rejectUnavailable([learnerEvents], tenant);
      else
        plans.push(
          // Field by field: `...tenant` doubled the time of a plan.
          planLearner(learnerEvents, loaded[i] as LoadedLearner, {
            model: tenant.model,
            subscribedTypes: tenant.subscribedTypes,
            findItem: (itemId) => items.find(learnerEvents.tenant, tenant.model.version, itemId),
            learnerSkills: learnerSkills.get(learnerEvents),
            skillAllowance: allowances.get(learnerEvents),
          }),
        );
    }
    return plans;
  }

  /** One tenant's failure does not affect others. */
  private async loadTenants(learners: readonly LearnerEvents[], loadedBatch: Promise<LoadedBatch | null>) {
    const loading = [...groupBy(learners, ({ tenant }) => tenant)].map(async ([tenant, tenantLearners]) => {
      const itemIds = distinct(tenantLearners.flatMap((learner) => learner.itemIds));
      const loaded = Promise.all([
        this.loadModel(tenant, itemIds, loadedBatch),
        this.loadSubscriptions(tenant, loadedBatch),
      ]);
      const loadedTenant = loaded.then(
        ([model, subscribedTypes]): LoadedTenant => ({ model, subscribedTypes }),
      );
      const tenantOrError = loadedTenant.catch((error: unknown) => {
        if (error instanceof ApiError) return error;
        throw error;
      });
      return [tenant, await tenantOrError] as const;
    });
    return new Map(await Promise.all(loading));
  }

  /** An import sends no webhook events. */
  private async loadSubscriptions(tenant: string, loadedBatch: Promise<LoadedBatch | null>): Promise<string> {
    if (this.importId !== null) return '';
    const batch = await loadedBatch;
    return batch?.subscribedTypes?.get(tenant) ?? this.dependencies.fetchSubscriptions(tenant);
  }

  /** Loads the items of the last known version in parallel with the model. */
  private async loadModel(
    tenant: string,
    itemIds: readonly string[],
    loadedBatch: Promise<LoadedBatch | null>,
  ): Promise<TenantModel> {
    const { models, items } = this.dependencies;
    const [model, loadedVersion] = await Promise.all([
      loadedBatch.then((batch) => models.get(tenant, batch?.catalogueMarks?.get(tenant))),
      models.version(tenant).then((version) => items.load(tenant, version, itemIds).then(() => version)),
    ]);
    if (model.version !== loadedVersion) await items.load(tenant, model.version, itemIds);
    return model;
  }
}

async function loadLearnerSkills(
  client: RedisClient,
  learners: readonly LearnerEvents[],
): Promise<ReadonlyMap<LearnerEvents, LearnerSkills>> {
  if (learners.length === 0) return new Map();
  const tenants = distinct(learners.map(({ tenant }) => tenant));
  const [packed, counts] = await Promise.all([
    readPacked(client, learners),
    Promise.all(tenants.map((tenant) => countCommonSkills(client, tenant))),
  ]);
  return new Map(
    learners.map((learnerEvents, i) => {
      const registeredSkills = counts[tenants.indexOf(learnerEvents.tenant)] as number;
      return [learnerEvents, { skills: new Map(packed[i]?.unpack()?.skills), registeredSkills }];
    }),
  );
}
