import type { Answer } from './types.js';

export type IdentifiedAnswer = Answer & { readonly event_id: string; readonly occurred_at: string };

export interface StoredAnswer {
  readonly answer: IdentifiedAnswer;
  /** Unix milliseconds of the `track` call. */
  readonly queuedAt: number;
}

export interface QueuedAnswer {
  readonly stored: StoredAnswer;
  readonly json: string;
  /** Of `json` in UTF-8. */
  readonly bytes: number;
  /** Failed attempts because of this answer alone. */
  failures: number;
}

const encoder = new TextEncoder();

export function toQueuedAnswer(stored: StoredAnswer): QueuedAnswer {
  const json = JSON.stringify(stored.answer);
  return { stored, json, bytes: encoder.encode(json).length, failures: 0 };
}

const getLearner = ({ stored }: QueuedAnswer): string => stored.answer.user_id;

/** At most the first answer is in flight. */
interface LearnerQueue {
  readonly pending: QueuedAnswer[];
  isInFlight: boolean;
  /** Unix milliseconds. */
  notBefore: number;
}

interface BatchLimits {
  readonly answers: number;
  readonly bytes: number;
}

/** One queue per learner; learners take turns. */
export class AnswerQueue {
  readonly #lines = new Map<string, LearnerQueue>();
  /** Queues without an answer in flight. */
  readonly #ready = new Set<LearnerQueue>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get readyCount(): number {
    return this.#ready.size;
  }

  *[Symbol.iterator](): Generator<QueuedAnswer> {
    for (const { pending } of this.#lines.values()) yield* pending;
  }

  add(queued: QueuedAnswer): void {
    const learner = getLearner(queued);
    const line = this.#lines.get(learner) ?? { pending: [], isInFlight: false, notBefore: 0 };
    this.#lines.set(learner, line);
    line.pending.push(queued);
    this.#size += 1;
    if (!line.isInFlight) this.#ready.add(line);
  }

  /** Takes the first answer of each ready queue, up to the limits, but at least one. */
  dequeueBatch(limits: BatchLimits, now: number): QueuedAnswer[] {
    const batch: QueuedAnswer[] = [];
    let bytes = 0;
    for (const line of this.#ready) {
      const [first] = line.pending;
      if (first === undefined || line.notBefore > now) continue;
      bytes += first.bytes;
      if (batch.length > 0 && (batch.length === limits.answers || bytes > limits.bytes)) break;
      batch.push(first);
      line.isInFlight = true;
      this.#ready.delete(line);
    }
    return batch;
  }

  /** The learner's next answer becomes ready. */
  complete(queued: QueuedAnswer): void {
    const line = this.#findLearnerQueue(queued);
    line.pending.shift();
    this.#size -= 1;
    if (line.pending.length > 0) this.#setReady(line, 0);
    else this.#lines.delete(getLearner(queued));
  }

  requeue(queued: QueuedAnswer, notBefore: number): void {
    this.#setReady(this.#findLearnerQueue(queued), notBefore);
  }

  /** @returns Unix milliseconds; Infinity without a ready answer */
  dueAt(lingerMs: number): number {
    let earliest = Number.POSITIVE_INFINITY;
    for (const { pending, notBefore } of this.#ready)
      earliest = Math.min(earliest, Math.max((pending[0]?.stored.queuedAt ?? 0) + lingerMs, notBefore));
    return earliest;
  }

  #findLearnerQueue(queued: QueuedAnswer): LearnerQueue {
    return this.#lines.get(getLearner(queued)) as LearnerQueue;
  }

  #setReady(line: LearnerQueue, notBefore: number): void {
    line.isInFlight = false;
    line.notBefore = notBefore;
    this.#ready.add(line);
  }
}
