/** Builds the task of a batch from requests, and splits its reply by request. */
import {
  dataSeparator,
  type EventOutcome,
  type EventsFormat,
  outcomeLetters,
  type TrackOutcome,
  type TrackReply,
  type TrackTask,
  unreadableCount,
} from '../contracts/answers/track-task.js';
import { ApiError, invalid, type Problem } from '../errors.js';
import { endSpanAfter, type Span } from '../spans.js';

/** Raw bytes, which the worker parses and validates. */
export interface EventsRequest {
  readonly form: EventsFormat;
  readonly tenant: string;
  readonly body: Uint8Array;
  /** Replaces missing event ids. */
  readonly idempotencyKey: string | null;
  /** Unix milliseconds. */
  readonly receivedAt: number;
  readonly span?: Span | null | undefined;
}

export type RequestOutcomes = readonly EventOutcome[] | Error;

/** A request, or its part in some slots. */
export interface RequestPart extends Pick<TrackTask, 'importId' | 'slots'> {
  readonly request: EventsRequest;
}

/** A span has one parent: the first sampled request. The other requests are linked. */
export async function runTraced(
  parts: readonly RequestPart[],
  run: (task: TrackTask) => Promise<TrackReply>,
) {
  const spans = parts.map(({ request }) => request.span).filter((span) => !!span);
  const batch = spans[0]?.child('batch', { 'skilltrace.requests': parts.length }, spans);
  const reply = await endSpanAfter(batch, run(buildTask(parts, batch !== undefined)));
  const worker = batch?.child('worker', {}, [], reply.times?.start);
  for (const { name, start, end } of reply.times?.steps ?? [])
    worker?.child(name, { 'db.system.name': 'redis' }, [], start).end({}, end);
  worker?.end({}, reply.times?.end);
  return reply;
}

/** @param parts have the same form, import and slots */
function buildTask(parts: readonly RequestPart[], isTimed: boolean): TrackTask {
  const { request, importId, slots } = parts[0] as RequestPart;
  const requests = parts.map((entry) => entry.request);
  return {
    form: request.form,
    bodies: joinBodies(requests.map(({ body }) => body)),
    lengths: requests.map(({ body }) => body.length),
    tenants: requests.map(({ tenant }) => tenant),
    idempotencyKeys: requests.map(({ idempotencyKey }) => idempotencyKey),
    receivedAt: requests.map(({ receivedAt }) => receivedAt),
    importId,
    slots,
    isTimed,
  };
}

const lineFeed = 0x0a;

function joinBodies(bodies: readonly Uint8Array[]): Uint8Array {
  const joined = new Uint8Array(bodies.reduce((sum, { length }) => sum + length + 1, 0));
  let at = 0;
  for (const body of bodies) {
    joined.set(body, at);
    at += body.length;
    joined[at++] = lineFeed;
  }
  return joined;
}

const outcomesByLetter = Object.fromEntries(
  Object.entries(outcomeLetters).map(([outcome, letter]) => [letter, outcome]),
) as Record<string, TrackOutcome>;

/** By request. @param onFailure gets each cause of failed events once */
export function splitOutcomes(
  { counts, outcomes, data }: TrackReply,
  onFailure: (error: unknown) => void,
): RequestOutcomes[] {
  const texts = data.split(dataSeparator);
  const causes = new Set<string>();
  let index = 0;
  const next = (): EventOutcome => {
    const outcome = outcomesByLetter[outcomes[index] as string] as TrackOutcome;
    const text = texts[index++] as string;
    if (outcome === 'failed') causes.add(text);
    return { outcome, data: text };
  };
  const all = counts.map((count) =>
    count === unreadableCount ? parseInvalidEvent(next().data) : Array.from({ length: count }, next),
  );
  for (const cause of causes) onFailure(new Error(cause));
  return all;
}

/** Each event gets the outcome from its learner's lane. */
export function joinOutcomes(parts: readonly RequestOutcomes[]): RequestOutcomes {
  const answered = parts.filter((part): part is readonly EventOutcome[] => !(part instanceof Error));
  const failed = parts.filter((part) => part instanceof Error);
  const firstError = failed.find((error) => !(error instanceof ApiError)) ?? failed[0];
  // The request fails as a whole if all parts failed, or after a defect.
  if (firstError !== undefined && (answered.length === 0 || !(firstError instanceof ApiError)))
    return firstError;
  const fallback: EventOutcome = { outcome: 'unavailable', data: firstError?.message ?? '' };
  const isInLane = ({ outcome }: EventOutcome): boolean => outcome !== 'elsewhere';
  return (answered[0] ?? []).map(
    (_, index) => answered.map((part) => part[index] as EventOutcome).find(isInLane) ?? fallback,
  );
}

export function parseInvalidEvent(data: string): ApiError {
  const { message, details }: { message: string; details: readonly Problem[] } = JSON.parse(data);
  return details.length === 0 ? invalid(message) : invalid(message, details);
}

/** Of an event, or of an import's first event; null if missing or not a string. */
export function parseIds({ body, idempotencyKey }: EventsRequest) {
  let parsed = null;
  try {
    parsed = JSON.parse(Buffer.from(body.buffer, body.byteOffset, body.length).toString('utf8'));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  const { user_id, userId, event_id } = (Array.isArray(parsed) ? parsed[0] : parsed) ?? {};
  return { userId: textOrNull(user_id ?? userId), eventId: textOrNull(event_id ?? idempotencyKey) };
}

const textOrNull = (value: unknown): string | null => (typeof value === 'string' ? value : null);
