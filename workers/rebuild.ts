/** Piscina entry: replays learners, and writes what comes out or compares it with what is stored. */
import { workerData } from 'node:worker_threads';
import type {
  CompareReply,
  CompareTask,
  RebuildReply,
  RestoreReply,
  RestoreTask,
  TakenBaseline,
} from '../src/contracts/rebuild-tasks.js';
import { modelVersion } from '../src/domain/base/params.js';
import type { TotalContext } from '../src/domain/history/baseline.js';
import { countKnownSkills } from '../src/store/catalogue/known-skills.js';
import { differenceOf, readDumps } from '../src/store/rebuild/learner-compare.js';
import { type RestoredLearner, restoreLearners } from '../src/store/rebuild/learner-restore.js';
import { partitionOf } from '../src/store/redis/keys.js';
import { learnersOf, mayLackBaseline, type ReplayedLearner, replayLearner } from './rebuild/replayed.js';
import { createWorkerModels, refusalAsValue, workerRedis } from './track/thread.js';

const redis = workerRedis(workerData as { redisUrl: string; waitReplicas: number });
const models = createWorkerModels(redis, 'rebuild worker');

/** Names that are told. */
const maxNames = 10;

export default (task: RestoreTask | CompareTask): Promise<RebuildReply<RestoreReply | CompareReply>> =>
  task.kind === 'restore' ? refusalAsValue(restore(task)) : refusalAsValue(compare(task));

async function restore(task: RestoreTask): Promise<RestoreReply> {
  const { rows, partitions, idsFrom } = task;
  const contextOf = totalContexts();
  const learners: RestoredLearner[] = [];
  const reply = { answers: 0, broken: [] as string[], brokenCount: 0, keptAbilities: 0 };
  const baselines: TakenBaseline[] = [];
  for (const stored of learnersOf(rows)) {
    const context = mayLackBaseline(stored) ? await contextOf(stored.tenant) : null;
    const learner = replayLearner(stored, idsFrom, context);
    const { tenant, userId, taken, states } = learner;
    const partition = partitionOf(tenant, userId, partitions);
    learners.push({ ...learner, partition });
    reply.answers += learner.answers;
    if (taken !== null) baselines.push({ tenant, userId, partition, total: taken });
    if (states.learner.abilityVersion !== modelVersion) reply.keptAbilities += 1;
    if (learner.broken === 0) continue;
    reply.brokenCount += 1;
    if (reply.broken.length < maxNames) reply.broken.push(`${tenant}:${userId}`);
  }
  await restoreLearners(await redis(), learners);
  return { ...reply, learners: learners.length, baselines };
}

/** What totals of a tenant's learners are counted by today: each tenant is asked for once. */
function totalContexts(): (tenant: string) => Promise<TotalContext> {
  const known = new Map<string, TotalContext>();
  return async (tenant) => {
    const context = known.get(tenant) ?? {
      model: await models.get(tenant),
      knownSkills: await countKnownSkills(await redis(), tenant),
    };
    known.set(tenant, context);
    return context;
  };
}

/** What is stored is read after the rows: it may only be ahead of them. */
async function compare({ rows, partitions }: CompareTask): Promise<CompareReply> {
  const learners: ReplayedLearner[] = [];
  for (const stored of learnersOf(rows)) learners.push(replayLearner(stored, Number.POSITIVE_INFINITY, null));
  const places = learners.map(({ tenant, userId }) => ({
    tenant,
    userId,
    partition: partitionOf(tenant, userId, partitions),
  }));
  const dumps = await readDumps(await redis(), places);
  const differing: CompareReply['differing'][number][] = [];
  const lacking: CompareReply['lacking'][number][] = [];
  for (const [i, { tenant, userId, states }] of learners.entries()) {
    const what = differenceOf(states, dumps[i] ?? null);
    if (what === 'behind') lacking.push({ tenant, userId });
    else if (what !== null) differing.push({ learner: `${tenant}:${userId}`, what });
  }
  const answers = learners.reduce((sum, learner) => sum + learner.answers, 0);
  return { differing, lacking, learners: learners.length, answers };
}
