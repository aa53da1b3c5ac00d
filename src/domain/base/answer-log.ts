/** Answers in shareable columns, sorted by learner and arrival. */
export interface AnswerLog {
  /** Learner l has the indices `starts[l]` to `starts[l + 1] - 1`. */
  readonly starts: Uint32Array;
  readonly skill: Uint32Array;
  /** 0 if the answer has no item. */
  readonly item: Uint32Array;
  readonly correct: Uint8Array;
  /** Unix milliseconds; a constant if the log has no times. */
  readonly at: Float64Array;
  /** NaN if not reported. */
  readonly seconds: Float32Array;
  /** Logits; NaN if not supplied. */
  readonly difficulty: Float32Array;
  readonly skills: number;
  readonly items: number;
}

export const shared = {
  bytes: (n: number): Uint8Array => new Uint8Array(new SharedArrayBuffer(n)),
  ints: (n: number): Int32Array => new Int32Array(new SharedArrayBuffer(4 * n)),
  counts: (n: number): Uint32Array => new Uint32Array(new SharedArrayBuffer(4 * n)),
  floats: (n: number): Float32Array => new Float32Array(new SharedArrayBuffer(4 * n)),
  doubles: (n: number): Float64Array => new Float64Array(new SharedArrayBuffer(8 * n)),
};

export function sharedFloats(values: ArrayLike<number>): Float32Array {
  const column = shared.floats(values.length);
  column.set(values);
  return column;
}

/** One byte per learner, 1 if selected. */
export type Learners = Uint8Array;

export const everyone = ({ starts }: AnswerLog): Learners => shared.bytes(starts.length - 1).fill(1);

export const learnersWhere = (log: AnswerLog, takes: (learner: number) => boolean): Learners =>
  everyone(log).map((_, learner) => (takes(learner) ? 1 : 0));

export interface LearnerPlaces {
  readonly learner: number;
  readonly start: number;
  readonly end: number;
}

export function* placesByLearner(
  { starts }: AnswerLog,
  learners: Learners,
  from = 0,
  to = learners.length,
): Generator<LearnerPlaces, void> {
  for (let learner = from; learner < to; learner++) {
    if (learners[learner] === 1)
      yield { learner, start: starts[learner] as number, end: starts[learner + 1] as number };
  }
}

export function placesOf(log: AnswerLog, learners: Learners): Uint32Array {
  const own = [...placesByLearner(log, learners)];
  const places = shared.counts(own.reduce((sum, { start, end }) => sum + end - start, 0));
  let next = 0;
  for (const { start, end } of own) for (let place = start; place < end; place++) places[next++] = place;
  return places;
}

/** Copies the ranges. Skill and item numbers do not change. */
export function logOfPlaces(log: AnswerLog, kept: readonly Omit<LearnerPlaces, 'learner'>[]): AnswerLog {
  const starts = shared.counts(kept.length + 1);
  for (const [i, { start, end }] of kept.entries()) starts[i + 1] = (starts[i] as number) + end - start;
  const taken = <Column extends Uint8Array | Uint32Array | Float32Array | Float64Array>(
    target: Column,
    source: Column,
  ): Column => {
    for (const [i, { start, end }] of kept.entries())
      target.set(source.subarray(start, end), starts[i] as number);
    return target;
  };
  const answers = starts[kept.length] as number;
  return {
    starts,
    skill: taken(shared.counts(answers), log.skill),
    item: taken(shared.counts(answers), log.item),
    correct: taken(shared.bytes(answers), log.correct),
    at: taken(shared.doubles(answers), log.at),
    seconds: taken(shared.floats(answers), log.seconds),
    difficulty: taken(shared.floats(answers), log.difficulty),
    skills: log.skills,
    items: log.items,
  };
}

/** Stable counting sort. Member m has the indices `order[starts[m]]` to `order[starts[m + 1] - 1]`. */
export function sortedBy(members: Uint32Array, size: number, places: Uint32Array) {
  const starts = shared.counts(size + 1);
  for (const place of places) {
    const after = (members[place] as number) + 1;
    starts[after] = (starts[after] as number) + 1;
  }
  for (let member = 1; member <= size; member++)
    starts[member] = (starts[member] as number) + (starts[member - 1] as number);
  const next = starts.slice();
  const order = shared.counts(places.length);
  for (const place of places) {
    const member = members[place] as number;
    const at = next[member] as number;
    order[at] = place;
    next[member] = at + 1;
  }
  return { order, starts };
}

export const hasDifficulty = ({ difficulty }: AnswerLog): boolean => difficulty.some((b) => !Number.isNaN(b));
