import type { Answer } from './types.js';

/** An answer as it is sent, each time the same. */
export type IdentifiedAnswer = Answer & { readonly event_id: string; readonly occurred_at: string };

/** What a store keeps of an answer. */
export interface StoredAnswer {
  readonly answer: IdentifiedAnswer;
  /** Unix milliseconds of its `track`. */
  readonly queuedAt: number;
}

/** An answer that is not settled yet. */
export interface Queued {
  readonly stored: StoredAnswer;
  readonly json: string;
  /** Of the JSON in UTF-8. */
  readonly bytes: number;
  /** Tries that the service refused for this answer alone. */
  failures: number;
}

const encoder = new TextEncoder();

export function queuedOf(stored: StoredAnswer): Queued {
  const json = JSON.stringify(stored.answer);
  return { stored, json, bytes: encoder.encode(json).length, failures: 0 };
}

const learnerOf = ({ stored }: Queued): string => stored.answer.user_id;

/** A learner's answers in their order. While the first is out none is taken. */
interface Line {
  readonly waiting: Queued[];
  isOut: boolean;
  /** Unix milliseconds before which the first is not sent again. */
  notBefore: number;
}

interface BatchLimits {
  readonly answers: number;
  readonly bytes: number;
}

/** What is not settled, a line for each learner, who take turns. */
export class Lines {
  readonly #lines = new Map<string, Line>();
  /** Lines of which nothing is out, that came last at the end. */
  readonly #ready = new Set<Line>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Learners of whom an answer could be sent. */
  get readyCount(): number {
    return this.#ready.size;
  }

  *[Symbol.iterator](): Generator<Queued> {
    for (const { waiting } of this.#lines.values()) yield* waiting;
  }

  add(queued: Queued): void {
    const learner = learnerOf(queued);
    const line = this.#lines.get(learner) ?? { waiting: [], isOut: false, notBefore: 0 };
    this.#lines.set(learner, line);
    line.waiting.push(queued);
    this.#size += 1;
    if (!line.isOut) this.#ready.add(line);
  }

  /** The first of each line that is ready, up to the limits; one answer at least, however large. */
  take(limits: BatchLimits, now: number): Queued[] {
    const batch: Queued[] = [];
    let bytes = 0;
    for (const line of this.#ready) {
      const [first] = line.waiting;
      if (first === undefined || line.notBefore > now) continue;
      bytes += first.bytes;
      if (batch.length > 0 && (batch.length === limits.answers || bytes > limits.bytes)) break;
      batch.push(first);
      line.isOut = true;
      this.#ready.delete(line);
    }
    return batch;
  }

  /** An answer that was out is over: the next of its learner may go. */
  settle(queued: Queued): void {
    const line = this.#lineOf(queued);
    line.waiting.shift();
    this.#size -= 1;
    if (line.waiting.length > 0) this.#release(line, 0);
    else this.#lines.delete(learnerOf(queued));
  }

  /** An answer that was out is to be sent again. */
  putBack(queued: Queued, notBefore: number): void {
    this.#release(this.#lineOf(queued), notBefore);
  }

  /** Unix milliseconds at which the first of the ready answers has waited for `lingerMs`; Infinity without one. */
  dueAt(lingerMs: number): number {
    let earliest = Number.POSITIVE_INFINITY;
    for (const { waiting, notBefore } of this.#ready)
      earliest = Math.min(earliest, Math.max((waiting[0]?.stored.queuedAt ?? 0) + lingerMs, notBefore));
    return earliest;
  }

  #lineOf(queued: Queued): Line {
    return this.#lines.get(learnerOf(queued)) as Line;
  }

  #release(line: Line, notBefore: number): void {
    line.isOut = false;
    line.notBefore = notBefore;
    this.#ready.add(line);
  }
}
