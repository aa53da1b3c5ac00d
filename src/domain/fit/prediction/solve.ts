import { type BoxedQuadratic, descend, mirror, newQuadratic } from '../../base/descend.js';
import { features, skillColumns } from '../../prediction/features.js';
import { type Block, type BlockName, type FitMemory, rangeAnswers, sumsPerMember } from './blocks.js';

const descent = { maxRounds: 3000, tolerance: 1e-7, ridge: 0 };
/** Members below have no terms: no item, and no wrong answer in a row. */
const firstMember: Readonly<Record<BlockName, 0 | 1>> = { weights: 0, skills: 0, items: 1, runs: 1 };

/** Moves every member's terms to the optimum of what the ranges summed up, inside the signs of the features. */
export function solveStep(memory: FitMemory, name: BlockName): void {
  const block = memory.blocks[name];
  const { width, terms, moves, starts } = block;
  const problem = newQuadratic(width);
  moves.fill(0);
  for (let member = firstMember[name]; member + 1 < starts.length; member++) {
    if (starts[member] === starts[member + 1]) continue;
    const at = member * width;
    addUp(problem, block, member);
    limit(problem, memory, name, member);
    addRidges(problem, block, at);
    descend(problem, descent);
    for (let j = 0; j < width; j++) {
      moves[at + j] = (problem.solution[j] as number) - (terms[at + j] as number);
      terms[at + j] = problem.solution[j] as number;
    }
  }
}

/** The sums of all ranges in which the member has answers, in their order. */
function addUp({ gradient, hessian }: BoxedQuadratic, { width, sums, starts }: Block, member: number): void {
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
  mirror(hessian, width);
}

/** How far each term may go: one step's length, and not where the feature's whole weight would lose its sign. */
function limit({ low, high }: BoxedQuadratic, memory: FitMemory, name: BlockName, member: number): void {
  const { width, columns, terms, maxMoves } = memory.blocks[name];
  const at = member * width;
  for (let j = 0; j < width; j++) {
    low[j] = (terms[at + j] as number) - (maxMoves[j] as number);
    high[j] = (terms[at + j] as number) + (maxMoves[j] as number);
    const column = columns[j - 1];
    const sign = column === undefined ? 0 : (features[column]?.sign ?? 0);
    if (column === undefined || sign === 0) continue;
    const zero = -weightBelow(memory, name, member, column);
    const bound = sign > 0 ? Math.max : Math.min;
    low[j] = bound(low[j] as number, zero);
    high[j] = bound(high[j] as number, zero);
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

/** Keeps the quadratic of an intercept without a ridge a quadratic where every answer is certain. */
const tinyRidge = 1e-6;

/** @param at where the member's terms stand, from which the descent starts */
function addRidges(
  { gradient, hessian, solution }: BoxedQuadratic,
  { width, terms, ridges, centres }: Block,
  at: number,
): void {
  for (let j = 0; j < width; j++) {
    const term = terms[at + j] as number;
    const ridge = ridges[j] as number;
    solution[j] = term;
    gradient[j] = (gradient[j] as number) + ridge * (term - (centres[j] as number));
    hessian[j * width + j] = (hessian[j * width + j] as number) + ridge + tinyRidge;
  }
}
