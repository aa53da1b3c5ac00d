import { predictionModel } from '../../base/prediction-constants.js';

const firstBlocks = ['weights', 'skills', 'items', 'runs'] as const;
/** Published if they help unseen learners (`cross-fit.ts`). */
export const partTexts = {
  streaks: 'streaks on a skill',
  before: 'what was practised just before',
  course: 'the skill that a course begins with',
  retries: 'first tries and retries of questions',
  itemsBefore: 'which question came before',
} as const;
export type PartName = keyof typeof partTexts;
export const partNames = Object.keys(partTexts) as PartName[];
export const partBlocks = {
  course: ['course'],
  retries: ['skillRuns', 'itemRuns', 'patterns'],
  itemsBefore: ['itemsBefore'],
} as const;
export type BlockName = (typeof firstBlocks)[number] | (typeof partBlocks)[keyof typeof partBlocks][number];

export type FitStep =
  | { readonly kind: 'block'; readonly name: BlockName; readonly fresh: boolean }
  | { readonly kind: 'streaks' }
  | { readonly kind: 'before' };

/** The Hessian hardly changes, so only fresh steps compute it. */
export const sweepSteps = (parts: readonly PartName[], fresh: boolean): FitStep[] => [
  ...blockSteps(firstBlocks, fresh),
  ...parts.flatMap((part) => partSteps(part, fresh)),
];

/** `before` is the most expensive part and converges early. */
export const partsIn = (sweep: number, parts: readonly PartName[]): PartName[] =>
  parts.filter((part) => part !== 'before' || sweep < predictionModel.fit.beforeSweeps);

const blockSteps = (names: readonly BlockName[], fresh: boolean): FitStep[] =>
  names.map((name) => ({ kind: 'block', name, fresh }));

export const partSteps = (part: PartName, fresh: boolean): FitStep[] =>
  part === 'streaks' || part === 'before' ? [{ kind: part }] : blockSteps(partBlocks[part], fresh);
