/** The events of a batch, learner by learner. */
import type { TrackEvent } from '../../src/contracts/tasks.js';
import { hashEventId } from '../../src/store/learners/event-ids.js';
import type { LearnerQuery } from '../../src/store/learners/learner-commands.js';
import { hashItem } from '../../src/store/models/item-store.js';
import { partitionOf } from '../../src/store/redis/keys.js';

/** An event with its place in the task. */
export interface PlacedEvent {
  readonly place: number;
  readonly event: TrackEvent;
}

/** An event with where its skill and its item stand in the work's lists; -1: it has none. */
export interface PlannedEvent extends PlacedEvent {
  readonly skill: number;
  /** Hash of its event id. */
  readonly id: Buffer | null;
  readonly item: number;
}

/**
 * The answers of one learner in a batch, and what they ask of the store: skills, event ids and items, each once, in
 * the order of their first use.
 */
export interface LearnerWork extends LearnerQuery {
  readonly skillIds: string[];
  readonly eventIds: Buffer[];
  readonly itemTexts: string[];
  readonly itemIds: Buffer[];
  /** In order of arrival. */
  readonly events: PlannedEvent[];
}

/** The works of a batch's learners, in the order of their first events. */
export function groupByLearner(events: readonly PlacedEvent[], partitions: number): LearnerWork[] {
  const works = new Map<string, LearnerWork>();
  for (const { place, event } of events) {
    const { tenant, userId } = event;
    const key = `${tenant}:${userId}`;
    let work = works.get(key);
    if (work === undefined) {
      const partition = partitionOf(tenant, userId, partitions);
      work = {
        partition,
        tenant,
        userId,
        skillIds: [],
        eventIds: [],
        itemTexts: [],
        itemIds: [],
        events: [],
      };
      works.set(key, work);
    }
    addEvent(work, place, event);
  }
  return [...works.values()];
}

function addEvent(work: LearnerWork, place: number, event: TrackEvent): void {
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
