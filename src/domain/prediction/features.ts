import { clamp, logit } from '../base/common.js';
import { courseModel } from '../base/prediction-constants.js';
import { type Asked, type Course, courseOf, itemBeforeSkill } from '../tracing/course.js';
import { elsewhereAt, type ItemTrace, itemPattern, type Traces, wholeSeconds } from '../tracing/traces.js';

interface Feature {
  readonly name: string;
  /** Weight before a fit, and centre of its ridge. */
  readonly start: number;
  /** Sign of the weight, 0 for any. With +, a correct answer to another item never lowers the feature. */
  readonly sign: 1 | -1 | 0;
  readonly bySkill?: true;
  readonly byItem?: true;
}

/** In column order; 0 without history. Logarithms are ln(1 + x), of minutes. */
export const features = [
  { name: 'bkt', start: 0.44, sign: 1, bySkill: true },
  { name: 'ability', start: 0.35, sign: 1, bySkill: true, byItem: true },
  { name: 'skillResidual', start: 0.26, sign: 1 },
  { name: 'recentAnswers', start: 0.3, sign: 1, bySkill: true },
  { name: 'slowAnswers', start: 0.2, sign: 1, byItem: true },
  { name: 'wrongRun', start: -0.08, sign: -1 },
  { name: 'rightAnswers', start: 0.02, sign: 1, bySkill: true },
  { name: 'wrongAnswers', start: -0.08, sign: -1 },
  { name: 'timeSinceRight', start: -0.03, sign: -1, bySkill: true },
  { name: 'everRightOnSkill', start: 0.45, sign: 1, bySkill: true },
  { name: 'rightOnSkill', start: 0.01, sign: 1, bySkill: true },
  { name: 'answersSinceRightOnSkill', start: -0.05, sign: -1, bySkill: true },
  { name: 'timeSinceRightOnSkill', start: -0.03, sign: -1 },
  /** 1 / (1 + answers since) if the last answer was correct. */
  { name: 'lastRightByAnswers', start: 0.05, sign: 1, bySkill: true },
  /** 1 / (1 + ln(1 + minutes since)) if the last answer was correct. */
  { name: 'lastRightByTime', start: 0.1, sign: 1, bySkill: true },
  { name: 'rightOnItem', start: 0.35, sign: 1 },
  { name: 'wrongOnItem', start: -0.05, sign: -1 },
  /** 1 if the last answer to the item was correct, -1 if wrong. */
  { name: 'lastOnItem', start: 0.15, sign: 1 },
  { name: 'itemSeen', start: 0, sign: 0 },
  /** Answers to other skills since then. */
  { name: 'itemLag', start: -0.01, sign: 0 },
  { name: 'itemLagIfRight', start: -0.02, sign: 0 },
  { name: 'itemTime', start: -0.04, sign: 0 },
  { name: 'itemTimeIfRight', start: 0, sign: 0 },
  /** 1 directly after a wrong answer to the item, else 0. */
  { name: 'itemRetry', start: -0.1, sign: 0, byItem: true },
  /** Minus the supplied difficulty, centred per skill. */
  { name: 'easiness', start: 0.2, sign: 1 },
  /** First tries of items, and tries after a wrong answer. */
  { name: 'firstTryAbility', start: 0, sign: 1 },
  { name: 'recentFirstTries', start: 0, sign: 1 },
  { name: 'retryAbility', start: 0, sign: 1 },
  { name: 'recentRetries', start: 0, sign: 1 },
] as const satisfies readonly Feature[];

export type FeatureName = (typeof features)[number]['name'];

const columnsWhere = (has: (feature: Feature) => boolean): readonly number[] =>
  features.flatMap((feature, column) => (has(feature) ? [column] : []));

export const skillColumns = columnsWhere(({ bySkill }) => bySkill === true);
export const itemColumns = columnsWhere(({ byItem }) => byItem === true);

export const columnOf = (wanted: FeatureName): number => features.findIndex(({ name }) => name === wanted);

export interface FeatureInput {
  readonly traces: Traces;
  readonly asked: Asked;
  readonly bktProbability: number;
  readonly skillAttempts: number;
  readonly skillRight: number;
  readonly place: number;
  readonly at: number;
  /** Logits, centred per skill; null if not supplied. */
  readonly difficulty: number | null;
  readonly bias: number;
}

export type FeatureRow = Float32Array | Float64Array;

export const skillsBefore = courseModel.skills - 1;

/**
 * Columns after the features: wrong run, streak, item pattern, keys (course, previous item, previous skills),
 * moving averages, bias. Key 0 means none.
 */
export const runColumn = features.length;
export const streakColumn = runColumn + 1;
export const patternColumn = runColumn + 2;
export const courseColumn = runColumn + 3;
export const itemBeforeColumn = runColumn + 4;
export const beforeColumn = runColumn + 5;
export const formColumn = beforeColumn + skillsBefore;
export const biasColumn = formColumn + skillsBefore;
export const rowWidth = biasColumn + 1;

const probabilityFloor = 1e-4;
const minuteMs = 60_000;

/** Uses only data from before the answer. */
export function writeFeatures(row: FeatureRow, from: number, input: FeatureInput): void {
  const { asked, bktProbability, skillAttempts, skillRight, place, at, difficulty, bias } = input;
  const { learner, skill, item } = input.traces;
  const seconds = wholeSeconds(at);
  const everRight = skill.lastRightPlace > 0;
  const lastRight = everRight && skill.lastRightPlace === skill.lastPlace;
  const answersSince = Math.max(0, place - 1 - skill.lastRightPlace);
  const timeSince = lagOf((seconds - skill.lastRightAt) / 60);
  let column = from;
  row[column++] = logit(clamp(bktProbability, probabilityFloor, 1 - probabilityFloor));
  row[column++] = learner.ability;
  row[column++] = skill.residual;
  row[column++] = learner.recent;
  row[column++] = learner.slow;
  row[column++] = logOfCount(learner.wrongRun);
  row[column++] = logOfCount(learner.right);
  row[column++] = logOfCount(learner.wrong);
  row[column++] = learner.right === 0 ? 0 : lagOf((at - learner.lastRightAt) / minuteMs);
  row[column++] = everRight ? 1 : 0;
  row[column++] = logOfCount(skillRight);
  row[column++] = everRight ? logOfCount(answersSince) : 0;
  row[column++] = everRight ? timeSince : 0;
  row[column++] = lastRight ? 1 / (1 + answersSince) : 0;
  row[column++] = lastRight ? 1 / (1 + timeSince) : 0;
  const elsewhere = elsewhereAt(place, skillAttempts);
  writeItem(row, column, item, elsewhere, seconds);
  column += itemFeatures;
  row[column++] = difficulty === null ? 0 : -difficulty;
  const { course } = learner;
  const run = item?.wrongRun ?? 0;
  const isFirst = item !== null && run === 0;
  row[column++] = isFirst ? course.firstAbility : 0;
  row[column++] = isFirst ? course.firstForm : 0;
  row[column++] = run > 0 ? course.retryAbility : 0;
  row[column++] = run > 0 ? course.retryForm : 0;
  row[column++] = run;
  row[column++] = skill.streak;
  row[column++] = item === null ? 0 : itemPattern(item, elsewhere === item.elsewhere);
  row[column++] = courseOf(course, asked.skill);
  row[column] = item === null ? 0 : itemBeforeSkill(course, asked.skill);
  writeBefore(row, from + beforeColumn, course, asked.skill);
  row[from + biasColumn] = bias;
}

function writeBefore(row: FeatureRow, from: number, { skills, forms }: Course, skill: number): void {
  let column = from;
  const end = from + skillsBefore;
  for (let i = 0; i < skills.length && column < end; i++) {
    if (skills[i] === skill) continue;
    row[column + skillsBefore] = forms[i] as number;
    row[column++] = skills[i] as number;
  }
  row.fill(0, column, end);
}

const itemFeatures = 9;

function writeItem(
  row: FeatureRow,
  from: number,
  item: ItemTrace | null,
  elsewhere: number,
  seconds: number,
): void {
  if (item === null || item.right + item.wrong === 0) {
    row.fill(0, from, from + itemFeatures);
    return;
  }
  const lastRight = item.wrongRun === 0;
  const lag = logOfCount(Math.max(0, elsewhere - item.elsewhere));
  const time = lagOf((seconds - item.at) / 60);
  let column = from;
  row[column++] = logOfCount(item.right);
  row[column++] = logOfCount(item.wrong);
  row[column++] = lastRight ? 1 : -1;
  row[column++] = 1;
  row[column++] = lag;
  row[column++] = lastRight ? lag : 0;
  row[column++] = time;
  row[column++] = lastRight ? time : 0;
  row[column] = !lastRight && lag === 0 ? 1 : 0;
}

const lagOf = (x: number): number => Math.log1p(Math.max(0, x));

const logsOfCounts = Float64Array.from({ length: 1024 }, (_, count) => Math.log1p(count));

/** A table, because logarithms are slow here. */
const logOfCount = (count: number): number =>
  count < logsOfCounts.length ? (logsOfCounts[count] as number) : Math.log1p(count);
