import type { Answer } from './types.js';

export type IdentifiedAnswer = Answer & { readonly event_id: string; readonly occurred_at: string };

export interface StoredAnswer {
  readonly answer: IdentifiedAnswer;
  /** Unix milliseconds of the `track` call. */
  readonly queuedAt: number;
}

export interface Queued {
  readonly stored: StoredAnswer;
  readonly json: string;
  /** Of `json` in UTF-8. */
  readonly bytes: number;
  /** Failed attempts because of this answer alone. */
  failures: number;
}

const encoder = new TextEncoder();

export function queuedOf(stored: StoredAnswer): Queued {
  const json = JSON.stringify(stored.answer);
  return { stored, json, bytes: encoder.encode(json).length, failures: 0 };
}

const learnerOf = ({ stored }: Queued): string => stored.answer.user_id;

/** At most the first answer is in flight. */
interface Line {
  readonly waiting: Queued[];
  isOut: boolean;
  /** Unix milliseconds. */
  notBefore: number;
}

interface BatchLimits {
  readonly answers: number;
  readonly bytes: number;
}

/** One queue per learner; learners take turns. */
export class Lines {
  readonly #lines = new Map<string, Line>();
  /** Queues without an answer in flight. */
  readonly #ready = new Set<Line>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

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

  /** Takes the first answer of each ready queue, up to the limits, but at least one. */
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

  /** The learner's next answer becomes ready. */
  settle(queued: Queued): void {
    const line = this.#lineOf(queued);
    line.waiting.shift();
    this.#size -= 1;
    if (line.waiting.length > 0) this.#release(line, 0);
    else this.#lines.delete(learnerOf(queued));
  }

  putBack(queued: Queued, notBefore: number): void {
    this.#release(this.#lineOf(queued), notBefore);
  }

  /** @returns Unix milliseconds; Infinity without a ready answer */
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
