/** Prefix trees: learners with equal answers share nodes. Parents come before children. */

import {
  type AnswerLog,
  collectAnswerIndices,
  groupByMember,
  hasCombinations,
  iterateLearnerRanges,
  type LearnerSelection,
  listSkillSets,
  selectAllLearners,
  sharedArrays,
} from '../../base/answer-log.js';
import { dayMs, type NonEmpty } from '../../base/common.js';
import { fitConstants } from '../../base/fit-constants.js';
import { computeRetention } from '../../tracing/bkt.js';
import { createAttemptHistory, recordAttempt, type TracedModel, traceLog } from './trace-log.js';

const createTrees = (skills: number, answers: number, withDifficulty: boolean, withOthers: boolean) => ({
  /** Skill k has the nodes `starts[k]` to `starts[k + 1] - 1`. */
  starts: sharedArrays.counts(skills + 1),
  /** Relative to the skill's first node; -1 for a first attempt. */
  parent: sharedArrays.ints(answers),
  correct: sharedArrays.bytes(answers),
  /** Sequences through the node, and sequences that end there. */
  through: sharedArrays.ints(answers),
  ending: sharedArrays.ints(answers),
  /** Retention after a long pause before the attempt, else 1. */
  retained: sharedArrays.floats(answers),
  /** Centred per skill; 0 if not supplied. NaN while the trees grow. */
  difficulty: withDifficulty ? sharedArrays.floats(answers) : null,
  /** Chance that all other skills of a wrong answer succeed; 1 for a correct one. */
  others: withOthers ? sharedArrays.floats(answers) : null,
  difficultyMean: sharedArrays.doubles(skills),
  learners: sharedArrays.counts(skills),
  observations: sharedArrays.counts(skills),
});

export type AnswerTrees = Readonly<ReturnType<typeof createTrees>>;

export interface TreeOptions {
  /** Seconds by skill set. Faster answers are rapid guesses and left out, also of pauses and attempt limits. */
  readonly rapidThresholds?: readonly number[];
  readonly withDifficulty?: boolean;
  /** For answers with several skills: predicts the other skills. Default: they succeed. */
  readonly model?: TracedModel;
}

export const sliceNodes = (trees: AnswerTrees, from: number, to?: number) => ({
  parent: trees.parent.subarray(from, to),
  correct: trees.correct.subarray(from, to),
  through: trees.through.subarray(from, to),
  ending: trees.ending.subarray(from, to),
  retained: trees.retained.subarray(from, to),
  difficulty: trees.difficulty?.subarray(from, to) ?? null,
  others: trees.others?.subarray(from, to) ?? null,
});

type TreeNodes = ReturnType<typeof sliceNodes>;

/**
 * A pause over `splitDays` starts a new branch. Nodes with a difficulty, or with other skills that may fail, are
 * never shared.
 */
export function growTrees(
  log: AnswerLog,
  learners: LearnerSelection,
  options: TreeOptions = {},
): AnswerTrees {
  const { rapidThresholds = [], withDifficulty = false, model } = options;
  // Missing seconds are NaN, which is never below a threshold.
  const isRapid = (index: number): boolean =>
    (log.seconds[index] as number) < (rapidThresholds[log.skill[index] as number] ?? 0);
  const usedAnswers = collectAnswerIndices(log, learners).filter((index) => !isRapid(index));
  const attempts = listAttempts(log, usedAnswers, model ? traceOthers(log, learners, model) : new Map());
  const { length } = attempts.skill;
  const trees = createTrees(log.skills, length, withDifficulty, hasCombinations(log));
  const learnerOf = new Uint32Array(log.skill.length);
  for (const range of iterateLearnerRanges(log, selectAllLearners(log)))
    learnerOf.fill(range.learner, range.start, range.end);
  const growth = { log, trees, attempts, learnerOf, children: new Int32Array(2 * (length + 1)) };
  const { starts, order } = groupByMember(
    attempts.skill,
    log.skills,
    attempts.skill.map((_, i) => i),
  );
  for (let skill = 0; skill < log.skills; skill++)
    growSkill(growth, skill, order.subarray(starts[skill], starts[skill + 1]));
  return trees;
}

/** By answer index: for each skill, the chance that the others succeed. */
function traceOthers(
  log: AnswerLog,
  learners: LearnerSelection,
  model: TracedModel,
): ReadonlyMap<number, readonly number[]> {
  const others = new Map<number, readonly number[]>();
  if (hasCombinations(log))
    traceLog(log, learners, model, (index, chance, _, skills) => {
      if (log.correct[index] === 0 && skills.length > 1)
        others.set(
          index,
          skills.map(({ pCorrect }) => chance / pCorrect),
        );
    });
  return others;
}

/** One per answer and skill. */
function listAttempts(
  log: AnswerLog,
  indices: Uint32Array,
  othersOf: ReadonlyMap<number, readonly number[]>,
) {
  const sets = listSkillSets(log);
  const setOf = (index: number) => sets[log.skill[index] as number] as NonEmpty<number>;
  const count = indices.reduce((sum, index) => sum + setOf(index).length, 0);
  const [answer, skill, others] = [
    new Uint32Array(count),
    new Uint32Array(count),
    new Float32Array(count).fill(1),
  ];
  let next = 0;
  for (const index of indices)
    for (const [i, member] of setOf(index).entries()) {
      answer[next] = index;
      skill[next] = member;
      others[next++] = othersOf.get(index)?.[i] ?? 1;
    }
  return { answer, skill, others };
}

interface GrowthContext {
  readonly log: AnswerLog;
  readonly trees: AnswerTrees;
  readonly attempts: ReturnType<typeof listAttempts>;
  readonly learnerOf: Uint32Array;
  /** Child node + 1, by node and answer. Row 0 is the root. */
  readonly children: Int32Array;
}

function growSkill(
  { log, trees, attempts, learnerOf, children }: GrowthContext,
  skill: number,
  own: Uint32Array,
): void {
  const first = trees.starts[skill] as number;
  const nodes = sliceNodes(trees, first);
  const hasDifficulty = own.some((i) => !Number.isNaN(log.difficulty[attempts.answer[i] as number]));
  const difficulty = hasDifficulty ? nodes.difficulty : null;
  let history = createAttemptHistory(-1);
  let [node, size, learners] = [-1, 0, 0];
  for (const attempt of own) {
    const index = attempts.answer[attempt] as number;
    const others = attempts.others[attempt] as number;
    const learner = learnerOf[index] as number;
    if (learner !== history.learner) {
      history = createAttemptHistory(learner);
      node = -1;
      learners++;
    }
    if (history.attempts === fitConstants.maxAttempts) continue;
    const correct = log.correct[index] as number;
    const at = Math.max(history.lastAttemptAt, log.at[index] as number);
    const isSplit = history.attempts > 0 && (at - history.lastAttemptAt) / dayMs > fitConstants.splitDays;
    const retained = isSplit ? computeRetention(history, at) : 1;
    recordAttempt(history, at, correct === 1);
    const slot = 2 * (node + 1) + correct;
    const isShared = difficulty === null && retained === 1 && others === 1;
    const existing = isShared ? (children[slot] as number) : 0;
    if (existing === 0) {
      nodes.parent[size] = node;
      nodes.correct[size] = correct;
      nodes.retained[size] = retained;
      size++;
      if (isShared) children[slot] = size;
    }
    node = (existing === 0 ? size : existing) - 1;
    nodes.through[node] = (nodes.through[node] as number) + 1;
    if (nodes.others !== null) nodes.others[node] = others;
    if (difficulty !== null) difficulty[node] = log.difficulty[index] as number;
  }
  trees.starts[skill + 1] = first + size;
  trees.learners[skill] = learners;
  trees.observations[skill] = countEndings(nodes, size);
  if (difficulty !== null) trees.difficultyMean[skill] = centre(difficulty.subarray(0, size));
  children.fill(0, 0, 2 * (size + 1));
}

/** A long pause also ends a sequence. */
function countEndings({ parent, through, ending, retained }: TreeNodes, size: number): number {
  let answers = 0;
  for (let node = 0; node < size; node++) {
    const count = through[node] as number;
    answers += count;
    ending[node] = count;
    const from = parent[node] as number;
    if (from >= 0 && retained[node] === 1) ending[from] = (ending[from] as number) - count;
  }
  return answers;
}

function centre(difficulty: Float32Array): number {
  const supplied = difficulty.filter((b) => !Number.isNaN(b));
  const mean = supplied.length === 0 ? 0 : supplied.reduce((sum, b) => sum + b, 0) / supplied.length;
  difficulty.set(difficulty.map((b) => (Number.isNaN(b) ? 0 : b - mean)));
  return mean;
}
