import type { NonEmpty } from './common.js';

/** Answers in shareable columns, sorted by learner and arrival. */
export interface AnswerLog {
  /** Learner l has the indices `starts[l]` to `starts[l + 1] - 1`. */
  readonly starts: Uint32Array;
  /** Number of the skill set: the only skill of the question, or from `skills` on a combination of skills. */
  readonly skill: Uint32Array;
  /** 0 if the answer has no item. */
  readonly item: Uint32Array;
  readonly correct: Uint8Array;
  /** Unix milliseconds; in a fit moved to local time, so that its UTC days are local days. A constant without times. */
  readonly at: Float64Array;
  /** NaN if not reported. */
  readonly seconds: Float32Array;
  /** Logits; NaN if not supplied. */
  readonly difficulty: Float32Array;
  readonly skills: number;
  readonly items: number;
  readonly members: SkillSetMembers;
}

/** Skill set s has the skills `skills[starts[s]]` to `skills[starts[s + 1] - 1]`. */
export interface SkillSetMembers {
  readonly starts: Uint32Array;
  readonly skills: Uint32Array;
}

/** @param combinations skills of each combination */
export function createMembers(
  skills: number,
  combinations: readonly (readonly number[])[] = [],
): SkillSetMembers {
  const sets = [...Array.from({ length: skills }, (_, skill) => [skill]), ...combinations];
  const starts = sharedArrays.counts(sets.length + 1);
  for (const [i, { length }] of sets.entries()) starts[i + 1] = (starts[i] as number) + length;
  const members = sharedArrays.counts(starts[sets.length] as number);
  members.set(sets.flat());
  return { starts, skills: members };
}

/** Limits the memory of a fit. */
const maxCombinations = 50_000;

/**
 * Numbers skill sets: skills first, then combinations. Combinations beyond a limit count as their first skill.
 * @returns `numbers` by index in `sets`
 */
export function numberSkillSets(sets: readonly NonEmpty<number>[], skills: number, most = maxCombinations) {
  const combinations: NonEmpty<number>[] = [];
  const numbers = sets.map((set) =>
    set.length === 1 || combinations.length === most ? set[0] : skills + combinations.push(set) - 1,
  );
  return { numbers, members: createMembers(skills, combinations) };
}

export const countSkillSets = ({ members }: Pick<AnswerLog, 'members'>): number => members.starts.length - 1;

export const listSkillSets = (log: Pick<AnswerLog, 'members'>): NonEmpty<number>[] =>
  Array.from(
    { length: countSkillSets(log) },
    (_, set) => [...readSkillSet(log, set)] as [number, ...number[]],
  );

export const readSkillSet = (
  { members: { starts, skills } }: Pick<AnswerLog, 'members'>,
  set: number,
): Uint32Array => skills.subarray(starts[set], starts[set + 1]);

export const hasCombinations = (log: AnswerLog): boolean => countSkillSets(log) > log.skills;

export const sharedArrays = {
  bytes: (n: number): Uint8Array => new Uint8Array(new SharedArrayBuffer(n)),
  ints: (n: number): Int32Array => new Int32Array(new SharedArrayBuffer(4 * n)),
  counts: (n: number): Uint32Array => new Uint32Array(new SharedArrayBuffer(4 * n)),
  floats: (n: number): Float32Array => new Float32Array(new SharedArrayBuffer(4 * n)),
  doubles: (n: number): Float64Array => new Float64Array(new SharedArrayBuffer(8 * n)),
};

export function toSharedFloats(values: ArrayLike<number>): Float32Array {
  const column = sharedArrays.floats(values.length);
  column.set(values);
  return column;
}

/** One byte per learner, 1 if selected. */
export type LearnerSelection = Uint8Array;

export const selectAllLearners = ({ starts }: AnswerLog): LearnerSelection =>
  sharedArrays.bytes(starts.length - 1).fill(1);

export const selectLearners = (log: AnswerLog, isSelected: (learner: number) => boolean): LearnerSelection =>
  selectAllLearners(log).map((_, learner) => (isSelected(learner) ? 1 : 0));

export interface LearnerRange {
  readonly learner: number;
  readonly start: number;
  readonly end: number;
}

export function* iterateLearnerRanges(
  { starts }: AnswerLog,
  learners: LearnerSelection,
  from = 0,
  to = learners.length,
): Generator<LearnerRange, void> {
  for (let learner = from; learner < to; learner++) {
    if (learners[learner] === 1)
      yield { learner, start: starts[learner] as number, end: starts[learner + 1] as number };
  }
}

export function collectAnswerIndices(log: AnswerLog, learners: LearnerSelection): Uint32Array {
  const ranges = [...iterateLearnerRanges(log, learners)];
  const indices = sharedArrays.counts(ranges.reduce((sum, { start, end }) => sum + end - start, 0));
  let next = 0;
  for (const { start, end } of ranges) for (let index = start; index < end; index++) indices[next++] = index;
  return indices;
}

/** Copies the ranges. Skill and item numbers do not change. */
export function copyRanges(log: AnswerLog, ranges: readonly Omit<LearnerRange, 'learner'>[]): AnswerLog {
  const starts = sharedArrays.counts(ranges.length + 1);
  for (const [i, { start, end }] of ranges.entries()) starts[i + 1] = (starts[i] as number) + end - start;
  const copyColumn = <Column extends Uint8Array | Uint32Array | Float32Array | Float64Array>(
    target: Column,
    source: Column,
  ): Column => {
    for (const [i, { start, end }] of ranges.entries())
      target.set(source.subarray(start, end), starts[i] as number);
    return target;
  };
  const answers = starts[ranges.length] as number;
  return {
    starts,
    skill: copyColumn(sharedArrays.counts(answers), log.skill),
    item: copyColumn(sharedArrays.counts(answers), log.item),
    correct: copyColumn(sharedArrays.bytes(answers), log.correct),
    at: copyColumn(sharedArrays.doubles(answers), log.at),
    seconds: copyColumn(sharedArrays.floats(answers), log.seconds),
    difficulty: copyColumn(sharedArrays.floats(answers), log.difficulty),
    skills: log.skills,
    items: log.items,
    members: log.members,
  };
}

/** Stable counting sort. Member m has the indices `order[starts[m]]` to `order[starts[m + 1] - 1]`. */
export function groupByMember(members: Uint32Array, size: number, indices: Uint32Array) {
  const starts = sharedArrays.counts(size + 1);
  for (const index of indices) {
    const after = (members[index] as number) + 1;
    starts[after] = (starts[after] as number) + 1;
  }
  for (let member = 1; member <= size; member++)
    starts[member] = (starts[member] as number) + (starts[member - 1] as number);
  const next = starts.slice();
  const order = sharedArrays.counts(indices.length);
  for (const index of indices) {
    const member = members[index] as number;
    const at = next[member] as number;
    order[at] = index;
    next[member] = at + 1;
  }
  return { order, starts };
}

export const hasDifficulty = ({ difficulty }: AnswerLog): boolean => difficulty.some((b) => !Number.isNaN(b));
