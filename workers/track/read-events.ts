/** Parses and validates the bodies of a task, selects the events of this lane, and groups them by learner. */
import { isUtf8 } from 'node:buffer';
import {
  eventBatchCheck,
  findSkillProblem,
  findTimeProblem,
  learningEventCheck,
  listSkillIds,
  maxBatchEvents,
  normalizeTime,
  parseTime,
} from '../../src/contracts/answers/events.js';
import {
  allSlots,
  slotCount,
  type TrackEvent,
  type TrackTask,
  unreadableCount,
} from '../../src/contracts/answers/track-task.js';
import { findIdProblem } from '../../src/contracts/schema/ids.js';
import { checkJsonShape, decodeUtf8, parseJsonText } from '../../src/contracts/schema/json.js';
import { describeErrors, validate } from '../../src/contracts/schema/validate.js';
import { ApiError, invalid, type Problem } from '../../src/errors.js';
import { hashEventId } from '../../src/store/learners/event-ids.js';
import type { LearnerQuery } from '../../src/store/learners/learner-commands.js';
import { hashItem } from '../../src/store/models/item-store.js';
import { partitionOf } from '../../src/store/redis/keys.js';
import type { ReplyBuilder } from './results.js';

/** JSON values per batch. An event has 9 fields and up to 10 skills; further ones are ignored. */
const maxBatchValues = 50 * maxBatchEvents;

export interface IndexedEvent {
  readonly replyIndex: number;
  readonly event: TrackEvent;
}

/** Indexes into the lists of `LearnerEvents`; -1: no item. */
export interface GroupedEvent extends IndexedEvent {
  readonly skillIndexes: readonly number[];
  readonly itemIndex: number;
  readonly idHash: Buffer | null;
}

/** A learner's events in one commit. Lists are in order of first use. */
export interface LearnerEvents extends LearnerQuery {
  readonly skillIds: string[];
  readonly eventIdHashes: Buffer[];
  readonly itemIds: string[];
  readonly itemHashes: Buffer[];
  readonly events: GroupedEvent[];
}

type EventOrError = TrackEvent | ApiError;

/**
 * Reserves an outcome for each event, and sets those that this lane does not count. Yields, because
 * describing the errors of a batch takes up to 40 ms.
 * @param events receives the events to count
 * @returns events per body, or `unreadableCount`
 */
export function* readEvents(
  task: TrackTask,
  partitions: number,
  events: IndexedEvent[],
  reply: ReplyBuilder,
): Generator<undefined, number[]> {
  const bodies = Buffer.from(task.bodies.buffer, task.bodies.byteOffset, task.bodies.length);
  const areUtf8 = isUtf8(bodies);
  const counts: number[] = [];
  let from = 0;
  for (const [i, length] of task.lengths.entries()) {
    yield;
    const bytes = bodies.subarray(from, from + length);
    const body = catchApiError(() => parseBody(task, i, bytes, areUtf8));
    from += length + 1;
    if (body instanceof ApiError) {
      reply.setInvalid(reply.reserve(), body);
      counts.push(unreadableCount);
      continue;
    }
    let count = 0;
    for (const event of body) {
      const replyIndex = reply.reserve();
      count += 1;
      if (!isInSlots(event, task, partitions)) reply.set(replyIndex, 'elsewhere', '');
      else if (!(event instanceof ApiError)) events.push({ replyIndex, event });
      else {
        reply.setInvalid(replyIndex, event);
        yield;
      }
    }
    counts.push(count);
  }
  return counts;
}

/** Invalid events belong to the first slot. */
function isInSlots(event: EventOrError, { form, slots }: TrackTask, partitions: number): boolean {
  if (slots === allSlots || form === 'event' || form === 'import') return true;
  const partition = event instanceof ApiError ? 0 : partitionOf(event.tenant, event.userId, partitions);
  return ((slots >> (partition % slotCount)) & 1) === 1;
}

function catchApiError<Value>(read: () => Value): Value | ApiError {
  try {
    return read();
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
}

type EventOrigin = Pick<TrackEvent, 'tenant' | 'receivedAt'> & { readonly idempotencyKey: string | null };

function parseBody(task: TrackTask, i: number, bytes: Buffer, isValidUtf8: boolean): Iterable<EventOrError> {
  const { form } = task;
  const isLines = form === 'lines';
  if (form === 'batch' || isLines) checkJsonShape(bytes, maxBatchValues, isLines);
  const text = isValidUtf8 ? bytes.toString() : decodeUtf8(bytes);
  const origin: EventOrigin = {
    tenant: task.tenants[i] as string,
    idempotencyKey: task.idempotencyKeys[i] as string | null,
    receivedAt: task.receivedAt[i] as number,
  };
  if (form === 'event') return [toTrackEvent(origin, parseJsonText(text), '')];
  if (form === 'import') return JSON.parse(text) as TrackEvent[];
  const rawEvents = isLines
    ? text.split('\n').filter((line) => line.trim() !== '')
    : validate(eventBatchCheck, parseJsonText(text), 'batch').events;
  if (rawEvents.length >= 1 && rawEvents.length <= maxBatchEvents)
    return parseEvents(origin, rawEvents, isLines);
  // Not in the schema, which would describe half a million errors for seconds.
  const message = `must have 1 to ${maxBatchEvents} items`;
  throw invalid(`Invalid batch: events ${message}.`, [{ path: 'events', message }]);
}

function* parseEvents(
  origin: EventOrigin,
  rawEvents: readonly unknown[],
  isLines: boolean,
): Generator<EventOrError> {
  const { idempotencyKey } = origin;
  for (const [i, item] of rawEvents.entries()) {
    const eventOrigin =
      idempotencyKey === null ? origin : { ...origin, idempotencyKey: `${idempotencyKey}/${i}` };
    yield catchApiError(() =>
      toTrackEvent(eventOrigin, isLines ? parseLine(String(item), i) : item, `events/${i}/`),
    );
  }
}

function parseLine(line: string, i: number): unknown {
  try {
    return JSON.parse(line);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw invalid('The line is not valid JSON.', [{ path: `events/${i}`, message: 'is not valid JSON' }]);
  }
}

/** @throws ApiError INVALID_REQUEST */
function toTrackEvent(
  { tenant, idempotencyKey, receivedAt }: EventOrigin,
  body: unknown,
  path: string,
): TrackEvent {
  const skillProblem = findSkillProblem(Object(body));
  if (!learningEventCheck.Check(body) || skillProblem !== null)
    throw createEventError([
      ...describeErrors(learningEventCheck.Errors(body), path),
      ...(skillProblem ? [{ ...skillProblem, path: `${path}${skillProblem.path}` }] : []),
    ]);
  const occurredAtText = body.occurred_at ?? null;
  const occurredAt = occurredAtText === null ? receivedAt : parseTime(occurredAtText);
  const problem = findTimeProblem(occurredAt, receivedAt);
  if (occurredAt === null || problem !== null)
    throw createEventError([{ path: `${path}occurred_at`, message: problem ?? '' }]);
  return {
    tenant,
    userId: body.user_id,
    skillIds: listSkillIds(body),
    listsSkills: Array.isArray(body.skill_ids),
    isCorrect: body.is_correct,
    timeSpentSeconds: body.time_spent_seconds ?? null,
    confidenceScore: body.confidence_score ?? null,
    questionDifficulty: body.question_difficulty ?? null,
    itemId: body.item_id ?? null,
    eventId: body.event_id ?? validateKey(idempotencyKey, path),
    occurredAt,
    occurredAtText: occurredAtText && normalizeTime(occurredAtText, occurredAt),
    receivedAt,
    importLine: null,
  };
}

/** The API validates the header, but a batch appends an index. */
function validateKey(idempotencyKey: string | null, path: string): string | null {
  const problem = idempotencyKey === null ? null : findIdProblem(idempotencyKey);
  if (problem === null) return idempotencyKey;
  const message = `from the header Idempotency-Key ${problem}`;
  throw createEventError([{ path: `${path}event_id`, message }]);
}

function createEventError(problems: readonly Problem[]): ApiError {
  const first = problems[0];
  const where = first && first.path !== '' ? `${first.path} ${first.message}` : first?.message;
  return invalid(`Invalid learning event: ${where ?? 'not an event'}.`, problems);
}

export function groupByLearner(events: readonly IndexedEvent[], partitions: number): LearnerEvents[] {
  const learners = new Map<string, LearnerEvents>();
  for (const { replyIndex, event } of events) {
    const { tenant, userId } = event;
    const key = `${tenant}:${userId}`;
    let learnerEvents = learners.get(key);
    if (learnerEvents === undefined) {
      const partition = partitionOf(tenant, userId, partitions);
      learnerEvents = {
        partition,
        tenant,
        userId,
        skillIds: [],
        eventIdHashes: [],
        itemIds: [],
        itemHashes: [],
        events: [],
      };
      learners.set(key, learnerEvents);
    }
    addEvent(learnerEvents, replyIndex, event);
  }
  return [...learners.values()];
}

function addEvent(learnerEvents: LearnerEvents, replyIndex: number, event: TrackEvent): void {
  const { eventId, itemId } = event;
  const idHash = eventId === null ? null : hashEventId(eventId);
  if (idHash !== null) learnerEvents.eventIdHashes.push(idHash);
  const itemIndex = itemId === null ? -1 : findOrAppend(learnerEvents.itemIds, itemId);
  if (itemId !== null && itemIndex === learnerEvents.itemHashes.length)
    learnerEvents.itemHashes.push(hashItem(itemId));
  learnerEvents.events.push({
    replyIndex,
    event,
    skillIndexes: event.skillIds.map((skillId) => findOrAppend(learnerEvents.skillIds, skillId)),
    idHash,
    itemIndex,
  });
}

function findOrAppend(texts: string[], text: string): number {
  const index = texts.indexOf(text);
  return index < 0 ? texts.push(text) - 1 : index;
}
