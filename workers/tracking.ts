/**
 * Counts a batch of answers: load the learners' states, trace the answers in order, commit everything of a
 * learner in one atomic step. Another process may have written a learner in between; then the batch's answers of
 * that learner are computed again from what is there now.
 */
import type { TrackReply, TrackTask, WorkerSettings } from '../src/contracts/tasks.js';
import type { TenantModel } from '../src/domain/tenant-model.js';
import { ApiError } from '../src/errors.js';
import { inSlices } from '../src/slices.js';
import { isCluster, type RedisClient } from '../src/store/client.js';
import type { CommitStatus, LearnerCommit, LoadedLearner } from '../src/store/learner-records.js';
import { type LearnerSession, openLearners } from '../src/store/learner-session.js';
import type { KnownSkills } from './known-skills.js';
import { byPartition, groupByLearner, type PlacedEvent } from './learner-works.js';
import { placeEvents } from './placing.js';
import { type LearnerPlan, type LearnerWork, needsAllSkills, planLearner } from './plan.js';
import { roomEnough, skillRooms } from './skill-room.js';
import { allSkills, loadModels, type ModelSources } from './track-needs.js';
import { createReply, type ReplyBuilder } from './track-reply.js';

export interface TrackTools extends ModelSources {
  /** A connection for this alone (learner-session.ts). @throws ApiError UNAVAILABLE */
  readonly redis: () => Promise<RedisClient>;
  readonly settings: WorkerSettings;
  readonly knownSkills: KnownSkills;
  /** Most rows that a partition's outbox may hold right now. */
  readonly outboxBound: () => number;
}

interface TrackContext extends TrackTools {
  readonly client: RedisClient;
}

/** A try. */
interface Try extends TrackContext {
  readonly session: LearnerSession;
}

/** How often a learner's answers are computed again because somebody else wrote the learner first. */
const maxTries = 40;

/**
 * Most events that are loaded and committed together: Redis does nothing else meanwhile. More save nothing (measured:
 * with 512 an answer of a batch took a tenth more, for what a transaction holds must be kept until its end).
 */
const maxTogether = 128;
/** Of a batch: between two steps the thread has time for others' single answers (docs/adr/0030-nobody-holds-up-others.md). */
const maxOfBatch = 32;

/** Counts the answers of a task. Whatever is refused, each of its events is told so. */
export async function trackBatch(tools: TrackTools, task: TrackTask): Promise<TrackReply> {
  const reply = createReply();
  const events: PlacedEvent[] = [];
  const counts = await inSlices(placeEvents(tools.settings, task, events, reply));
  const together = stepOf(task, events.length);
  for (let at = 0; at < events.length; at += together) {
    await trackEvents(tools, task, events.slice(at, at + together), reply);
  }
  return reply.reply(counts);
}

function stepOf({ form, importId }: TrackTask, events: number): number {
  // What an import sends is one step: the feeder builds on it (services/import/feeder.ts).
  if (importId !== null) return events;
  return form === 'event' ? maxTogether : maxOfBatch;
}

async function trackEvents(
  tools: TrackTools,
  task: TrackTask,
  events: readonly PlacedEvent[],
  reply: ReplyBuilder,
): Promise<void> {
  const works = groupByLearner(events, tools.settings.partitions);
  try {
    const context = { ...tools, client: await tools.redis() };
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
      const session = openLearners(context.client, {
        importId: task.importId,
        // Where new ids are refused, or somebody else was first, the ids must be known before the plan is made.
        withIds: tries > 0 || !task.acceptNewIds,
        outboxBound: context.outboxBound(),
        undisturbed: tries === 0,
      });
      open = await trackOnce({ ...context, session }, task, open, reply);
    }
    for (const work of open) reply.refuse(work, 'This learner is written by too many requests at once');
  } catch (error) {
    // Redis does not serve: what was committed until then is not known.
    if (!(error instanceof ApiError)) throw error;
    for (const work of open) reply.refuse(work, error.message);
  }
}

/**
 * One try for all open learners; returns those that somebody else wrote meanwhile, or who repeat an event, as far as is
 * known.
 */
async function trackOnce(
  context: Try,
  task: TrackTask,
  open: readonly LearnerWork[],
  reply: ReplyBuilder,
): Promise<LearnerWork[]> {
  const plans = await planEach(context, task, open, reply);
  const final = plans.filter(({ plan }) => !plan.needsIds);
  await context.knownSkills.add(context.client, final);
  const writing = final.filter(({ plan }) => plan.commit !== null);
  const statuses = await commitPlans(context, writing);
  const again: LearnerWork[] = [];
  for (const planned of plans) {
    const { work, plan } = planned;
    const status = plan.needsIds ? 'repeated' : (statuses.get(work) ?? 'committed');
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
  context: Try,
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
  context: Try,
  task: TrackTask,
  open: readonly LearnerWork[],
  reply: ReplyBuilder,
): Promise<Planned[]> {
  const [loaded, models] = await Promise.all([context.session.load(open), loadModels(context, open)]);
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
      acceptNewIds: task.acceptNewIds,
      room: rooms.get(work) ?? roomEnough,
    });
    planned.push({ work, plan, modelVersion: model.version });
  });
  return planned;
}

async function commitPlans(
  { session }: Try,
  writing: readonly Planned[],
): Promise<Map<LearnerWork, CommitStatus>> {
  if (writing.length === 0) return new Map();
  const commits = writing.map(({ plan }) => plan.commit as LearnerCommit);
  const statuses = await session.commit(commits);
  return new Map(writing.map(({ work }, i) => [work, statuses[i] as CommitStatus]));
}
