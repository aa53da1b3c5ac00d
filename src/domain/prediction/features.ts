import { clamp, logit } from '../base/common.js';
import { courseConstants } from '../base/prediction-constants.js';
import { type Course, findCourseSkill, findPreviousItem, type QuestionKeys } from '../tracing/course.js';
import {
  countOtherAnswers,
  encodeItemPattern,
  type ItemTrace,
  type SkillRecord,
  type Traces,
  toUnixSeconds,
} from '../tracing/traces.js';

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
  /** Answers on other skills since the last answer to the item. */
  { name: 'itemLag', start: -0.01, sign: 0 },
  { name: 'itemLagIfRight', start: -0.02, sign: 0 },
  { name: 'itemTime', start: -0.04, sign: 0 },
  { name: 'itemTimeIfRight', start: 0, sign: 0 },
  /** 1 if the last answer to the item was wrong and no other skill followed, else 0. */
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

const selectColumns = (has: (feature: Feature) => boolean): readonly number[] =>
  features.flatMap((feature, column) => (has(feature) ? [column] : []));

export const skillColumns = selectColumns(({ bySkill }) => bySkill === true);
export const itemColumns = selectColumns(({ byItem }) => byItem === true);

export const findColumn = (featureName: FeatureName): number =>
  features.findIndex(({ name }) => name === featureName);

export interface FeatureInput {
  readonly traces: Pick<Traces, 'learner' | 'item'>;
  /** Of the question's skills. */
  readonly skills: SkillRecord;
  readonly keys: QuestionKeys;
  readonly bktProbability: number;
  readonly answerNumber: number;
  readonly occurredAt: number;
  /** Logits, centred per skill; null if not supplied. */
  readonly difficulty: number | null;
  readonly bias: number;
}

export type FeatureRow = Float32Array | Float64Array;

export const previousSkillCount = courseConstants.skills - 1;

/**
 * Columns after the features: wrong run, streak, item pattern, keys (course, previous item, previous skills),
 * moving averages, bias. Key 0 means none.
 */
export const runColumn = features.length;
export const streakColumn = runColumn + 1;
export const patternColumn = runColumn + 2;
export const courseColumn = runColumn + 3;
export const previousItemColumn = runColumn + 4;
export const previousSkillColumn = runColumn + 5;
export const formColumn = previousSkillColumn + previousSkillCount;
export const biasColumn = formColumn + previousSkillCount;
export const rowWidth = biasColumn + 1;

const probabilityFloor = 1e-4;
const minuteMs = 60_000;

/** Uses only data from before the answer. */
export function writeFeatures(row: FeatureRow, from: number, input: FeatureInput): void {
  const { keys, bktProbability, answerNumber, occurredAt, difficulty, bias } = input;
  const { attempts, correct, trace: skill } = input.skills;
  const { learner, item } = input.traces;
  const seconds = toUnixSeconds(occurredAt);
  const everRight = skill.lastRightNumber > 0;
  const lastRight = everRight && skill.lastRightNumber === skill.lastAnswerNumber;
  const answersSince = Math.max(0, answerNumber - 1 - skill.lastRightNumber);
  const timeSince = logLag((seconds - skill.lastRightAt) / 60);
  let column = from;
  row[column++] = logit(clamp(bktProbability, probabilityFloor, 1 - probabilityFloor));
  row[column++] = learner.ability;
  row[column++] = skill.residual;
  row[column++] = learner.recent;
  row[column++] = learner.slow;
  row[column++] = logCount(learner.wrongRun);
  row[column++] = logCount(learner.right);
  row[column++] = logCount(learner.wrong);
  row[column++] = learner.right === 0 ? 0 : logLag((occurredAt - learner.lastRightAt) / minuteMs);
  row[column++] = everRight ? 1 : 0;
  row[column++] = logCount(correct);
  row[column++] = everRight ? logCount(answersSince) : 0;
  row[column++] = everRight ? timeSince : 0;
  row[column++] = lastRight ? 1 / (1 + answersSince) : 0;
  row[column++] = lastRight ? 1 / (1 + timeSince) : 0;
  const elsewhere = countOtherAnswers(answerNumber, attempts);
  writeItemFeatures(row, column, item, elsewhere, seconds);
  column += itemFeatureCount;
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
  row[column++] = item === null ? 0 : encodeItemPattern(item, elsewhere === item.otherSkillAnswers);
  row[column++] = findCourseSkill(course, keys.skill);
  row[column] = item === null ? 0 : findPreviousItem(course, keys.skill);
  writePreviousSkills(row, from + previousSkillColumn, course, keys.skill);
  row[from + biasColumn] = bias;
}

function writePreviousSkills(row: FeatureRow, from: number, { skills, forms }: Course, skill: number): void {
  let column = from;
  const end = from + previousSkillCount;
  for (let i = 0; i < skills.length && column < end; i++) {
    if (skills[i] === skill) continue;
    row[column + previousSkillCount] = forms[i] as number;
    row[column++] = skills[i] as number;
  }
  row.fill(0, column, end);
}

const itemFeatureCount = 9;

function writeItemFeatures(
  row: FeatureRow,
  from: number,
  item: ItemTrace | null,
  elsewhere: number,
  seconds: number,
): void {
  if (item === null || item.right + item.wrong === 0) {
    row.fill(0, from, from + itemFeatureCount);
    return;
  }
  const lastRight = item.wrongRun === 0;
  const lag = logCount(Math.max(0, elsewhere - item.otherSkillAnswers));
  const time = logLag((seconds - item.at) / 60);
  let column = from;
  row[column++] = logCount(item.right);
  row[column++] = logCount(item.wrong);
  row[column++] = lastRight ? 1 : -1;
  row[column++] = 1;
  row[column++] = lag;
  row[column++] = lastRight ? lag : 0;
  row[column++] = time;
  row[column++] = lastRight ? time : 0;
  row[column] = !lastRight && lag === 0 ? 1 : 0;
}

const logLag = (x: number): number => Math.log1p(Math.max(0, x));

const logTable = Float64Array.from({ length: 1024 }, (_, count) => Math.log1p(count));

/** A table, because logarithms are slow here. */
const logCount = (count: number): number =>
  count < logTable.length ? (logTable[count] as number) : Math.log1p(count);
