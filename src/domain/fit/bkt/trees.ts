/** Prefix trees: learners with equal answers share nodes. Parents come before children. */

import {
  type AnswerLog,
  everyone,
  type Learners,
  placesByLearner,
  placesOf,
  shared,
  sortedBy,
} from '../../base/answer-log.js';
import { dayMs } from '../../base/common.js';
import { fitModel } from '../../base/fit-constants.js';
import { retentionOf } from '../../tracing/bkt.js';
import { newPractice, practise } from './trace.js';

const newTrees = (skills: number, answers: number, withDifficulty: boolean) => ({
  /** Skill k has the nodes `starts[k]` to `starts[k + 1] - 1`. */
  starts: shared.counts(skills + 1),
  /** Relative to the skill's first node; -1 for a first attempt. */
  parent: shared.ints(answers),
  correct: shared.bytes(answers),
  /** Sequences through the node, and sequences that end there. */
  through: shared.ints(answers),
  ending: shared.ints(answers),
  /** Retention after a long pause before the attempt, else 1. */
  kept: shared.floats(answers),
  /** Centred per skill, 0 if not supplied. */
  difficulty: withDifficulty ? shared.floats(answers) : null,
  difficultyMean: shared.doubles(skills),
  learners: shared.counts(skills),
  observations: shared.counts(skills),
});

export type AnswerTrees = Readonly<ReturnType<typeof newTrees>>;

export interface TreeOptions {
  /** In seconds. Faster answers are ignored as rapid guesses. */
  readonly rapidBelow?: readonly number[];
  readonly withDifficulty?: boolean;
}

export const nodesOf = (trees: AnswerTrees, from: number, to?: number) => ({
  parent: trees.parent.subarray(from, to),
  correct: trees.correct.subarray(from, to),
  through: trees.through.subarray(from, to),
  ending: trees.ending.subarray(from, to),
  kept: trees.kept.subarray(from, to),
  difficulty: trees.difficulty?.subarray(from, to) ?? null,
});

type Nodes = ReturnType<typeof nodesOf>;

/** A pause over `splitDays` starts a new branch. */
export function growTrees(log: AnswerLog, learners: Learners, options: TreeOptions = {}): AnswerTrees {
  const { rapidBelow = [], withDifficulty = false } = options;
  // Missing seconds are NaN, which is never below a threshold.
  const isRapid = (place: number): boolean =>
    (log.seconds[place] as number) < (rapidBelow[log.skill[place] as number] ?? 0);
  const used = placesOf(log, learners).filter((place) => !isRapid(place));
  const trees = newTrees(log.skills, used.length, withDifficulty);
  const learnerOf = new Uint32Array(log.skill.length);
  for (const own of placesByLearner(log, everyone(log))) learnerOf.fill(own.learner, own.start, own.end);
  const growth = { log, trees, learnerOf, children: new Int32Array(2 * (used.length + 1)) };
  const { starts, order } = sortedBy(log.skill, log.skills, used);
  for (let skill = 0; skill < log.skills; skill++)
    growSkill(growth, skill, order.subarray(starts[skill], starts[skill + 1]));
  return trees;
}

interface Growth {
  readonly log: AnswerLog;
  readonly trees: AnswerTrees;
  readonly learnerOf: Uint32Array;
  /** Child node + 1, by node and answer. Row 0 is the root. */
  readonly children: Int32Array;
}

function growSkill({ log, trees, learnerOf, children }: Growth, skill: number, places: Uint32Array): void {
  const first = trees.starts[skill] as number;
  const nodes = nodesOf(trees, first);
  const hasDifficulty = places.some((place) => !Number.isNaN(log.difficulty[place]));
  const difficulty = hasDifficulty ? nodes.difficulty : null;
  let practice = newPractice(-1);
  let [node, size, learners] = [-1, 0, 0];
  for (const place of places) {
    const learner = learnerOf[place] as number;
    if (learner !== practice.learner) {
      practice = newPractice(learner);
      node = -1;
      learners++;
    }
    if (practice.attempts === fitModel.maxAttempts) continue;
    const correct = log.correct[place] as number;
    const at = Math.max(practice.lastAttemptAt, log.at[place] as number);
    const isSplit = practice.attempts > 0 && (at - practice.lastAttemptAt) / dayMs > fitModel.splitDays;
    const kept = isSplit ? retentionOf(practice, at) : 1;
    practise(practice, at, correct === 1);
    const slot = 2 * (node + 1) + correct;
    const sharing = difficulty === null && kept === 1;
    const known = sharing ? (children[slot] as number) : 0;
    if (known === 0) {
      nodes.parent[size] = node;
      nodes.correct[size] = correct;
      nodes.kept[size] = kept;
      size++;
      if (sharing) children[slot] = size;
    }
    node = (known === 0 ? size : known) - 1;
    nodes.through[node] = (nodes.through[node] as number) + 1;
    if (difficulty !== null) difficulty[node] = log.difficulty[place] as number;
  }
  trees.starts[skill + 1] = first + size;
  trees.learners[skill] = learners;
  trees.observations[skill] = countEndings(nodes, size);
  if (difficulty !== null) trees.difficultyMean[skill] = centre(difficulty.subarray(0, size));
  children.fill(0, 0, 2 * (size + 1));
}

/** A long pause also ends a sequence. */
function countEndings({ parent, through, ending, kept }: Nodes, size: number): number {
  let answers = 0;
  for (let node = 0; node < size; node++) {
    const count = through[node] as number;
    answers += count;
    ending[node] = count;
    const from = parent[node] as number;
    if (from >= 0 && kept[node] === 1) ending[from] = (ending[from] as number) - count;
  }
  return answers;
}

function centre(difficulty: Float32Array): number {
  const supplied = difficulty.filter((b) => !Number.isNaN(b));
  const mean = supplied.length === 0 ? 0 : supplied.reduce((sum, b) => sum + b, 0) / supplied.length;
  difficulty.set(difficulty.map((b) => (Number.isNaN(b) ? 0 : b - mean)));
  return mean;
}
