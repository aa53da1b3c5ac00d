/** Submissions of answers on their way to the worker threads and back. */
import {
  allSlots,
  dataSeparator,
  outcomeLetters,
  type SubmissionForm,
  slotCount,
  type TrackOutcome,
  type TrackReply,
  type TrackTask,
  unreadable,
} from '../contracts/tasks.js';
import { ApiError } from '../errors.js';
import { idsIn, invalidEvent } from '../services/record/submissions.js';
import { Batcher, type Open } from './batcher.js';

/** What became of one event. */
export interface Tracked {
  readonly outcome: TrackOutcome;
  /** JSON of the result when counted or replayed; the reason when beyond a limit or unavailable. */
  readonly data: string;
}

/** Answers as they were sent: whoever counts them reads and checks them too. */
export interface Submission {
  readonly form: SubmissionForm;
  readonly tenant: string;
  readonly body: Uint8Array;
  /** Stands for event ids where the body has none. */
  readonly idempotencyKey: string | null;
  /** Unix milliseconds. */
  readonly receivedAt: number;
}

/** A single answer on its way. */
export interface OpenAnswer {
  readonly submission: Submission;
  /** Milliseconds, as performance.now() tells them. */
  readonly since: number;
  /** Tells its caller, who no longer hears of the outcome. */
  refuse(error: ApiError): void;
}

/** Counts answers. */
export interface AttemptTracker {
  /**
   * Counts the events of a submission in their order; one learner's answers keep their order, across submissions
   * too. An import's submission is one batch, whose events must share a lane (`laneOf`).
   *
   * @param importId hash of the file being imported; null for live answers
   * @returns one result per event: once it tells `counted`, the new mastery, the event id and the attempt record are
   * committed together
   * @throws ApiError INVALID_REQUEST for what is no submission, UNAVAILABLE for what does not fit the bounded queues,
   * INTERNAL for a defect
   */
  track(submission: Submission, importId: string | null): Promise<readonly Tracked[]>;
  /** The same for a single event, without a promise: each costs more than handing the event on. */
  trackOne(submission: Submission, told: (tracked: Tracked | Error) => void): void;
  /** The single events that are not told yet, those of a learner in their order. */
  open(): Iterable<OpenAnswer>;
  /** Why `track` would refuse whatever it is given now of the tenant; null where it may take something. */
  full(tenant: string): ApiError | null;
}

/** A submission in a lane. */
interface Item {
  readonly submission: Submission;
  /** Null for live answers. */
  readonly importId: string | null;
  /** Of a batch: those whose events are to be counted, a bit for each. */
  readonly slots: number;
}

/** What became of a submission: its events in order. */
type Outcome = readonly Tracked[];

export interface TrackerOptions {
  /** Lanes at first. */
  readonly lanes: number;
  /** Slot of a learner, 0 to slotCount - 1: it goes through the lane that is the slot modulo the lanes. */
  readonly slotOf: (tenant: string, userId: string) => number;
  /** Counts one task in the worker thread of a lane; settles in bounded time. */
  readonly run: (task: TrackTask, lane: number) => Promise<TrackReply>;
  /** Told of events that failed for a reason that callers must not see. */
  readonly onFailure: (error: unknown) => void;
}

export interface Tracker extends AttemptTracker {
  /** Submissions that wait for a batch. */
  readonly waiting: () => number;
  /** From when on nothing is away that went through those before; at most `slotCount`. */
  readonly setLanes: (lanes: number) => void;
  readonly stop: () => void;
}

/** Weights are bytes. A batch is a few round trips whatever its size, and nobody waits long for one of this size. */
const maxBatch = { items: 512, weight: 256 * 1024 };
/** Per lane, so that memory is bounded; half of it for each tenant. */
const maxWaiting = { items: 10_000, weight: 32 * 1024 * 1024 };
/** Never refused below 1,000 waiting answers (contract): a thousand requests have as many, and so have batches of so much. */
const patience = { ms: 1000, least: { items: 1000, weight: 16 * 1024 * 1024 } };

export function createTracker(options: TrackerOptions): Tracker {
  const batcher = new Batcher<Item, Outcome>({
    lanes: options.lanes,
    laneOf: (item, lanes) => soleLaneOf(item, lanes, options),
    partsOf,
    join: joined,
    tenantOf: ({ submission }) => submission.tenant,
    together: (first, item) =>
      first.submission.form === item.submission.form &&
      first.importId === item.importId &&
      first.slots === item.slots &&
      // An import's submission is a batch of its own: the feeder builds on it.
      item.importId === null,
    // A thread counts a batch of a thousand in steps (workers/track/tracking.ts), between which others' single answers have room.
    beside: (away, item) => isSingle(away) !== isSingle(item),
    weightOf,
    maxBatch,
    maxWaiting,
    patience,
    refusal: 'Too many answers wait to be counted; try again later',
    run: async (items, lane) => outcomesOf(await options.run(taskOf(items), lane), options),
  });
  return {
    full: (tenant) => batcher.full(tenant),
    waiting: () => batcher.waiting(),
    stop: () => batcher.stop(),
    setLanes: (lanes) => batcher.setLanes(lanes),
    track: (submission, importId) =>
      new Promise((resolve, reject) =>
        batcher.submit({ submission, importId, slots: allSlots }, (outcome) =>
          outcome instanceof Error ? reject(outcome) : resolve(outcome),
        ),
      ),
    trackOne: (submission, told) =>
      batcher.submit({ submission, importId: null, slots: allSlots }, (outcome) =>
        told(outcome instanceof Error ? outcome : (outcome[0] as Tracked)),
      ),
    open: function* () {
      for (const open of batcher.open()) if (isSingle(open.item)) yield openAnswer(open);
    },
  };
}

const openAnswer = (open: Open<Item, Outcome>): OpenAnswer => ({
  submission: open.item.submission,
  since: open.since,
  refuse: (error) => {
    open.told(error);
    open.told = () => undefined;
  },
});

/** A batch of little text may have a thousand faults, each of which takes long to tell: it counts as much as this. */
const leastBatchWeight = 64 * 1024;

const weightOf = ({ submission: { form, body } }: Item): number =>
  form === 'event' ? body.length : Math.max(body.length, leastBatchWeight);

const isSingle = ({ submission }: Item): boolean => submission.form === 'event';

/** The lane of all its learners; null where they may have several. */
function soleLaneOf({ submission }: Item, lanes: number, { slotOf }: TrackerOptions): number | null {
  const { form, tenant } = submission;
  if (lanes === 1) return 0;
  if (form === 'batch' || form === 'lines') return null;
  // Where no learner can be read, any lane may say so.
  const { userId } = idsIn(submission);
  return userId === null ? 0 : slotOf(tenant, userId) % lanes;
}

/** A batch goes through all lanes that have slots of it, and each counts the events of those. */
function partsOf(item: Item, lanes: number): (Item | null)[] {
  const parts = Array.from({ length: lanes }, () => 0);
  for (let slot = 0; slot < slotCount; slot++)
    parts[slot % lanes] = (parts[slot % lanes] as number) | (item.slots & (1 << slot));
  return parts.map((slots) => (slots === 0 ? null : { ...item, slots }));
}

function taskOf(items: readonly Item[]): TrackTask {
  const [{ submission, importId, slots }] = items as [Item, ...Item[]];
  const submissions = items.map((item) => item.submission);
  return {
    form: submission.form,
    bodies: bytesOf(submissions),
    lengths: submissions.map(({ body }) => body.length),
    tenants: submissions.map(({ tenant }) => tenant),
    idempotencyKeys: submissions.map(({ idempotencyKey }) => idempotencyKey),
    receivedAt: submissions.map(({ receivedAt }) => receivedAt),
    importId,
    slots,
  };
}

const lineFeed = 0x0a;

function bytesOf(submissions: readonly Submission[]): Uint8Array {
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
  /** One cause makes all of a learner's events fail; it is told once. */
  const causes = new Set<string>();
  let place = 0;
  const next = (): Tracked => {
    const outcome = outcomesByLetter[outcomes[place] as string] as TrackOutcome;
    const text = texts[place++] as string;
    if (outcome === 'failed') causes.add(text);
    return { outcome, data: text };
  };
  const told = counts.map((count): Outcome | ApiError =>
    count === unreadable ? invalidEvent(next().data) : Array.from({ length: count }, next),
  );
  for (const cause of causes) onFailure(new Error(cause));
  return told;
}

/** Of each event what the lane of its learner tells; the others leave holes. */
function joined(parts: readonly (Outcome | Error)[]): Outcome | Error {
  const told = parts.filter((part): part is Outcome => !(part instanceof Error));
  const failed = parts.filter((part) => part instanceof Error);
  const refusal = failed.find((error) => !(error instanceof ApiError)) ?? failed[0];
  // Either nothing can be read of it, which all lanes tell alike, or all lanes are full; else it is a defect.
  if (refusal !== undefined && (told.length === 0 || !(refusal instanceof ApiError))) return refusal;
  const missing: Tracked = { outcome: 'unavailable', data: refusal?.message ?? '' };
  return (told[0] ?? []).map(
    (_, place) => told.map((part) => part[place] as Tracked).find(isHere) ?? missing,
  );
}

const isHere = ({ outcome }: Tracked): boolean => outcome !== 'elsewhere';
