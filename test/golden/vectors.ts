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
  W: number;
  K: number;
  rate: number;
  active_days_14: number;
  /** No skill was placed in the section. */
  open: boolean;
}

export interface ForecastVector {
  input: Record<Section, SectionInput>;
  /** Mean mastery, its ability, the variance of the measurement (null: infinite), distrust. */
  measure: Record<Section, { x: number; thB: number; R: number | null; D: number }>;
  by_days: Record<string, DayForecast>;
  days30_level95?: DayForecast;
}

interface DayForecast {
  [figure: string]: number | [number, number];
}

interface BktVector {
  y: 0 | 1;
  /** Supplied difficulty, or null. */
  b: number | null;
  mastery_before: number;
  p_correct: number;
  posterior: number;
  mastery_after: number;
}

/** One answer with an option: evidence weight, reported confidence, or no guard. */
interface BktStep {
  L: number;
  y: 0 | 1;
  w?: number;
  conf?: number;
  guard?: boolean;
  after: number;
}

interface PlateauVector {
  mastery: number;
  slope: number | null;
  se: number | null;
  plateau: boolean;
}

interface TimesVector {
  n: number;
  correct: number;
  mean_ln: number;
  m2: number;
}

interface Vectors {
  tolerance: number;
  bkt_plain: BktVector[][];
  bkt_difficulty: BktVector[][];
  item_guess_slip: { b: number; guess: number; slip: number; bf_correct: number; bf_incorrect: number }[];
  bkt_weight: BktStep[];
  bkt_confidence: BktStep[];
  bkt_extremes: BktStep[];
  p_star: { defaults: number };
  decay: { L: number; idle_days: number; correct_days: number; half_life: number; effective: number }[];
  rapid_threshold: { mean: number | null; n: number; thr: number }[];
  plateau: {
    stuck: PlateauVector[];
    learner: PlateauVector[];
    linear_input: { slope_flag: [slope: number | null, plateau: boolean][] };
  };
  efficiency: {
    case: string;
    norm: TimesVector;
    answers: [y: 0 | 1, seconds: number][];
    slowness: number;
    accuracy: number;
    index: number;
    correct_per_minute: number;
  }[];
  skill_norm: TimesVector & { mu: number; sd: number; accuracy: number };
  calibration: { conf_correct: [confidence: number, y: 0 | 1][]; brier: number; bias: number };
  ekf: {
    y: 0 | 1;
    difficulty: number;
    guess: number;
    slip: number;
    shares: Record<Section, number>;
    attempts: number;
    /** Whether the learner's results fall. */
    falling: boolean;
    /** After the answer. */
    math: number;
    rw: number;
    math_variance: number;
    rw_variance: number;
    covariance: number;
  }[];
  forecast: Record<string, ForecastVector>;
  goal: {
    target: number;
    base: number;
    deadline: number | null;
    out: {
      days_to_goal: number | null;
      progress_percent: number;
      on_track: boolean;
      goal_probability: number;
    };
  }[];
  theil_sen: { t: number[]; y: number[]; slope: number; lo90: number; hi90: number };
  /** Of the series of theil_sen. */
  momentum: { short: number; long: number; momentum: number };
  /** Of one skill of the case "both", in math. */
  gain_per_hour: { m: number; plateau: boolean; gain: number }[];
}

/** Reference values of an independent implementation. Read from the source tree: the build copies no data. */
export const vectors: Vectors = JSON.parse(
  readFileSync(new URL('../../../test/golden/vectors.json', import.meta.url), 'utf8'),
);

export function close(actual: number, expected: number, what = ''): void {
  assert.ok(Math.abs(actual - expected) <= vectors.tolerance, `${what} ${actual} is not ${expected}`);
}
