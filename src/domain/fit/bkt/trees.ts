/**
 * Answers of each skill as prefix trees. Learners who answered alike so far share one node per attempt, which the
 * filter and the smoother then visit once for all of them: both only need sums over sequences, and those are
 * linear in the number that runs through a node. Every parent stands before its children.
 */

import {
  type AnswerLog,
  everyone,
  type Learners,
  placesByLearner,
  placesOf,
  type Sorted,
  shared,
  sortedBy,
} from '../../base/answer-log.js';
import { dayMs } from '../../base/common.js';
import { fitModel } from '../../base/params.js';
import { retentionOf } from '../../tracing/bkt.js';
import { newPractice, type Practice, practise } from './trace.js';

/** Trees of all skills, in columns over shared memory, so that threads can fit a range of skills each. */
export interface AnswerTrees {
  /** Nodes of skill k are the places `starts[k]` to `starts[k + 1] - 1`; one entry more than skills. */
  readonly starts: Uint32Array;
  /** The attempt before, counted from the skill's first node; -1 for a first attempt. */
  readonly parent: Int32Array;
  /** 1 for a right answer, 0 for a wrong one. */
  readonly correct: Uint8Array;
  /** Sequences that run through the node, and those of them that end there. */
  readonly through: Int32Array;
  readonly ending: Int32Array;
  /** Share of the mastery above pInit that is left after a long pause before this attempt; 1 without a pause. */
  readonly kept: Float32Array;
  /** Question difficulty less the skill's mean, 0 where none was supplied; null where fits leave it out. */
  readonly difficulty: Float32Array | null;
  /** Per skill: the mean that was taken off. */
  readonly difficultyMean: Float64Array;
  /** Per skill: distinct learners, and answers in use. */
  readonly learners: Uint32Array;
  readonly observations: Uint32Array;
}

export interface TreeOptions {
  /** By skill: answers given in fewer seconds are rapid guesses and left out; none where absent. */
  readonly rapidBelow?: readonly number[];
  /** Keeps each answer's difficulty, at the price of sharing no nodes on skills that have any. */
  readonly withDifficulty?: boolean;
}

/**
 * Trees of the first `fitModel.maxAttempts` answers per learner and skill. A pause of more than
 * `fitModel.splitDays` starts a branch of its own, which continues from the decayed mastery.
 */
export function growTrees(log: AnswerLog, learners: Learners, options: TreeOptions = {}): AnswerTrees {
  const { rapidBelow = [], withDifficulty = false } = options;
  // Seconds that were not reported are NaN, which is below nothing.
  const isRapid = (place: number): boolean =>
    (log.seconds[place] as number) < (rapidBelow[log.skill[place] as number] ?? 0);
  const used = placesOf(log, learners).filter((place) => !isRapid(place));
  const sorted = sortedBy(log.skill, log.skills, used);
  const growth = newGrowth(log, used.length, withDifficulty);
  for (let skill = 0; skill < log.skills; skill++) growSkill(growth, sorted, skill);
  return growth.trees;
}

interface Growth {
  readonly log: AnswerLog;
  readonly trees: AnswerTrees;
  /** The learner of each answer of the log. */
  readonly learner: Uint32Array;
  /** Next node, plus one, by node and answer; row 0 is before the first attempt. 0 where there is none yet. */
  readonly children: Int32Array;
  /** Of the skill that grows now: its first place, its nodes so far, and whether answers share nodes. */
  first: number;
  size: number;
  sharing: boolean;
}

function newGrowth(log: AnswerLog, answers: number, withDifficulty: boolean): Growth {
  const trees = {
    starts: shared.counts(log.skills + 1),
    parent: shared.ints(answers),
    correct: shared.bytes(answers),
    through: shared.ints(answers),
    ending: shared.ints(answers),
    kept: shared.floats(answers),
    difficulty: withDifficulty ? shared.floats(answers) : null,
    difficultyMean: shared.doubles(log.skills),
    learners: shared.counts(log.skills),
    observations: shared.counts(log.skills),
  };
  const learner = new Uint32Array(log.skill.length);
  for (const own of placesByLearner(log, everyone(log))) learner.fill(own.learner, own.start, own.end);
  const children = new Int32Array(2 * (answers + 1));
  return { log, trees, learner, children, first: 0, size: 0, sharing: true };
}

function growSkill(growth: Growth, { starts, order }: Sorted, skill: number): void {
  const { trees, log } = growth;
  const places = order.subarray(starts[skill], starts[skill + 1]);
  growth.first = trees.starts[skill] as number;
  growth.size = 0;
  growth.sharing = trees.difficulty === null || !places.some((place) => !Number.isNaN(log.difficulty[place]));
  let practice = newPractice(-1);
  let node = -1;
  let learners = 0;
  for (const place of places) {
    const learner = growth.learner[place] as number;
    if (learner !== practice.learner) {
      practice = newPractice(learner);
      node = -1;
      learners++;
    }
    if (practice.attempts < fitModel.maxAttempts) node = follow(growth, practice, node, place);
  }
  trees.starts[skill + 1] = growth.first + growth.size;
  trees.learners[skill] = learners;
  trees.observations[skill] = countEndings(growth);
  if (!growth.sharing) centreDifficulty(growth, skill);
  growth.children.fill(0, 0, 2 * (growth.size + 1));
}

/**
 * Takes the learner one answer further than a node. A pause too short to split a sequence lets fits forget nothing.
 * @returns the node of the answer
 */
function follow(growth: Growth, practice: Practice, from: number, place: number): number {
  const { log, trees } = growth;
  const correct = log.correct[place] as number;
  const at = Math.max(practice.lastAttemptAt, log.at[place] as number);
  const isSplit = practice.attempts > 0 && (at - practice.lastAttemptAt) / dayMs > fitModel.splitDays;
  const node = nextNode(growth, from, correct, isSplit ? retentionOf(practice, at) : 1);
  practise(practice, at, correct === 1);
  const here = growth.first + node;
  trees.through[here] = (trees.through[here] as number) + 1;
  if (!growth.sharing) (trees.difficulty as Float32Array)[here] = log.difficulty[place] as number;
  return node;
}

function nextNode(growth: Growth, parent: number, correct: number, kept: number): number {
  const slot = 2 * (parent + 1) + correct;
  const sharing = growth.sharing && kept === 1;
  const known = sharing ? (growth.children[slot] as number) - 1 : -1;
  if (known >= 0) return known;
  const node = growth.size++;
  if (sharing) growth.children[slot] = node + 1;
  const { trees, first } = growth;
  trees.parent[first + node] = parent;
  trees.correct[first + node] = correct;
  trees.kept[first + node] = kept;
  return node;
}

/** Sequences end where they do not run on; a long pause ends one too. Returns the answers of the skill. */
function countEndings({ trees, first, size }: Growth): number {
  const { parent, through, ending, kept } = trees;
  let answers = 0;
  for (let node = first; node < first + size; node++) {
    const count = through[node] as number;
    answers += count;
    ending[node] = count;
    const from = parent[node] as number;
    if (from >= 0 && kept[node] === 1) ending[first + from] = (ending[first + from] as number) - count;
  }
  return answers;
}

function centreDifficulty({ trees, first, size }: Growth, skill: number): void {
  const own = (trees.difficulty as Float32Array).subarray(first, first + size);
  const supplied = own.filter((b) => !Number.isNaN(b));
  // None: those that had one were not among the first attempts.
  const mean = supplied.length === 0 ? 0 : supplied.reduce((sum, b) => sum + b, 0) / supplied.length;
  trees.difficultyMean[skill] = mean;
  own.set(own.map((b) => (Number.isNaN(b) ? 0 : b - mean)));
}
