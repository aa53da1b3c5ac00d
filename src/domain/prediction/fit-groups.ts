import { predictionModel } from '../params.js';
import { clamp, sigmoid } from '../probability.js';
import { features, itemColumns, skillColumns } from './features.js';
import { type FitData, standardised } from './fit-data.js';
import type { Weights } from './fit-weights.js';
import { maxItemRun } from './traces.js';

/** One term for each skill, item or run of wrong answers, in standardised units: an intercept or a slope. */
export interface Group {
  /** To whom an answer belongs, by place in the log. */
  readonly members: Uint32Array | Uint8Array;
  /** Members below this one have no term: 1 where 0 stands for none. */
  readonly first: 0 | 1;
  /** The feature that it is a slope on; null: an intercept. */
  readonly column: number | null;
  readonly ridge: number;
  readonly terms: Float64Array;
  /** What the member's term adds to, besides the feature's weight: a slope of the item adds to that of its skill. */
  readonly under: (member: number) => number;
}

/** All groups of one fit. */
export interface Groups {
  readonly skillIntercepts: Group;
  /** In the order of `skillColumns`. */
  readonly skillSlopes: readonly Group[];
  readonly itemIntercepts: Group;
  /** In the order of `itemColumns`. */
  readonly itemSlopes: readonly Group[];
  readonly runs: Group;
}

const nothing = (_member: number): number => 0;

export function newGroups(data: FitData, skills: number, items: number): Groups {
  const { skillRidge, slopeRidge, itemRidge, itemAbilityRidge, itemSlopeRidge, runRidge } =
    predictionModel.fit;
  const group = (
    members: Group['members'],
    size: number,
    column: number | null,
    ridge: number,
    under: Group['under'] = nothing,
  ): Group => {
    const first = members === data.skill ? 0 : 1;
    return { members, first, column, ridge, terms: new Float64Array(size), under };
  };
  const skillOf = skillsOfItems(data, items);
  const skillSlopes = skillColumns.map((column) => group(data.skill, skills, column, slopeRidge));
  const itemSlope = (column: number): Group => {
    const ridge = features[column]?.name === 'ability' ? itemAbilityRidge : itemSlopeRidge;
    const below = skillSlopes.find((slope) => slope.column === column)?.terms;
    return group(data.item, items + 1, column, ridge, (item) => below?.[skillOf[item] as number] ?? 0);
  };
  return {
    skillIntercepts: group(data.skill, skills, null, skillRidge),
    skillSlopes,
    itemIntercepts: group(data.item, items + 1, null, itemRidge),
    itemSlopes: itemColumns.map(itemSlope),
    runs: group(data.run, maxItemRun + 1, null, runRidge),
  };
}

/** The skill that each item was last asked for. */
function skillsOfItems({ places, skill, item }: FitData, items: number): Uint32Array {
  const skillOf = new Uint32Array(items + 1);
  for (const place of places) skillOf[item[place] as number] = skill[place] as number;
  return skillOf;
}

/** In the order in which they are fitted: slopes of items come after those of skills, which bound them. */
export const inOrder = (groups: Groups): readonly Group[] => [
  groups.skillIntercepts,
  ...groups.skillSlopes,
  groups.itemIntercepts,
  ...groups.itemSlopes,
  groups.runs,
];

/** Adds the terms times their features to the log-odds of every answer. */
export function addTerms(data: FitData, { members, first, column }: Group, terms: Float64Array): void {
  const { places, logits } = data;
  for (let answer = 0; answer < places.length; answer++) {
    const place = places[answer] as number;
    const member = members[place] as number;
    if (member < first) continue;
    logits[answer] = (logits[answer] as number) + (terms[member] as number) * valueAt(data, place, column);
  }
}

/** 1 for an intercept, else the standardised feature. */
const valueAt = (data: FitData, place: number, column: number | null): number =>
  column === null ? 1 : standardised(data, place, column);

/** One Newton step of every term of the group at once, for each touches answers of its own; ridge towards 0. */
export function stepGroup(data: FitData, group: Group, weights: Weights): void {
  const { terms, ridge } = group;
  const { slope, curvature } = secondOrder(data, group);
  const moves = new Float64Array(terms.length);
  const { maxGroupStep } = predictionModel.fit;
  for (let member = group.first; member < terms.length; member++) {
    const old = terms[member] as number;
    const step = ((slope[member] as number) - ridge * old) / ((curvature[member] as number) + ridge);
    const next = bounded(old + clamp(step, -maxGroupStep, maxGroupStep), group, member, weights);
    terms[member] = next;
    moves[member] = next - old;
  }
  addTerms(data, group, moves);
}

/** The term cut where the whole weight of the feature would lose its sign. */
function bounded(term: number, { column, under }: Group, member: number, weights: Weights): number {
  const sign = column === null ? 0 : (features[column]?.sign ?? 0);
  if (column === null || sign === 0) return term;
  const below = (weights[column + 1] as number) + under(member);
  return sign * (below + term) < 0 ? -below : term;
}

interface SecondOrder {
  readonly slope: Float64Array;
  readonly curvature: Float64Array;
}

/** Of the log likelihood, by member. */
function secondOrder(data: FitData, { members, first, column, terms }: Group): SecondOrder {
  const { places, correct, logits } = data;
  const slope = new Float64Array(terms.length);
  const curvature = new Float64Array(terms.length);
  for (let answer = 0; answer < places.length; answer++) {
    const place = places[answer] as number;
    const member = members[place] as number;
    if (member < first) continue;
    const value = valueAt(data, place, column);
    const p = sigmoid(logits[answer] as number);
    slope[member] = (slope[member] as number) + ((correct[place] as number) - p) * value;
    curvature[member] = (curvature[member] as number) + p * (1 - p) * value * value;
  }
  return { slope, curvature };
}
