/**
 * Counts a batch of answers: load the learners' states, trace the answers in order, commit everything of a
 * learner in one atomic step. Where another process wrote a learner in between, its answers are computed again.
 */

import type { TrackReply, TrackTask, WorkerSettings } from '../../src/contracts/tasks.js';
import type { TenantModel } from '../../src/domain/catalogue/tenant-model.js';
import { ApiError } from '../../src/errors.js';
import { byPartition, distinct } from '../../src/lists.js';
import { inSlices } from '../../src/slices.js';
import type { ServedModels } from '../../src/store/catalogue/catalogue-cache.js';
import { countKnownSkills } from '../../src/store/catalogue/known-skills.js';
import type { LoadedLearner } from '../../src/store/learners/learner-commands.js';
import { readPacked } from '../../src/store/learners/learner-reads.js';
import {
  type CommitStatus,
  type LoadedBatch,
  UnwatchedError,
  type WatchedLearners,
  watchLearners,
} from '../../src/store/learners/watched-learners.js';
import { isCluster, type RedisClient } from '../../src/store/redis/client.js';
import type { HotConnection, HotConnections } from '../../src/store/redis/hot-connection.js';
import type { ItemTable } from './item-table.js';
import { type KnownSkills, roomEnough, skillRooms } from './known-skills.js';
import {
  type AllSkills,
  groupByLearner,
  type LearnerPlan,
  type LearnerWork,
  needsAllSkills,
  type PlacedEvent,
  planLearner,
} from './plan.js';
import { readEvents } from './read-events.js';
import { createReply, type ReplyBuilder } from './track-reply.js';

/** Where models and what is known of items come from. */
export interface ModelSources {
  readonly models: ServedModels;
  readonly items: ItemTable;
}

/**
 * The models of all tenants in the batch; one tenant's that cannot be used must not refuse the answers of others.
 *
 * @param marks of the tenants' catalogues, once they were read with the learners; null where they are not
 */
async function loadModels(
  sources: ModelSources,
  open: readonly LearnerWork[],
  marks: Promise<LoadedBatch['marks']>,
): Promise<Map<string, TenantModel | ApiError>> {
  const byTenant = new Map<string, TenantModel | ApiError>();
  const tenants = distinct(open.map(({ tenant }) => tenant));
  await Promise.all(
    tenants.map(async (tenant) => {
      const works = open.filter((work) => work.tenant === tenant);
      const mark = marks.then((all) => all?.get(tenant));
      byTenant.set(tenant, await loadModel(sources, tenant, works, mark).catch(asRefusal));
    }),
  );
  return byTenant;
}

function asRefusal(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  throw error;
}

/** The tenant's model, once everything is known of the items too: these are loaded while the mark is. */
async function loadModel(
  { models, items }: ModelSources,
  tenant: string,
  works: readonly LearnerWork[],
  mark: Promise<string | undefined>,
): Promise<TenantModel> {
  const itemIds = itemIdsOf(works);
  const load = async (version: number): Promise<number> => {
    if (itemIds.length > 0) await items.load(tenant, version, itemIds);
    return version;
  };
  const [model, loaded] = await Promise.all([
    mark.then((known) => models.get(tenant, known)),
    models.version(tenant).then(load),
  ]);
  if (model.version !== loaded) await load(model.version);
  return model;
}

function itemIdsOf(works: readonly LearnerWork[]): string[] {
  const itemIds = new Set<string>();
  for (const { events } of works)
    for (const { event } of events) if (event.itemId !== null) itemIds.add(event.itemId);
  return [...itemIds];
}

/** Of the learners who need them, seldom many: one read for all of them, one count for each tenant. */
async function allSkills(
  client: RedisClient,
  works: readonly LearnerWork[],
): Promise<ReadonlyMap<LearnerWork, AllSkills>> {
  if (works.length === 0) return new Map();
  const tenants = distinct(works.map(({ tenant }) => tenant));
  const [packed, counts] = await Promise.all([
    readPacked(client, works),
    Promise.all(tenants.map((tenant) => countKnownSkills(client, tenant))),
  ]);
  return new Map(
    works.map((work, i) => {
      const knownSkills = counts[tenants.indexOf(work.tenant)] as number;
      return [work, { skills: new Map(packed[i]?.unpack()?.skills), knownSkills }];
    }),
  );
}

export interface TrackTools extends ModelSources {
  /** @throws ApiError UNAVAILABLE */
  readonly redis: () => Promise<RedisClient>;
  /** For this task alone. */
  readonly hot: HotConnections;
  /** Whether the thread has no other task. */
  readonly isAlone: () => boolean;
  readonly settings: WorkerSettings;
  readonly knownSkills: KnownSkills;
  /** Most rows that a partition's outbox may hold right now. */
  readonly outboxBound: () => number;
}

interface TrackContext extends TrackTools {
  readonly client: RedisClient;
  readonly importId: string | null;
}

/** A try. */
interface Try extends TrackContext {
  readonly connection: HotConnection;
  readonly session: WatchedLearners;
}

/** How often a learner's answers are computed, again and again where somebody else wrote a learner of the try first. */
const maxTries = 40;

/**
 * Most events that are loaded and committed together: Redis does nothing else meanwhile. More save nothing (measured:
 * with 512 an answer of a batch took a tenth more, for what a transaction holds must be kept until its end).
 */
const maxTogether = 128;
/**
 * Of a batch beside others' single answers: between two steps the thread has time for these
 * (docs/adr/0030-nobody-holds-up-others.md). Alone it takes the larger steps, which cost a seventh less.
 */
const maxBeside = 32;

/** Counts the answers of a task. Where it is refused as a whole, each of its events gets the error. */
export async function trackBatch(tools: TrackTools, task: TrackTask): Promise<TrackReply> {
  const reply = createReply();
  const events: PlacedEvent[] = [];
  const counts = await inSlices(readEvents(task, tools.settings.partitions, events, reply));
  for (let at = 0, end = 0; at < events.length; at = end) {
    end = at + stepOf(tools, task, events.length);
    await trackEvents(tools, task, events.slice(at, end), reply);
  }
  return reply.reply(counts);
}

function stepOf({ isAlone }: TrackTools, { form, importId }: TrackTask, events: number): number {
  // What an import sends is one step: the feeder builds on it (services/import/feeder.ts).
  if (importId !== null) return events;
  return form === 'event' || isAlone() ? maxTogether : maxBeside;
}

async function trackEvents(
  tools: TrackTools,
  task: TrackTask,
  events: readonly PlacedEvent[],
  reply: ReplyBuilder,
): Promise<void> {
  const works = groupByLearner(events, tools.settings.partitions);
  try {
    const client = await tools.redis();
    const context = { ...tools, client, importId: task.importId };
    // A transaction on a Cluster is one partition's. Each stands alone there, for its node may be unavailable.
    const groups = isCluster(client) ? [...byPartition(works).values()] : [works];
    await Promise.all(groups.map((group) => trackLearners(context, group, 0, reply)));
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    for (const work of works) reply.refuse(work, error.message);
  }
}

/**
 * Counts the answers of some learners in one step, or of none: then one half after the other, for who wrote a learner of
 * the one may go on doing so, and is not to hold up the other. In the end such a learner is alone, read and written
 * within a millisecond; of others that wanted the same one has always come through.
 *
 * @param tries there were before, of each of these learners
 */
async function trackLearners(
  context: TrackContext,
  works: readonly LearnerWork[],
  tries: number,
  reply: ReplyBuilder,
): Promise<void> {
  if (tries === maxTries) {
    for (const work of works) reply.refuse(work, 'This learner is written by too many requests at once');
    return;
  }
  const again = await tryLearners(context, works, reply);
  for (const half of halvesOf(again)) await trackLearners(context, half, tries + 1, reply);
}

function halvesOf(works: readonly LearnerWork[]): (readonly LearnerWork[])[] {
  const middle = Math.ceil(works.length / 2);
  return [works.slice(0, middle), works.slice(middle)].filter(({ length }) => length > 0);
}

/** @returns those that have to be tried again */
async function tryLearners(
  context: TrackContext,
  works: readonly LearnerWork[],
  reply: ReplyBuilder,
): Promise<readonly LearnerWork[]> {
  try {
    const { importId, hot, outboxBound } = context;
    const connection = await hot.of((works[0] as LearnerWork).partition);
    const session = watchLearners(connection, { importId, outboxBound: outboxBound() });
    return await trackOnce({ ...context, connection, session }, works, reply);
  } catch (error) {
    if (error instanceof UnwatchedError) return works;
    // Redis does not serve: whether these are committed is not known.
    if (!(error instanceof ApiError)) throw error;
    for (const work of works) reply.refuse(work, error.message);
    return [];
  }
}

/** One try for all; returns those of a transaction that was refused. */
async function trackOnce(
  context: Try,
  open: readonly LearnerWork[],
  reply: ReplyBuilder,
): Promise<LearnerWork[]> {
  const plans = await planEach(context, open, reply);
  await context.knownSkills.add(context.client, plans);
  const statuses = await context.session.commit(plans.flatMap(({ plan }) => plan.commit ?? []));
  const again: LearnerWork[] = [];
  let committed = 0;
  for (const planned of plans) {
    const { work, plan } = planned;
    // Of whom nothing was counted there is nothing to write.
    const status = plan.commit === null ? 'committed' : (statuses[committed++] as CommitStatus);
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

/** Returns the results of a learner's answers, and notes what they say about their items. */
function settle({ items }: TrackContext, { work, plan, modelVersion }: Planned, reply: ReplyBuilder): void {
  for (const delta of plan.itemAnswers) items.count(work.tenant, modelVersion, delta);
  reply.settle(work, plan);
}

/**
 * A learner whose record cannot be read fails alone: nothing is written yet, so the others are planned again, one
 * by one.
 */
async function planEach(context: Try, open: readonly LearnerWork[], reply: ReplyBuilder): Promise<Planned[]> {
  try {
    return await planAll(context, open, reply);
  } catch (error) {
    if (error instanceof ApiError || error instanceof UnwatchedError) throw error;
    if (open.length > 1) {
      return (await Promise.all(open.map((work) => planEach(context, [work], reply)))).flat();
    }
    for (const work of open) reply.fail(work, error);
    return [];
  }
}

async function planAll(context: Try, open: readonly LearnerWork[], reply: ReplyBuilder): Promise<Planned[]> {
  const { connection, session } = context;
  const loading = session.load(open);
  // On a Cluster the catalogues' marks are another node's: they are asked for beside the learners.
  const marks = connection.reachesAll ? loading.then((batch) => batch.marks) : Promise.resolve(null);
  const [{ learners: loaded }, models] = await Promise.all([loading, loadModels(context, open, marks)]);
  const all = await allSkills(
    context.client,
    open.filter((work, i) => needsAllSkills((loaded[i] as LoadedLearner).learner, work)),
  );
  const rooms = await skillRooms(context, open, loaded);
  const planned: Planned[] = [];
  open.forEach((work, i) => {
    const model = models.get(work.tenant) as TenantModel | ApiError;
    if (model instanceof ApiError) {
      reply.refuse(work, model.message);
      return;
    }
    const plan = planLearner(work, loaded[i] as LoadedLearner, {
      model,
      findItem: (itemId) => context.items.find(work.tenant, model.version, itemId),
      all: all.get(work) ?? null,
      room: rooms.get(work) ?? roomEnough,
    });
    planned.push({ work, plan, modelVersion: model.version });
  });
  return planned;
}
