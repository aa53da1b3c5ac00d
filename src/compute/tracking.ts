/** Submissions of answers on their way to the worker threads and back. */
import {
  dataSeparator,
  outcomeLetters,
  type TrackOutcome,
  type TrackReply,
  type TrackTask,
  unreadable,
} from '../contracts/tasks.js';
import { ApiError } from '../errors.js';
import type { AttemptTracker, Submission, Tracked, TrackMode } from '../services/ports.js';
import { idsIn, invalidEvent } from '../services/submissions.js';
import { type Batcher, createBatcher } from './batcher.js';

/** A submission in a lane. */
interface Item {
  readonly submission: Submission;
  readonly mode: TrackMode;
}

/** What became of a submission: its events in order. */
type Outcome = readonly Tracked[];

export interface TrackerOptions {
  readonly lanes: number;
  /** Lane of a learner, 0 to lanes - 1. */
  readonly laneOf: (tenant: string, userId: string) => number;
  /** Counts one task in a worker thread; settles in bounded time. */
  readonly run: (task: TrackTask) => Promise<TrackReply>;
  /** Told of events that failed for a reason that callers must not see. */
  readonly onFailure: (error: unknown) => void;
}

export interface Tracker extends AttemptTracker {
  /** Submissions that wait for a batch. */
  readonly waiting: () => number;
  readonly stop: () => void;
}

/** Weights are bytes. A batch is a few round trips whatever its size, and nobody waits long for one of this size. */
const maxBatch = { items: 512, weight: 256 * 1024 };
/** Per lane, so that memory is bounded; half of it for each tenant. */
const maxWaiting = { items: 10_000, weight: 32 * 1024 * 1024 };
/** Never refused below 1,000 waiting answers (contract): a thousand requests have as many, and so have batches of so much. */
const patience = { ms: 1000, least: { items: 1000, weight: 16 * 1024 * 1024 } };

export function createTracker(options: TrackerOptions): Tracker {
  const batcher = createBatcher<Item, Outcome>({
    lanes: options.lanes,
    tenantOf: ({ submission }) => submission.tenant,
    together: (first, item) =>
      first.submission.form === item.submission.form && first.mode === item.mode && !isWhole(item),
    // A thread counts a batch of a thousand in steps (workers/tracking.ts), between which others' single answers have room.
    beside: (away, item) => isSingle(away) !== isSingle(item),
    weightOf,
    maxBatch,
    maxWaiting,
    patience,
    refusal: 'Too many answers wait to be counted; try again later',
    run: async (items, lane) => outcomesOf(await options.run(taskOf(items, lane, options.lanes)), options),
  });
  return {
    full: batcher.full,
    waiting: batcher.waiting,
    stop: batcher.stop,
    track: (submission, mode) => {
      const lane = soleLaneOf(submission, options);
      const item = { submission, mode };
      return lane === null ? submitToAll(batcher, item, options.lanes) : batcher.submit(lane, item);
    },
  };
}

/** A batch of little text may have a thousand faults, each of which takes long to tell: it counts as much as this. */
const leastBatchWeight = 64 * 1024;

const weightOf = ({ submission: { form, body } }: Item): number =>
  form === 'event' ? body.length : Math.max(body.length, leastBatchWeight);

const isSingle = ({ submission }: Item): boolean => submission.form === 'event';

/** An import's submission is a batch of its own: the feeder builds on it. */
const isWhole = ({ mode }: Item): boolean => mode.importId !== null;

/** The lane of all its learners; null where they may have several. */
function soleLaneOf(submission: Submission, { lanes, laneOf }: TrackerOptions): number | null {
  const { form, tenant } = submission;
  if (lanes === 1) return 0;
  if (form === 'batch' || form === 'lines') return null;
  // Where no learner can be read, any lane may say so.
  const { userId } = idsIn(submission);
  return userId === null ? 0 : laneOf(tenant, userId);
}

function taskOf(items: readonly Item[], lane: number, lanes: number): TrackTask {
  const [{ submission, mode }] = items as [Item, ...Item[]];
  const submissions = items.map((item) => item.submission);
  return {
    form: submission.form,
    bodies: joined(submissions),
    lengths: submissions.map(({ body }) => body.length),
    tenants: submissions.map(({ tenant }) => tenant),
    idempotencyKeys: submissions.map(({ idempotencyKey }) => idempotencyKey),
    receivedAt: submissions.map(({ receivedAt }) => receivedAt),
    acceptNewIds: mode.acceptNewIds,
    importId: mode.importId,
    lane,
    lanes,
  };
}

const lineFeed = 0x0a;

function joined(submissions: readonly Submission[]): Uint8Array {
  const bytes = submissions.reduce((sum, { body }) => sum + body.length + 1, 0);
  const bodies = new Uint8Array(bytes);
  let at = 0;
  for (const { body } of submissions) {
    bodies.set(body, at);
    at += body.length;
    bodies[at++] = lineFeed;
  }
  return bodies;
}

const outcomesByLetter = Object.fromEntries(
  Object.entries(outcomeLetters).map(([outcome, letter]) => [letter, outcome]),
) as Record<string, TrackOutcome>;

function outcomesOf(
  { counts, outcomes, data }: TrackReply,
  { onFailure }: TrackerOptions,
): (Outcome | ApiError)[] {
  const texts = data.split(dataSeparator);
  let place = 0;
  const next = (): Tracked => {
    const outcome = outcomesByLetter[outcomes[place] as string] as TrackOutcome;
    return { outcome, data: texts[place++] as string };
  };
  const told = counts.map((count): Outcome | ApiError => {
    if (count === unreadable) return invalidEvent(next().data);
    return Array.from({ length: count }, next);
  });
  tellFailures(told, onFailure);
  return told;
}

/** One cause makes all of a learner's events fail; it is told once. */
function tellFailures(told: readonly (Outcome | ApiError)[], onFailure: (error: unknown) => void): void {
  const causes = new Set<string>();
  for (const outcome of told) {
    if (outcome instanceof ApiError) continue;
    for (const { outcome: became, data } of outcome) if (became === 'failed') causes.add(data);
  }
  for (const cause of causes) onFailure(new Error(cause));
}

/** Each lane counts the events of its own learners and leaves holes for the others. */
async function submitToAll(batcher: Batcher<Item, Outcome>, item: Item, lanes: number): Promise<Outcome> {
  const parts = await Promise.all(
    Array.from({ length: lanes }, (_, lane) => batcher.submit(lane, item).catch(refusalOf)),
  );
  const told = parts.flatMap((part) => (part instanceof ApiError ? [] : [part]));
  const refusal = parts.find((part) => part instanceof ApiError);
  // Either nothing can be read of it, which all lanes tell alike, or all lanes are full.
  if (told.length === 0 && refusal !== undefined) throw refusal;
  const missing: Tracked = { outcome: 'unavailable', data: refusal?.message ?? '' };
  return (told[0] ?? []).map(
    (_, place) => told.map((part) => part[place] as Tracked).find(isHere) ?? missing,
  );
}

const isHere = ({ outcome }: Tracked): boolean => outcome !== 'elsewhere';

function refusalOf(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  throw error;
}
