import { features, skillColumns } from '../../prediction/features.js';
import { type Block, type BlockName, type FitMemory, rangeAnswers, sumsPerMember } from './fit-blocks.js';

/** Moves every member's terms to the optimum of what the ranges summed up, inside the signs of the features. */
export function solveStep(memory: FitMemory, name: BlockName): Solved {
  const block = memory.blocks[name];
  const { width, terms, moves, starts } = block;
  const problem = newProblem(width);
  moves.fill(0);
  for (let member = firstMember[name]; member + 1 < starts.length; member++) {
    if (starts[member] === starts[member + 1]) continue;
    addUp(problem, block, member);
    limit(problem, memory, name, member);
    const at = member * width;
    descend(problem, block, at);
    for (let j = 0; j < width; j++) {
      moves[at + j] = (problem.solution[j] as number) - (terms[at + j] as number);
      terms[at + j] = problem.solution[j] as number;
    }
  }
  return { members: starts.length - 1 };
}

interface Solved {
  readonly members: number;
}

/** Members below have no terms: no item, and no wrong answer in a row. */
const firstMember: Readonly<Record<BlockName, 0 | 1>> = { weights: 0, skills: 0, items: 1, runs: 1 };

/** A quadratic inside a box: the log loss of one member's answers to second order. */
interface Problem {
  readonly gradient: Float64Array;
  /** Symmetric, by rows. */
  readonly hessian: Float64Array;
  readonly low: Float64Array;
  readonly high: Float64Array;
  readonly solution: Float64Array;
}

const newProblem = (width: number): Problem => ({
  gradient: new Float64Array(width),
  hessian: new Float64Array(width * width),
  low: new Float64Array(width),
  high: new Float64Array(width),
  solution: new Float64Array(width),
});

/** The sums of all ranges in which the member has answers, in their order. */
function addUp({ gradient, hessian }: Problem, { width, sums, starts }: Block, member: number): void {
  const size = sumsPerMember(width);
  const last = Math.floor(((starts[member + 1] as number) - 1) / rangeAnswers);
  gradient.fill(0);
  hessian.fill(0);
  for (let range = Math.floor((starts[member] as number) / rangeAnswers); range <= last; range++) {
    const from = (member + range) * size;
    let at = from + width;
    for (let i = 0; i < width; i++) {
      gradient[i] = (gradient[i] as number) - (sums[from + i] as number);
      for (let j = 0; j <= i; j++) {
        hessian[i * width + j] = (hessian[i * width + j] as number) + (sums[at++] as number);
      }
    }
  }
  for (let i = 0; i < width; i++) {
    for (let j = 0; j < i; j++) hessian[j * width + i] = hessian[i * width + j] as number;
  }
}

/** How far each term may go: one step's length, and not where the feature's whole weight would lose its sign. */
function limit({ low, high }: Problem, memory: FitMemory, name: BlockName, member: number): void {
  const { width, columns, terms, maxMoves } = memory.blocks[name];
  const at = member * width;
  for (let j = 0; j < width; j++) {
    low[j] = (terms[at + j] as number) - (maxMoves[j] as number);
    high[j] = (terms[at + j] as number) + (maxMoves[j] as number);
    const column = columns[j - 1];
    const sign = column === undefined ? 0 : (features[column]?.sign ?? 0);
    if (column === undefined || sign === 0) continue;
    const zero = -weightBelow(memory, name, member, column);
    if (sign > 0) {
      low[j] = Math.max(low[j] as number, zero);
      high[j] = Math.max(high[j] as number, zero);
    } else {
      low[j] = Math.min(low[j] as number, zero);
      high[j] = Math.min(high[j] as number, zero);
    }
  }
}

/** What a slope is added to: the feature's weight, and for an item the slope of its skill. */
function weightBelow(
  { blocks, skillOf }: FitMemory,
  name: BlockName,
  member: number,
  column: number,
): number {
  if (name === 'weights') return 0;
  const weight = blocks.weights.terms[1 + column] as number;
  const inSkill = skillColumns.indexOf(column);
  if (name === 'skills' || inSkill < 0) return weight;
  const skill = skillOf[member] as number;
  return weight + (blocks.skills.terms[skill * blocks.skills.width + 1 + inSkill] as number);
}

const maxRounds = 3000;
const tolerance = 1e-7;
/** Keeps the quadratic of an intercept without a ridge a quadratic where every answer is certain. */
const tinyRidge = 1e-6;

/** Minimum of the quadratic and the ridges by coordinate descent; `at` is where the member's terms stand. */
function descend(problem: Problem, { terms, ridges, centres }: Block, at: number): void {
  const { gradient, hessian, solution } = problem;
  const width = solution.length;
  for (let j = 0; j < width; j++) {
    const term = terms[at + j] as number;
    const ridge = ridges[j] as number;
    solution[j] = term;
    gradient[j] = (gradient[j] as number) + ridge * (term - (centres[j] as number));
    hessian[j * width + j] = (hessian[j * width + j] as number) + ridge + tinyRidge;
  }
  for (let round = 0; round < maxRounds; round++) {
    let largest = 0;
    for (let j = 0; j < width; j++) largest = Math.max(largest, moveTerm(problem, j));
    if (largest < tolerance) return;
  }
}

/** Moves one term to its best place with the others as they are. @returns how far */
function moveTerm({ gradient, hessian, low, high, solution }: Problem, j: number): number {
  const width = solution.length;
  const old = solution[j] as number;
  const aim = old - (gradient[j] as number) / (hessian[j * width + j] as number);
  const next = Math.min(Math.max(aim, low[j] as number), high[j] as number);
  const move = next - old;
  if (move === 0) return 0;
  solution[j] = next;
  for (let i = 0; i < width; i++) {
    gradient[i] = (gradient[i] as number) + (hessian[j * width + i] as number) * move;
  }
  return Math.abs(move);
}
