import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

interface SectionInput {
  n: number;
  thetaE: number;
  skills: { w: number; m: number }[];
  W: number;
  K: number;
}

interface DayForecast {
  [figure: string]: number | [number, number];
}

interface Vectors {
  tolerance: number;
  bkt_plain: {
    y: 0 | 1;
    mastery_before: number;
    p_correct: number;
    posterior: number;
    mastery_after: number;
  }[][];
  bkt_extremes: { L: number; y: 0 | 1; after: number; guard?: boolean }[];
  ekf: { y: 0 | 1; b: number; theta: number; v: number }[];
  forecast: Record<
    string,
    {
      input: Record<'math' | 'rw', SectionInput>;
      by_days: Record<string, DayForecast>;
      days30_level95?: DayForecast;
    }
  >;
  goal: {
    target: number;
    base: number;
    deadline: number | null;
    out: { days_to_goal: number | null; progress_percent: number; on_track: boolean };
  }[];
}

/** Reference values, computed apart from this code; read from the source tree, for the build copies no data. */
export const vectors: Vectors = JSON.parse(
  readFileSync(new URL('../../../test/golden/vectors.json', import.meta.url), 'utf8'),
);

export function close(actual: number, expected: number, what = ''): void {
  assert.ok(Math.abs(actual - expected) <= vectors.tolerance, `${what} ${actual} is not ${expected}`);
}
