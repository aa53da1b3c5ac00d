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
import { dayMs } from '../../base/days.js';
import { fitModel, forgettingModel } from '../../base/params.js';
import { halfLifeDays } from '../../tracing/forgetting.js';

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

/** How far the learner at hand has come on the skill at hand. */
interface Way {
  learner: number;
  node: number;
  attempts: number;
  lastAt: number;
  correctDays: number;
  lastCorrectDay: number;
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
  let way = startOf(-1);
  let learners = 0;
  for (const place of places) {
    const learner = growth.learner[place] as number;
    if (learner !== way.learner) {
      way = startOf(learner);
      learners++;
    }
    if (way.attempts < fitModel.maxAttempts) follow(growth, way, place);
  }
  trees.starts[skill + 1] = growth.first + growth.size;
  trees.learners[skill] = learners;
  trees.observations[skill] = countEndings(growth);
  if (!growth.sharing) centreDifficulty(growth, skill);
  growth.children.fill(0, 0, 2 * (growth.size + 1));
}

const startOf = (learner: number): Way => ({
  learner,
  node: -1,
  attempts: 0,
  lastAt: 0,
  correctDays: 0,
  lastCorrectDay: -1,
});

/** Takes the learner one answer further. */
function follow(growth: Growth, way: Way, place: number): void {
  const { log, trees } = growth;
  const correct = log.correct[place] as number;
  const at = Math.max(way.lastAt, log.at[place] as number);
  const kept = way.attempts === 0 ? 1 : keptAfterPause(at - way.lastAt, way.correctDays);
  way.node = nextNode(growth, way.node, correct, kept);
  way.attempts++;
  way.lastAt = at;
  const here = growth.first + way.node;
  trees.through[here] = (trees.through[here] as number) + 1;
  if (!growth.sharing) (trees.difficulty as Float32Array)[here] = log.difficulty[place] as number;
  const day = Math.floor(at / dayMs);
  if (correct === 1 && day > way.lastCorrectDay) {
    way.correctDays++;
    way.lastCorrectDay = day;
  }
}

/**
 * What a pause leaves of the mastery above pInit, by the rule that serves (see `effectiveMastery`), for pauses
 * long enough to split a sequence; 1 for the others, over which fits take nothing to be forgotten.
 */
function keptAfterPause(idleMs: number, correctDays: number): number {
  const days = idleMs / dayMs;
  return days > fitModel.splitDays
    ? 2 ** ((forgettingModel.graceDays - days) / halfLifeDays(correctDays))
    : 1;
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
  const difficulty = trees.difficulty as Float32Array;
  let sum = 0;
  let supplied = 0;
  for (let node = first; node < first + size; node++) {
    const b = difficulty[node] as number;
    if (Number.isNaN(b)) continue;
    sum += b;
    supplied++;
  }
  // None: those that had one were not among the first attempts.
  const mean = supplied === 0 ? 0 : sum / supplied;
  trees.difficultyMean[skill] = mean;
  for (let node = first; node < first + size; node++) {
    const b = difficulty[node] as number;
    difficulty[node] = Number.isNaN(b) ? 0 : b - mean;
  }
}
