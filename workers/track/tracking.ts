/**
 * Counts a batch: loads learners, applies their events in order, and commits. Retries after concurrent
 * writes.
 */
import type {
  TrackOutcome,
  TrackReply,
  TrackTask,
  WorkerSettings,
} from '../../src/contracts/worker-tasks.js';
import type { TenantModel } from '../../src/domain/catalogue/tenant-model.js';
import { ApiError } from '../../src/errors.js';
import { distinct, groupBy, groupByPartition } from '../../src/lists.js';
import { runInSlices } from '../../src/slices.js';
import { recordTiming, type StepTiming, unixMs } from '../../src/spans.js';
import { countCommonSkills } from '../../src/store/catalogue/registered-skills.js';
import type { ServedModels } from '../../src/store/catalogue/served-models.js';
import type { LoadedLearner } from '../../src/store/learners/learner-commands.js';
import { readPacked } from '../../src/store/learners/learner-reads.js';
import {
  type CommitStatus,
  type LoadedBatch,
  UnwatchedError,
  WatchedLearners,
} from '../../src/store/learners/watched-learners.js';
import { isCluster, type RedisClient } from '../../src/store/redis/client.js';
import type { HotConnections } from '../../src/store/redis/hot-connection.js';
import type { ItemTable } from './item-table.js';
import type { KnownSkills } from './known-skills.js';
import { type AllSkills, type LearnerPlan, needsAllSkills, type PlanContext, planLearner } from './plan.js';
import { groupByLearner, type LearnerWork, type PlacedEvent, readEvents } from './read-events.js';
import { createReply, type ReplyBuilder } from './results.js';

type LoadedTenant = Pick<PlanContext, 'model' | 'wanted'>;

interface TrackTools {
  /** @throws ApiError UNAVAILABLE */
  readonly redis: () => Promise<RedisClient>;
  /** Reserved for this task. */
  readonly hot: HotConnections;
  readonly isAlone: () => boolean;
  readonly settings: WorkerSettings;
  readonly knownSkills: KnownSkills;
  readonly models: ServedModels;
  /** Used if the types are not loaded with the learners. @throws ApiError UNAVAILABLE */
  readonly askWanted: (tenant: string) => Promise<string>;
  readonly items: ItemTable;
  readonly outboxBound: () => number;
}

/** Attempts per learner while concurrent writes invalidate the WATCH. */
const maxTries = 40;

/** Redis blocks during a transaction. With 512 events an answer cost 10 % more. */
const maxTogether = 128;
/** Leaves time for single answers between commits (ADR 30), at 14 % higher cost. */
const maxBeside = 32;

/** If the task fails as a whole, every event gets the error. */
export async function trackBatch(tools: TrackTools, task: TrackTask): Promise<TrackReply> {
  const [start, steps] = [unixMs(), task.isTimed ? [] : null];
  const reply = createReply();
  const events: PlacedEvent[] = [];
  const counts = await runInSlices(readEvents(task, tools.settings.partitions, events, reply));
  const batch = new Batch(tools, task.importId, reply, steps);
  for (let at = 0, end = 0; at < events.length; at = end) {
    end = at + stepOf(tools, task, events.length);
    await batch.track(events.slice(at, end));
  }
  const done = reply.reply(counts);
  return steps ? { ...done, times: { start, end: unixMs(), steps } } : done;
}

function stepOf({ isAlone }: TrackTools, { form, importId }: TrackTask, events: number): number {
  // The import's feeder relies on one commit per task (services/import/feeder.ts).
  if (importId !== null) return events;
  return form === 'event' || isAlone() ? maxTogether : maxBeside;
}

const refusals = {
  'outbox-full': 'Too many answers wait to be stored; try again later',
  'not-restored': 'The state store came back empty and has to be rebuilt first',
};

class Batch {
  constructor(
    private readonly tools: TrackTools,
    private readonly importId: string | null,
    private readonly reply: ReplyBuilder,
    private readonly steps: StepTiming[] | null,
  ) {}

  async track(events: readonly PlacedEvent[]): Promise<void> {
    const works = groupByLearner(events, this.tools.settings.partitions);
    try {
      const client = await this.tools.redis();
      // On a Cluster, a transaction covers one partition and fails alone if its node is unavailable.
      const groups = isCluster(client) ? [...groupByPartition(works).values()] : [works];
      await Promise.all(groups.map((group) => this.trackLearners(client, group, 0)));
    } catch (error) {
      this.refuse(works, error);
    }
  }

  /** After a Redis error the transaction may be committed or not. @throws any other error */
  private refuse(works: readonly LearnerWork[], error: unknown): void {
    if (!(error instanceof ApiError)) throw error;
    this.settleAll(works, 'unavailable', error.message);
  }

  private settleAll(works: readonly LearnerWork[], outcome: TrackOutcome, data: string): void {
    for (const { events } of works) for (const { place } of events) this.reply.set(place, outcome, data);
  }

  /**
   * After a conflict, retries each half: a learner with constant writes delays few others and is finally
   * alone.
   */
  private async trackLearners(
    client: RedisClient,
    works: readonly LearnerWork[],
    tries: number,
  ): Promise<void> {
    if (tries === maxTries)
      return this.settleAll(works, 'unavailable', 'This learner is written by too many requests at once');
    let again: readonly LearnerWork[] = [];
    try {
      again = await this.tryLearners(client, works);
    } catch (error) {
      if (error instanceof UnwatchedError) again = works;
      else this.refuse(works, error);
    }
    const middle = Math.ceil(again.length / 2);
    for (const half of [again.slice(0, middle), again.slice(middle)])
      if (half.length > 0) await this.trackLearners(client, half, tries + 1);
  }

  /** @returns learners with a conflict @throws WatchLostError, ApiError */
  private async tryLearners(client: RedisClient, works: readonly LearnerWork[]): Promise<LearnerWork[]> {
    const { hot, outboxBound, knownSkills } = this.tools;
    const connection = await hot.forPartition((works[0] as LearnerWork).partition);
    const session = new WatchedLearners(connection, { importId: this.importId, outboxBound: outboxBound() });
    const plans = await this.planEach(client, session, works);
    await knownSkills.note(
      client,
      plans.flatMap(({ newSkills }) => newSkills),
    );
    const commits = plans.flatMap(({ commit }) => commit ?? []);
    const statuses = await recordTiming(this.steps, 'commit', () => session.commit(commits));
    const again: LearnerWork[] = [];
    let committed = 0;
    for (const plan of plans) {
      const status = plan.commit === null ? 'committed' : (statuses[committed++] as CommitStatus);
      if (status === 'committed') this.settle(plan);
      else if (status === 'conflict') again.push(plan.work);
      else this.settleAll([plan.work], 'unavailable', refusals[status]);
    }
    return again;
  }

  private settle({ work, outcomes, itemAnswers, modelVersion }: LearnerPlan): void {
    for (const delta of itemAnswers) this.tools.items.count(work.tenant, modelVersion, delta);
    work.events.forEach(({ place }, i) => {
      const { outcome, data } = outcomes[i] as LearnerPlan['outcomes'][number];
      this.reply.set(place, outcome, data);
    });
  }

  /** Nothing is written yet: if one learner is unreadable, plans each separately. */
  private async planEach(
    client: RedisClient,
    session: WatchedLearners,
    works: readonly LearnerWork[],
  ): Promise<LearnerPlan[]> {
    try {
      return await this.planAll(client, session, works);
    } catch (error) {
      if (error instanceof ApiError || error instanceof UnwatchedError) throw error;
      if (works.length > 1)
        return (await Promise.all(works.map((work) => this.planEach(client, session, [work])))).flat();
      const reason = error instanceof Error ? (error.stack ?? error.message) : String(error);
      this.settleAll(works, 'failed', reason);
      return [];
    }
  }

  private async planAll(
    client: RedisClient,
    session: WatchedLearners,
    works: readonly LearnerWork[],
  ): Promise<LearnerPlan[]> {
    const { items, knownSkills } = this.tools;
    const loading = recordTiming(this.steps, 'load', () => session.load(works));
    // On a Cluster, another node has the tenants' data, which is read in parallel.
    const read = session.readsTenants ? loading : Promise.resolve(null);
    const [{ learners: loaded }, tenants] = await Promise.all([loading, this.loadTenants(works, read)]);
    const all = await allSkills(
      client,
      works.filter((work, i) => needsAllSkills((loaded[i] as LoadedLearner).learner, work)),
    );
    const rooms = await knownSkills.rooms(client, works, loaded);
    const plans: LearnerPlan[] = [];
    for (const [i, work] of works.entries()) {
      const tenant = tenants.get(work.tenant) as LoadedTenant | ApiError;
      if (tenant instanceof ApiError) this.refuse([work], tenant);
      else
        plans.push(
          // A spread doubled the time of a plan.
          planLearner(work, loaded[i] as LoadedLearner, {
            model: tenant.model,
            wanted: tenant.wanted,
            findItem: (itemId) => items.find(work.tenant, tenant.model.version, itemId),
            all: all.get(work),
            room: rooms.get(work),
          }),
        );
    }
    return plans;
  }

  /** One tenant's failure does not affect others. */
  private async loadTenants(works: readonly LearnerWork[], read: Promise<LoadedBatch | null>) {
    const loading = [...groupBy(works, ({ tenant }) => tenant)].map(async ([tenant, own]) => {
      const itemIds = distinct(own.flatMap(({ itemTexts }) => itemTexts));
      const loaded = Promise.all([this.loadModel(tenant, itemIds, read), this.wantedOf(tenant, read)]);
      const known = loaded.then(([model, wanted]): LoadedTenant => ({ model, wanted }));
      const orRefusal = known.catch((error: unknown) => {
        if (error instanceof ApiError) return error;
        throw error;
      });
      return [tenant, await orRefusal] as const;
    });
    return new Map(await Promise.all(loading));
  }

  /** An import sends no webhook events. */
  private async wantedOf(tenant: string, read: Promise<LoadedBatch | null>): Promise<string> {
    if (this.importId !== null) return '';
    const batch = await read;
    return batch?.wanted?.get(tenant) ?? this.tools.askWanted(tenant);
  }

  /** Loads the items of the last known version in parallel with the model. */
  private async loadModel(
    tenant: string,
    itemIds: readonly string[],
    read: Promise<LoadedBatch | null>,
  ): Promise<TenantModel> {
    const { models, items } = this.tools;
    const [model, loaded] = await Promise.all([
      read.then((batch) => models.get(tenant, batch?.marks?.get(tenant))),
      models.version(tenant).then((version) => items.load(tenant, version, itemIds).then(() => version)),
    ]);
    if (model.version !== loaded) await items.load(tenant, model.version, itemIds);
    return model;
  }
}

async function allSkills(
  client: RedisClient,
  works: readonly LearnerWork[],
): Promise<ReadonlyMap<LearnerWork, AllSkills>> {
  if (works.length === 0) return new Map();
  const tenants = distinct(works.map(({ tenant }) => tenant));
  const [packed, counts] = await Promise.all([
    readPacked(client, works),
    Promise.all(tenants.map((tenant) => countCommonSkills(client, tenant))),
  ]);
  return new Map(
    works.map((work, i) => {
      const knownSkills = counts[tenants.indexOf(work.tenant)] as number;
      return [work, { skills: new Map(packed[i]?.unpack()?.skills), knownSkills }];
    }),
  );
}
