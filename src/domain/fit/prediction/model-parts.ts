import { predictionConstants } from '../../base/prediction-constants.js';

const firstBlocks = ['weights', 'skills', 'items', 'runs'] as const;
/** Tried in this order; published if they help unseen learners (`cross-fit.ts`). */
export const partLabels = {
  streaks: 'streaks on a skill',
  before: 'previously practised skills',
  course: 'first skills of a course',
  retries: 'first attempts and repeats of questions',
  itemsBefore: 'previous question',
} as const;
export type PartName = keyof typeof partLabels;
export const partNames = Object.keys(partLabels) as PartName[];
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
export const buildSweepSteps = (parts: readonly PartName[], fresh: boolean): FitStep[] => [
  ...buildBlockSteps(firstBlocks, fresh),
  ...parts.flatMap((part) => buildPartSteps(part, fresh)),
];

/** `before` is the most expensive part and converges early. */
export const selectSweepParts = (sweep: number, parts: readonly PartName[]): PartName[] =>
  parts.filter((part) => part !== 'before' || sweep < predictionConstants.fit.beforeSweeps);

const buildBlockSteps = (names: readonly BlockName[], fresh: boolean): FitStep[] =>
  names.map((name) => ({ kind: 'block', name, fresh }));

export const buildPartSteps = (part: PartName, fresh: boolean): FitStep[] =>
  part === 'streaks' || part === 'before' ? [{ kind: part }] : buildBlockSteps(partBlocks[part], fresh);
