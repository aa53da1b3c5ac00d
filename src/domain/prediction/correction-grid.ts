/** Corrections by number of earlier answers and horizon, with bilinear interpolation in logarithms. */

import { accuracyConstants as constants } from '../base/accuracy-constants.js';

/** Values of ln(1 + answers) and ln(1 + horizon), ascending. Constant outside. */
export interface CorrectionGrid {
  readonly histories: readonly number[];
  readonly horizons: readonly number[];
}

export interface GridPoint {
  /** Answers before the forecast. */
  readonly history: number;
  readonly horizon: number;
}

export const historyBands = constants.bands.map((from, band) => {
  const next = constants.bands[band + 1];
  return { from, to: next ?? Number.POSITIVE_INFINITY, middle: Math.sqrt(from * (next ?? 2 * from)) };
});

export const createGrid = (unit: keyof typeof constants.horizons): CorrectionGrid => ({
  histories: historyBands.map(({ middle }) => Math.log1p(middle)),
  horizons: constants.horizons[unit].map((horizon) => Math.log1p(horizon)),
});

export const isInBand = ({ from, to }: (typeof historyBands)[number], history: number): boolean =>
  history >= from && history < to;

export const findNeighbourCells = ({ histories, horizons }: CorrectionGrid, point: GridPoint) =>
  findNeighbours(histories, Math.log1p(point.history)).flatMap(([i, historyWeight]) =>
    findNeighbours(horizons, Math.log1p(point.horizon)).map(([j, horizonWeight]) => ({
      cell: i * horizons.length + j,
      weight: historyWeight * horizonWeight,
    })),
  );

export const interpolateCells = <Cell>(
  grid: CorrectionGrid & { readonly cells: readonly Cell[] },
  point: GridPoint,
  figureOf: (cell: Cell) => number,
): number =>
  findNeighbourCells(grid, point).reduce(
    (sum, { cell, weight }) => sum + weight * figureOf(grid.cells[cell] as Cell),
    0,
  );

export type Neighbour = readonly [index: number, weight: number];

export function findNeighbours(positions: readonly number[], target: number): Neighbour[] {
  const next = positions.findIndex((position) => position > target);
  if (next <= 0) return [[next < 0 ? positions.length - 1 : 0, 1]];
  const [low, high] = [positions[next - 1] as number, positions[next] as number];
  const part = (target - low) / (high - low);
  return [
    [next - 1, 1 - part],
    [next, part],
  ];
}
