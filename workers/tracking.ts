/**
 * Counts a batch of answers: load the learners' states, trace the answers in order, commit everything of a
 * learner in one atomic step. Another process may have written a learner in between; then the batch's answers of
 * that learner are computed again from what is there now.
 */
import type {
  TrackEvent,
  TrackOutcome,
  TrackReply,
  TrackTask,
  WorkerSettings,
} from '../src/contracts/tasks.js';
import type { TenantModel } from '../src/domain/tenant-model.js';
import { ApiError } from '../src/errors.js';
import type { RedisClient } from '../src/store/client.js';
import { hashEventId } from '../src/store/event-ids.js';
import { hashItem } from '../src/store/item-id.js';
import { partitionOf } from '../src/store/keys.js';
import {
  type CommitStatus,
  commitLearners,
  countKnownSkills,
  type LoadedLearner,
  loadLearners,
  readLearners,
} from '../src/store/learner-store.js';
import type { ModelCache } from '../src/store/model-cache.js';
import type { ItemTable } from './item-table.js';
import type { KnownSkills } from './known-skills.js';
import { type AllSkills, type LearnerPlan, type LearnerWork, needsAllSkills, planLearner } from './plan.js';

export interface TrackContext {
  readonly client: RedisClient;
  readonly settings: WorkerSettings;
  readonly knownSkills: KnownSkills;
  readonly models: ModelCache;
  readonly items: ItemTable;
}

/** How often a learner's answers are computed again because somebody else wrote the learner first. */
const maxTries = 40;

/** @throws ApiError UNAVAILABLE when Redis does not serve: what was committed until then is not known */
export async function trackBatch(context: TrackContext, task: TrackTask): Promise<TrackReply> {
  const events = JSON.parse(task.events) as TrackEvent[];
  const reply = createReply(events.length);
  let open = groupByLearner(events, context.settings.partitions);
  for (let tries = 0; open.length > 0 && tries < maxTries; tries++) {
    open = await trackOnce(context, task, open, reply);
  }
  for (const work of open) reply.refuse(work, 'This learner is written by too many requests at once');
  return reply.result;
}

interface ReplyBuilder {
  readonly result: TrackReply;
  settle(work: LearnerWork, plan: LearnerPlan): void;
  refuse(work: LearnerWork, reason: string): void;
  fail(work: LearnerWork, error: unknown): void;
}

function createReply(events: number): ReplyBuilder {
  const result: TrackReply = { outcomes: new Array(events), data: new Array(events) };
  const set = (place: number, outcome: TrackOutcome, data: string): void => {
    result.outcomes[place] = outcome;
    result.data[place] = data;
  };
  return {
    result,
    settle: (work, plan) => {
      work.events.forEach(({ place }, i) => {
        const told = plan.told[i];
        if (told !== undefined) set(place, told.outcome, told.data);
      });
    },
    refuse: (work, reason) => {
      for (const { place } of work.events) set(place, 'unavailable', reason);
    },
    fail: (work, error) => {
      const cause = error instanceof Error ? (error.stack ?? error.message) : String(error);
      for (const { place } of work.events) set(place, 'failed', cause);
    },
  };
}

function groupByLearner(events: readonly TrackEvent[], partitions: number): LearnerWork[] {
  const works = new Map<string, LearnerWork>();
  events.forEach((event, place) => {
    const { tenant, userId, eventId } = event;
    const key = `${tenant}:${userId}`;
    let work = works.get(key);
    if (work === undefined) {
      work = { partition: partitionOf(tenant, userId, partitions), tenant, userId, events: [] };
      works.set(key, work);
    }
    const idHash = eventId === null ? null : hashEventId(tenant, userId, eventId);
    work.events.push({ place, event, idHash });
  });
  return [...works.values()];
}

/** One try for all open learners; returns those that somebody else wrote meanwhile. */
async function trackOnce(
  context: TrackContext,
  task: TrackTask,
  open: readonly LearnerWork[],
  reply: ReplyBuilder,
): Promise<LearnerWork[]> {
  const plans = await planEach(context, task, open, reply);
  await context.knownSkills.add(
    context.client,
    plans.flatMap(({ plan }) => plan.newSkills),
  );
  const writing = plans.filter(({ plan }) => plan.commit !== null);
  const statuses = await commitPlans(context, task, writing);
  const again: LearnerWork[] = [];
  for (const planned of plans) {
    const { work } = planned;
    const status = statuses.get(work) ?? 'committed';
    if (status === 'committed') settle(context, planned, reply);
    else if (status === 'conflict') again.push(work);
    else reply.refuse(work, refusals[status]);
  }
  return again;
}

const refusals: Record<Exclude<CommitStatus, 'committed' | 'conflict'>, string> = {
  'outbox-full': 'Too many answers wait to be stored; try again later',
  'not-restored': 'The state store came back empty and has to be rebuilt first',
};

interface Planned {
  readonly work: LearnerWork;
  readonly plan: LearnerPlan;
  /** Of the tenant's model. */
  readonly modelVersion: number;
}

/** Tells what became of a learner's answers, and notes what they say about their items. */
function settle({ items }: TrackContext, { work, plan, modelVersion }: Planned, reply: ReplyBuilder): void {
  for (const delta of plan.itemAnswers) items.count(work.tenant, modelVersion, delta);
  reply.settle(work, plan);
}

/**
 * A learner whose record cannot be read fails alone: nothing is written yet, so the others are planned again, one
 * by one.
 */
async function planEach(
  context: TrackContext,
  task: TrackTask,
  open: readonly LearnerWork[],
  reply: ReplyBuilder,
): Promise<Planned[]> {
  try {
    return await planAll(context, task, open, reply);
  } catch (error) {
    if (error instanceof ApiError) throw error;
    if (open.length > 1) {
      return (await Promise.all(open.map((work) => planEach(context, task, [work], reply)))).flat();
    }
    for (const work of open) reply.fail(work, error);
    return [];
  }
}

async function planAll(
  context: TrackContext,
  task: TrackTask,
  open: readonly LearnerWork[],
  reply: ReplyBuilder,
): Promise<Planned[]> {
  const queries = open.map(queryOf);
  const [loaded, models] = await Promise.all([
    loadLearners(context.client, queries, task.importId),
    loadModels(context, open),
  ]);
  const all = await allSkills(
    context.client,
    open.filter((work, i) => needsAllSkills((loaded[i] as LoadedLearner).learner, work)),
  );
  return open.flatMap((work, i) => {
    const model = models.get(work.tenant) as TenantModel | ApiError;
    if (model instanceof ApiError) {
      reply.refuse(work, model.message);
      return [];
    }
    const query = queries[i] as ReturnType<typeof queryOf>;
    const plan = planLearner(work, query, loaded[i] as LoadedLearner, {
      model,
      findItem: (itemId) => context.items.find(work.tenant, model.version, itemId),
      all: all.get(work) ?? null,
      acceptNewIds: task.acceptNewIds,
    });
    return [{ work, plan, modelVersion: model.version }];
  });
}

function queryOf({ partition, tenant, userId, events }: LearnerWork) {
  const items = distinct(events.flatMap(({ event }) => event.itemId ?? []));
  return {
    partition,
    tenant,
    userId,
    skillIds: distinct(events.map(({ event }) => event.skillId)),
    eventIds: events.flatMap(({ idHash }) => (idHash === null ? [] : [idHash])),
    items,
    itemIds: items.map(hashItem),
  };
}

const distinct = (texts: readonly string[]): string[] => [...new Set(texts)];

/** The models of all tenants in the batch; one tenant's that cannot be used must not refuse the answers of others. */
async function loadModels(
  context: TrackContext,
  open: readonly LearnerWork[],
): Promise<Map<string, TenantModel | ApiError>> {
  const byTenant = new Map<string, TenantModel | ApiError>();
  const tenants = distinct(open.map(({ tenant }) => tenant));
  await Promise.all(
    tenants.map(async (tenant) => {
      const works = open.filter((work) => work.tenant === tenant);
      byTenant.set(tenant, await loadModel(context, tenant, works).catch(asRefusal));
    }),
  );
  return byTenant;
}

function asRefusal(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  throw error;
}

/** The tenant's model, once everything is known of the items too. */
async function loadModel(
  { models, items }: TrackContext,
  tenant: string,
  works: readonly LearnerWork[],
): Promise<TenantModel> {
  const model = await models.get(tenant);
  const itemIds = works.flatMap(({ events }) => events.flatMap(({ event }) => event.itemId ?? []));
  await items.load(tenant, model.version, distinct(itemIds));
  return model;
}

/** Of the learners who need them, seldom many: one read for all of them, one count for each tenant. */
async function allSkills(
  client: RedisClient,
  works: readonly LearnerWork[],
): Promise<ReadonlyMap<LearnerWork, AllSkills>> {
  if (works.length === 0) return new Map();
  const tenants = distinct(works.map(({ tenant }) => tenant));
  const [wholes, counts] = await Promise.all([
    readLearners(client, works),
    Promise.all(tenants.map((tenant) => countKnownSkills(client, tenant))),
  ]);
  return new Map(
    works.map((work, i) => {
      const knownSkills = counts[tenants.indexOf(work.tenant)] as number;
      return [work, { skills: wholes[i]?.skills ?? new Map(), knownSkills }];
    }),
  );
}

async function commitPlans(
  { client, settings }: TrackContext,
  task: TrackTask,
  writing: readonly Planned[],
): Promise<Map<LearnerWork, CommitStatus>> {
  if (writing.length === 0) return new Map();
  const commits = writing.flatMap(({ plan }) => (plan.commit === null ? [] : [plan.commit]));
  const statuses = await commitLearners(client, commits, task.importId, settings.outboxBound);
  return new Map(writing.map(({ work }, i) => [work, statuses[i] as CommitStatus]));
}
