import type { AnswerLog, LearnerFilter } from '../answer-log.js';
import { predictionModel } from '../params.js';
import { features, rowWidth, runColumn } from './features.js';
import type { FeatureStore } from './replay.js';

/** The answers that a fit reads, and the log-odds that its terms give them so far. */
export interface FitData {
  /** Where in the log each answer stands. */
  readonly places: Uint32Array;
  /** By place in the log, as all that follow: rows of features. */
  readonly rows: Float32Array;
  readonly correct: Uint8Array;
  /** Item 0: none. */
  readonly skill: Uint32Array;
  readonly item: Uint32Array;
  /** Wrong answers in a row on the item, 0 to 8. */
  readonly run: Uint8Array;
  /** By column, over the answers of the fit: mean, and 1 / max(sd, floor). */
  readonly means: Float64Array;
  readonly scales: Float64Array;
  /** Log-odds of a right answer by the terms so far, in the order of `places`. */
  readonly logits: Float64Array;
}

export function gatherData(log: AnswerLog, learners: LearnerFilter, { rows }: FeatureStore): FitData {
  const places = placesOf(log, learners);
  const { means, scales } = standardise(rows, places);
  const run = Uint8Array.from(log.correct, (_, place) => rows[place * rowWidth + runColumn] as number);
  const { correct, skill, item } = log;
  return { rows, places, correct, skill, item, run, means, scales, logits: new Float64Array(places.length) };
}

function placesOf({ starts }: AnswerLog, learners: LearnerFilter): Uint32Array {
  let count = 0;
  for (let learner = 0; learner + 1 < starts.length; learner++) {
    if (learners(learner)) count += (starts[learner + 1] as number) - (starts[learner] as number);
  }
  const places = new Uint32Array(count);
  let next = 0;
  for (let learner = 0; learner + 1 < starts.length; learner++) {
    if (!learners(learner)) continue;
    const end = starts[learner + 1] as number;
    for (let place = starts[learner] as number; place < end; place++) places[next++] = place;
  }
  return places;
}

function standardise(rows: Float32Array, places: Uint32Array): Pick<FitData, 'means' | 'scales'> {
  const means = columnMeans(places, (place, column) => rows[place * rowWidth + column] as number);
  const variances = columnMeans(
    places,
    (place, column) => ((rows[place * rowWidth + column] as number) - (means[column] as number)) ** 2,
  );
  return {
    means,
    scales: variances.map((variance) => 1 / Math.max(Math.sqrt(variance), predictionModel.fit.minSd)),
  };
}

function columnMeans(places: Uint32Array, value: (place: number, column: number) => number): Float64Array {
  const sums = new Float64Array(features.length);
  for (const place of places) {
    for (let column = 0; column < sums.length; column++) {
      sums[column] = (sums[column] as number) + value(place, column);
    }
  }
  return sums.map((sum) => sum / Math.max(1, places.length));
}

/** The feature in standardised units. */
export const standardised = (
  { rows, means, scales }: Pick<FitData, 'rows' | 'means' | 'scales'>,
  place: number,
  column: number,
): number =>
  ((rows[place * rowWidth + column] as number) - (means[column] as number)) * (scales[column] as number);
