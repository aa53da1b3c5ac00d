/** Which events of a task are counted here, and where their outcomes go. */
import {
  allSlots,
  slotCount,
  type TrackTask,
  unreadable,
  type WorkerSettings,
} from '../../src/contracts/tasks.js';
import { ApiError } from '../../src/errors.js';
import { partitionOf } from '../../src/store/redis/keys.js';
import type { PlacedEvent } from './learner-works.js';
import { type ReadEvent, readBodies } from './submissions.js';
import type { ReplyBuilder } from './track-reply.js';

/**
 * Gives the events of a task's bodies their places; those that are none are told at once. In steps: what is wrong with a
 * batch takes up to 40 ms to tell, and to parse the largest body 10 ms.
 *
 * @param events filled with those to be counted
 * @returns of each body how many events there are, or `unreadable`
 */
export function* placeEvents(
  { partitions }: WorkerSettings,
  task: TrackTask,
  events: PlacedEvent[],
  reply: ReplyBuilder,
): Generator<undefined, number[]> {
  const counts: number[] = [];
  for (const body of readBodies(task)) {
    yield;
    if (body instanceof ApiError) {
      reply.invalid(reply.open(), body);
      counts.push(unreadable);
      continue;
    }
    let count = 0;
    for (const event of body) {
      const place = reply.open();
      count += 1;
      if (!isOfSlots(event, task, partitions)) reply.set(place, 'elsewhere', '');
      else if (!(event instanceof ApiError)) events.push({ place, event });
      else {
        reply.invalid(place, event);
        yield;
      }
    }
    counts.push(count);
  }
  return counts;
}

/** What is no event is told with the first slot. */
function isOfSlots(event: ReadEvent, { form, slots }: TrackTask, partitions: number): boolean {
  if (slots === allSlots || form === 'event' || form === 'import') return true;
  const partition = event instanceof ApiError ? 0 : partitionOf(event.tenant, event.userId, partitions);
  return ((slots >> (partition % slotCount)) & 1) === 1;
}
