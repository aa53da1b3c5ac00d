/** Bodies of answers, read and checked: what the front end handed on as bytes. */
import { isUtf8 } from 'node:buffer';
import { checked } from '../../src/contracts/checked.js';
import { eventBatchCheck, learningEventCheck, maxBatchEvents } from '../../src/contracts/events.js';
import { learningIdProblem } from '../../src/contracts/ids.js';
import { checkShape, parseText, textOf } from '../../src/contracts/json.js';
import { problemsOf } from '../../src/contracts/problems.js';
import type { TrackEvent, TrackTask } from '../../src/contracts/tasks.js';
import { occurredAtProblem, parseTime } from '../../src/contracts/time.js';
import { ApiError, invalid, type Problem } from '../../src/errors.js';

/** Of an event as many fields as the API has four times, what is ignored included. */
const maxBatchValues = 50 * maxBatchEvents;

/** An event, or why it is none. */
export type ReadEvent = TrackEvent | ApiError;

/** The events of each body, each read when it is its turn; an error for a body that holds none. */
export function* readBodies(task: TrackTask): Generator<Iterable<ReadEvent> | ApiError> {
  const bodies = Buffer.from(task.bodies.buffer, task.bodies.byteOffset, task.bodies.length);
  const allUtf8 = isUtf8(bodies);
  let at = 0;
  for (const [i, length] of task.lengths.entries()) {
    const from = at;
    at += length + 1;
    yield orError(() => {
      if (task.form === 'batch' || task.form === 'lines')
        checkShape(bodies.subarray(from, from + length), maxBatchValues, task.form === 'lines');
      const text = allUtf8
        ? bodies.toString('utf8', from, from + length)
        : textOf(bodies.subarray(from, from + length));
      return readBody(task, i, text);
    });
  }
}

function orError<Value>(read: () => Value): Value | ApiError {
  try {
    return read();
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
}

/** @throws ApiError INVALID_REQUEST */
function readBody(task: TrackTask, i: number, text: string): Iterable<ReadEvent> {
  const origin: Origin = {
    tenant: task.tenants[i] as string,
    idempotencyKey: task.idempotencyKeys[i] as string | null,
    receivedAt: task.receivedAt[i] as number,
  };
  switch (task.form) {
    case 'import':
      return JSON.parse(text) as TrackEvent[];
    case 'event':
      return [toTrackEvent(origin, parseText(text), '')];
    case 'batch':
      return readBatch(origin, fewEnough(checked(eventBatchCheck, parseText(text), 'batch').events));
    case 'lines':
      return readBatch(origin, fewEnough(linesOf(text)), readLine);
  }
}

/** What a body's events have in common. */
interface Origin {
  readonly tenant: string;
  readonly idempotencyKey: string | null;
  readonly receivedAt: number;
}

function* readBatch<Item>(
  origin: Origin,
  items: readonly Item[],
  read: (item: Item, i: number) => unknown = (item) => item,
): Generator<ReadEvent> {
  const { idempotencyKey } = origin;
  for (const [i, item] of items.entries()) {
    const own = idempotencyKey === null ? origin : { ...origin, idempotencyKey: `${idempotencyKey}/${i}` };
    yield orError(() => toTrackEvent(own, read(item, i), `events/${i}/`));
  }
}

/**
 * Asked before the events are looked at: what is wrong with each of half a million takes seconds to tell.
 * @throws ApiError INVALID_REQUEST for a batch of no events or too many
 */
function fewEnough<Event>(events: readonly Event[]): readonly Event[] {
  if (events.length >= 1 && events.length <= maxBatchEvents) return events;
  const message = `must have 1 to ${maxBatchEvents} items`;
  throw invalid(`Invalid batch: events ${message}`, [{ path: 'events', message }]);
}

/** Blank lines are skipped. */
const linesOf = (text: string): string[] => text.split('\n').filter((line) => line.trim() !== '');

/** The line's value. @throws ApiError INVALID_REQUEST */
function readLine(line: string, i: number): unknown {
  try {
    return JSON.parse(line);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw invalid('The line is not valid JSON', [{ path: `events/${i}`, message: 'is not valid JSON' }]);
  }
}

/** @throws ApiError INVALID_REQUEST with a problem per field */
function toTrackEvent(
  { tenant, idempotencyKey, receivedAt }: Origin,
  body: unknown,
  path: string,
): TrackEvent {
  if (!learningEventCheck.Check(body)) throw invalidEvent(problemsOf(learningEventCheck.Errors(body), path));
  const occurredAtText = body.occurred_at ?? null;
  const occurredAt = occurredAtText === null ? receivedAt : parseTime(occurredAtText);
  const problem = occurredAtProblem(occurredAt, receivedAt);
  if (occurredAt === null || problem !== null) {
    throw invalidEvent([{ path: `${path}occurred_at`, message: problem ?? '' }]);
  }
  return {
    tenant,
    userId: body.user_id,
    skillId: body.skill_id,
    isCorrect: body.is_correct,
    timeSpentSeconds: body.time_spent_seconds ?? null,
    confidenceScore: body.confidence_score ?? null,
    questionDifficulty: body.question_difficulty ?? null,
    itemId: body.item_id ?? null,
    eventId: body.event_id ?? keptKey(idempotencyKey, path),
    occurredAt,
    occurredAtText,
    receivedAt,
    importLine: null,
  };
}

/** The header was checked, but what a batch makes of it for each event is longer. @throws ApiError INVALID_REQUEST */
function keptKey(idempotencyKey: string | null, path: string): string | null {
  const problem = idempotencyKey === null ? null : learningIdProblem(idempotencyKey);
  if (problem === null) return idempotencyKey;
  throw invalidEvent([
    { path: `${path}event_id`, message: `as the header Idempotency-Key has it ${problem}` },
  ]);
}

function invalidEvent(problems: readonly Problem[]): ApiError {
  const first = problems[0];
  const where = first && first.path !== '' ? `${first.path} ${first.message}` : first?.message;
  return invalid(`Invalid learning event: ${where ?? 'not an event'}`, problems);
}
