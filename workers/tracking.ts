/**
 * Counts a batch of answers: load the learners' states, trace the answers in order, commit everything of a
 * learner in one atomic step. Another process may have written a learner in between; then the batch's answers of
 * that learner are computed again from what is there now.
 */
import {
  type TrackEvent,
  type TrackReply,
  type TrackTask,
  unreadable,
  type WorkerSettings,
} from '../src/contracts/tasks.js';
import type { TenantModel } from '../src/domain/tenant-model.js';
import { ApiError } from '../src/errors.js';
import { isCluster, type RedisClient } from '../src/store/client.js';
import { hashEventId } from '../src/store/event-ids.js';
import { hashItem } from '../src/store/item-id.js';
import { partitionOf } from '../src/store/keys.js';
import { readPacked } from '../src/store/learner-reads.js';
import {
  type CommitStatus,
  commitLearners,
  countKnownSkills,
  type LearnerCommit,
  type LoadedLearner,
  loadLearners,
} from '../src/store/learner-store.js';
import type { ModelCache } from '../src/store/model-cache.js';
import type { ItemTable } from './item-table.js';
import type { KnownSkills } from './known-skills.js';
import {
  type AllSkills,
  type LearnerPlan,
  type LearnerWork,
  needsAllSkills,
  type PlannedEvent,
  planLearner,
} from './plan.js';
import { type ReadEvent, readBodies } from './submissions.js';
import { createReply, type ReplyBuilder } from './track-reply.js';

export interface TrackTools {
  /** @throws ApiError UNAVAILABLE */
  readonly redis: () => Promise<RedisClient>;
  readonly settings: WorkerSettings;
  readonly knownSkills: KnownSkills;
  readonly models: ModelCache;
  readonly items: ItemTable;
}

interface TrackContext extends TrackTools {
  readonly client: RedisClient;
  /** Whether event ids are looked up before the answers are planned. */
  readonly withIds: boolean;
}

/** How often a learner's answers are computed again because somebody else wrote the learner first. */
const maxTries = 40;

/** Most events that are loaded and committed together: Redis does nothing else meanwhile. */
const maxTogether = 512;

/** Counts the answers of a task. Whatever is refused, each of its events is told so. */
export async function trackBatch(tools: TrackTools, task: TrackTask): Promise<TrackReply> {
  const reply = createReply();
  const events: PlacedEvent[] = [];
  const counts = readBodies(task).map((body) => place(tools.settings, task, body, events, reply));
  for (let at = 0; at < events.length; at += maxTogether) {
    await trackEvents(tools, task, events.slice(at, at + maxTogether), reply);
  }
  return reply.reply(counts);
}

interface PlacedEvent {
  readonly place: number;
  readonly event: TrackEvent;
}

/** Gives the events of a body their places; those that are none are told at once. @returns how many there are */
function place(
  { partitions }: WorkerSettings,
  task: TrackTask,
  body: readonly ReadEvent[] | ApiError,
  events: PlacedEvent[],
  reply: ReplyBuilder,
): number {
  if (body instanceof ApiError) {
    reply.invalid(reply.open(), body);
    return unreadable;
  }
  for (const event of body) {
    const place = reply.open();
    if (!isOfLane(event, task, partitions)) reply.set(place, 'elsewhere', '');
    else if (event instanceof ApiError) reply.invalid(place, event);
    else events.push({ place, event });
  }
  return body.length;
}

/** What is no event is told by the first lane that looks at it. */
function isOfLane(event: ReadEvent, { form, lane, lanes }: TrackTask, partitions: number): boolean {
  if (lanes === 1 || form === 'event' || form === 'import') return true;
  if (event instanceof ApiError) return lane === 0;
  return partitionOf(event.tenant, event.userId, partitions) % lanes === lane;
}

async function trackEvents(
  tools: TrackTools,
  task: TrackTask,
  events: readonly PlacedEvent[],
  reply: ReplyBuilder,
): Promise<void> {
  const works = groupByLearner(events, tools.settings.partitions);
  try {
    const context = { ...tools, client: await tools.redis(), withIds: false };
    // Of a Cluster a node may be away: each partition stands alone there, as its calls do.
    const groups = isCluster(context.client) ? byPartition(works) : [works];
    await Promise.all(groups.map((group) => trackLearners(context, task, group, reply)));
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    for (const work of works) reply.refuse(work, error.message);
  }
}

async function trackLearners(
  context: TrackContext,
  task: TrackTask,
  works: readonly LearnerWork[],
  reply: ReplyBuilder,
): Promise<void> {
  let open = works;
  try {
    for (let tries = 0; open.length > 0 && tries < maxTries; tries++) {
      // Where new ids are refused, or somebody else was first, the ids must be known before the plan is made.
      open = await trackOnce({ ...context, withIds: tries > 0 || !task.acceptNewIds }, task, open, reply);
    }
    for (const work of open) reply.refuse(work, 'This learner is written by too many requests at once');
  } catch (error) {
    // Redis does not serve: what was committed until then is not known.
    if (!(error instanceof ApiError)) throw error;
    for (const work of open) reply.refuse(work, error.message);
  }
}

function groupByLearner(events: readonly PlacedEvent[], partitions: number): LearnerWork[] {
  const works = new Map<string, OpenWork>();
  for (const { place, event } of events) {
    const key = `${event.tenant}:${event.userId}`;
    let work = works.get(key);
    if (work === undefined) {
      work = newWork(event, partitions);
      works.set(key, work);
    }
    addEvent(work, place, event);
  }
  return [...works.values()];
}

/** A learner's work while its events are gathered. */
interface OpenWork extends LearnerWork {
  readonly skillIds: string[];
  readonly idTexts: string[];
  readonly eventIds: Buffer[];
  readonly itemTexts: string[];
  readonly itemIds: Buffer[];
  readonly events: PlannedEvent[];
}

const newWork = ({ tenant, userId }: TrackEvent, partitions: number): OpenWork => ({
  partition: partitionOf(tenant, userId, partitions),
  tenant,
  userId,
  skillIds: [],
  idTexts: [],
  eventIds: [],
  itemTexts: [],
  itemIds: [],
  events: [],
});

function addEvent(work: OpenWork, place: number, event: TrackEvent): void {
  const { eventId, itemId } = event;
  const id = eventId === null ? -1 : placeOf(work.idTexts, eventId);
  if (eventId !== null && id === work.eventIds.length)
    work.eventIds.push(hashEventId(work.tenant, work.userId, eventId));
  const item = itemId === null ? -1 : placeOf(work.itemTexts, itemId);
  if (itemId !== null && item === work.itemIds.length) work.itemIds.push(hashItem(itemId));
  work.events.push({ place, event, skill: placeOf(work.skillIds, event.skillId), id, item });
}

/** Where the text stands in the list, at its end if it is new. A learner's lists are short. */
function placeOf(texts: string[], text: string): number {
  const place = texts.indexOf(text);
  return place < 0 ? texts.push(text) - 1 : place;
}

function byPartition(works: readonly LearnerWork[]): LearnerWork[][] {
  const groups = new Map<number, LearnerWork[]>();
  for (const work of works) {
    const group = groups.get(work.partition);
    if (group === undefined) groups.set(work.partition, [work]);
    else group.push(work);
  }
  return [...groups.values()];
}

/** One try for all open learners; returns those that somebody else wrote meanwhile, or who repeat an event. */
async function trackOnce(
  context: TrackContext,
  task: TrackTask,
  open: readonly LearnerWork[],
  reply: ReplyBuilder,
): Promise<LearnerWork[]> {
  const plans = await planEach(context, task, open, reply);
  await context.knownSkills.add(context.client, plans);
  const writing = plans.filter(({ plan }) => plan.commit !== null);
  const statuses = await commitPlans(context, task, writing);
  const again: LearnerWork[] = [];
  for (const planned of plans) {
    const { work } = planned;
    const status = statuses.get(work) ?? 'committed';
    if (status === 'committed') settle(context, planned, reply);
    else if (status === 'conflict' || status === 'repeated') again.push(work);
    else reply.refuse(work, refusals[status]);
  }
  return again;
}

const refusals: Record<Exclude<CommitStatus, 'committed' | 'conflict' | 'repeated'>, string> = {
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
  const [loaded, models] = await Promise.all([
    loadLearners(context.client, open, task.importId, context.withIds),
    loadModels(context, open),
  ]);
  const all = await allSkills(
    context.client,
    open.filter((work, i) => needsAllSkills((loaded[i] as LoadedLearner).learner, work)),
  );
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
      acceptNewIds: task.acceptNewIds,
    });
    planned.push({ work, plan, modelVersion: model.version });
  });
  return planned;
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
  const itemIds = new Set<string>();
  for (const { events } of works)
    for (const { event } of events) if (event.itemId !== null) itemIds.add(event.itemId);
  if (itemIds.size > 0) await items.load(tenant, model.version, [...itemIds]);
  return model;
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

async function commitPlans(
  { client, settings }: TrackContext,
  task: TrackTask,
  writing: readonly Planned[],
): Promise<Map<LearnerWork, CommitStatus>> {
  if (writing.length === 0) return new Map();
  const commits = writing.map(({ plan }) => plan.commit as LearnerCommit);
  const statuses = await commitLearners(client, commits, task.importId, settings.outboxBound);
  return new Map(writing.map(({ work }, i) => [work, statuses[i] as CommitStatus]));
}
