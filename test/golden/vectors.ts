import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import type { Section } from '../../src/domain/base/common.js';
import type { ParameterSource } from '../../src/domain/catalogue/tenant-model.js';

export interface SectionInput {
  n: number;
  thetaE: number;
  skills: {
    /** Weight times share. */
    w: number;
    share?: number;
    /** Effective mastery now. */
    m: number;
    /** Probability of learning. */
    T: number;
    right: number;
    wrong: number;
    source: ParameterSource;
    /** Idle days, and days with a right answer. */
    idle?: number;
    cd?: number;
  }[];
  K: number;
  rate: number;
  active_days_14: number;
  /** No skill was placed in the section. */
  open: boolean;
}

type DayForecast = Record<string, number | [number, number]>;

export interface ForecastVector {
  input: Record<Section, SectionInput>;
  /** Mean mastery, its ability, the variance of the measurement (null: infinite), distrust. */
  measure: Record<Section, { x: number; thB: number; R: number | null; D: number }>;
  by_days: Record<string, DayForecast>;
  days30_level95?: DayForecast;
}

/** The cases of a forecast have different fields. */
type Vectors = Omit<typeof import('./vectors.json', { with: { type: 'json' }}), 'forecast'> & {
  forecast: Record<string, ForecastVector>;
};

/** Reference values of an independent implementation. Read from the source tree: the build copies no data. */
export const vectors: Vectors = JSON.parse(
  readFileSync(new URL('../../../test/golden/vectors.json', import.meta.url), 'utf8'),
);

export function close(actual: number | null | undefined, expected: number, what = ''): void {
  const distance = Math.abs((actual ?? Number.NaN) - expected);
  assert.ok(distance <= vectors.tolerance, `${what} ${actual} is not ${expected}`);
}
