/** Prefix trees: learners with equal answers share nodes. Parents come before children. */

import {
  type AnswerLog,
  collectAnswerIndices,
  groupByMember,
  iterateLearnerRanges,
  type LearnerSelection,
  selectAllLearners,
  sharedArrays,
} from '../../base/answer-log.js';
import { dayMs } from '../../base/common.js';
import { fitConstants } from '../../base/fit-constants.js';
import { computeRetention } from '../../tracing/bkt.js';
import { createAttemptHistory, recordAttempt } from './trace-log.js';

const createTrees = (skills: number, answers: number, withDifficulty: boolean) => ({
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
  difficultyMean: sharedArrays.doubles(skills),
  learners: sharedArrays.counts(skills),
  observations: sharedArrays.counts(skills),
});

export type AnswerTrees = Readonly<ReturnType<typeof createTrees>>;

export interface TreeOptions {
  /** Seconds by skill index. Faster answers are rapid guesses and left out, also of pauses and attempt limits. */
  readonly rapidThresholds?: readonly number[];
  readonly withDifficulty?: boolean;
}

export const sliceNodes = (trees: AnswerTrees, from: number, to?: number) => ({
  parent: trees.parent.subarray(from, to),
  correct: trees.correct.subarray(from, to),
  through: trees.through.subarray(from, to),
  ending: trees.ending.subarray(from, to),
  retained: trees.retained.subarray(from, to),
  difficulty: trees.difficulty?.subarray(from, to) ?? null,
});

type TreeNodes = ReturnType<typeof sliceNodes>;

/** A pause over `splitDays` starts a new branch. Nodes with a difficulty are never shared. */
export function growTrees(
  log: AnswerLog,
  learners: LearnerSelection,
  options: TreeOptions = {},
): AnswerTrees {
  const { rapidThresholds = [], withDifficulty = false } = options;
  // Missing seconds are NaN, which is never below a threshold.
  const isRapid = (index: number): boolean =>
    (log.seconds[index] as number) < (rapidThresholds[log.skill[index] as number] ?? 0);
  const usedAnswers = collectAnswerIndices(log, learners).filter((index) => !isRapid(index));
  const trees = createTrees(log.skills, usedAnswers.length, withDifficulty);
  const learnerOf = new Uint32Array(log.skill.length);
  for (const range of iterateLearnerRanges(log, selectAllLearners(log)))
    learnerOf.fill(range.learner, range.start, range.end);
  const growth = { log, trees, learnerOf, children: new Int32Array(2 * (usedAnswers.length + 1)) };
  const { starts, order } = groupByMember(log.skill, log.skills, usedAnswers);
  for (let skill = 0; skill < log.skills; skill++)
    growSkill(growth, skill, order.subarray(starts[skill], starts[skill + 1]));
  return trees;
}

interface GrowthContext {
  readonly log: AnswerLog;
  readonly trees: AnswerTrees;
  readonly learnerOf: Uint32Array;
  /** Child node + 1, by node and answer. Row 0 is the root. */
  readonly children: Int32Array;
}

function growSkill(
  { log, trees, learnerOf, children }: GrowthContext,
  skill: number,
  indices: Uint32Array,
): void {
  const first = trees.starts[skill] as number;
  const nodes = sliceNodes(trees, first);
  const hasDifficulty = indices.some((index) => !Number.isNaN(log.difficulty[index]));
  const difficulty = hasDifficulty ? nodes.difficulty : null;
  let history = createAttemptHistory(-1);
  let [node, size, learners] = [-1, 0, 0];
  for (const index of indices) {
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
    const isShared = difficulty === null && retained === 1;
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
