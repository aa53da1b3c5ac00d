/** Which events of a task are counted here, and where their outcomes go. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type TrackTask, unreadable, type WorkerSettings } from '../src/contracts/tasks.js';
import { ApiError } from '../src/errors.js';
import { partitionOf } from '../src/store/keys.js';
import type { PlacedEvent } from './learner-works.js';
import type { ReadEvent } from './submissions.js';
import type { ReplyBuilder } from './track-reply.js';

/** What is wrong with an event takes up to 40 µs to tell, in which the thread does nothing else. */
const wrongPerTurn = 64;

/** Gives the events of a body their places; those that are none are told at once. @returns how many there are */
export async function placeEvents(
  { partitions }: WorkerSettings,
  task: TrackTask,
  body: Iterable<ReadEvent> | ApiError,
  events: PlacedEvent[],
  reply: ReplyBuilder,
): Promise<number> {
  if (body instanceof ApiError) {
    reply.invalid(reply.open(), body);
    return unreadable;
  }
  let count = 0;
  let wrong = 0;
  for (const event of body) {
    const place = reply.open();
    count++;
    if (event instanceof ApiError && ++wrong % wrongPerTurn === 0) await nextTurn();
    if (!isOfLane(event, task, partitions)) reply.set(place, 'elsewhere', '');
    else if (event instanceof ApiError) reply.invalid(place, event);
    else events.push({ place, event });
  }
  return count;
}

/** What is no event is told by the first lane that looks at it. */
function isOfLane(event: ReadEvent, { form, lane, lanes }: TrackTask, partitions: number): boolean {
  if (lanes === 1 || form === 'event' || form === 'import') return true;
  if (event instanceof ApiError) return lane === 0;
  return partitionOf(event.tenant, event.userId, partitions) % lanes === lane;
}
