/** A batch's events by learner, and what each learner's ask of the store. */
import type { TrackEvent } from '../../src/contracts/tasks.js';
import { hashEventId } from '../../src/store/learners/event-ids.js';
import { hashItem } from '../../src/store/models/item-store.js';
import { partitionOf } from '../../src/store/redis/keys.js';
import type { LearnerWork, PlannedEvent } from './plan.js';

/** An event with its place in the task. */
export interface PlacedEvent {
  readonly place: number;
  readonly event: TrackEvent;
}

/** The works of a batch's learners, in the order of their first events. */
export function groupByLearner(events: readonly PlacedEvent[], partitions: number): LearnerWork[] {
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
  eventIds: [],
  itemTexts: [],
  itemIds: [],
  events: [],
});

function addEvent(work: OpenWork, place: number, event: TrackEvent): void {
  const { eventId, itemId } = event;
  const id = eventId === null ? null : hashEventId(eventId);
  if (id !== null) work.eventIds.push(id);
  const item = itemId === null ? -1 : placeOf(work.itemTexts, itemId);
  if (itemId !== null && item === work.itemIds.length) work.itemIds.push(hashItem(itemId));
  work.events.push({ place, event, skill: placeOf(work.skillIds, event.skillId), id, item });
}

/** Where the text stands in the list, at its end if it is new. A learner's lists are short. */
function placeOf(texts: string[], text: string): number {
  const place = texts.indexOf(text);
  return place < 0 ? texts.push(text) - 1 : place;
}
