/** Sentences for teachers. */
import { sigmoid } from '../base/common.js';
import { decodeItemPattern, maxItemRun, maxStreak } from '../tracing/traces.js';
import { isChanging, type Trend } from '../tracing/trend.js';
import { type FeatureRow, features, findColumn, patternColumn, runColumn, streakColumn } from './features.js';
import type { Term } from './prediction-model.js';

type Name = Term['name'];

/** @param raises the term is positive */
type SentenceBuilder = (figure: number, raises: boolean) => string;

const formatCount = (count: number, one: string, several = `${one}s`): string =>
  `${count} ${count === 1 ? one : several}`;
const formatTimes = (count: number): string => (count === 1 ? 'once' : `${count} times`);

/** Rounds, because some rows have single precision. */
const toCount = (figure: number): number => Math.round(Math.expm1(figure));
const formatOutcome = (figure: number): string => (figure > 0 ? 'right' : 'wrong');
const formatComparison = (figure: number): string => (figure > 0 ? 'better' : 'worse');
const formatBalance = (figure: number): string =>
  figure > 0 ? 'right answers outweigh wrong ones' : 'wrong answers outweigh right ones';
const formatFrequency = (raises: boolean): string => `${raises ? 'more' : 'less'} often right`;

function formatAge(minutes: number): string {
  const hours = minutes / 60;
  if (minutes < 1) return 'less than a minute ago';
  if (hours < 1.5) return `${formatCount(Math.round(minutes), 'minute')} ago`;
  return hours < 36 ? `${Math.round(hours)} hours ago` : `${formatCount(Math.round(hours / 24), 'day')} ago`;
}

function formatRun(count: number, where: string, outcome: string, most = Number.POSITIVE_INFINITY): string {
  if (count === 1) return `The last answer ${where} was ${outcome}`;
  return `The last ${count} ${count < most ? '' : 'or more '}answers ${where} were ${outcome}`;
}

function formatPattern(pattern: number): string {
  const { answers, wrong } = decodeItemPattern(pattern);
  if (answers === 1) return `The one answer to this very question was ${wrong === 0 ? 'right' : 'wrong'}`;
  return `Of the last ${answers} answers to this very question, ${answers - wrong} ${answers - wrong === 1 ? 'was' : 'were'} right`;
}

const sentences: Readonly<Record<Name, SentenceBuilder>> = {
  base: (_, raises) =>
    `The starting point, the same for every learner, is ${raises ? 'above' : 'below'} an even chance`,
  skill: (_, raises) => `All else equal, this skill is ${raises ? 'easier' : 'harder'} than most`,
  item: (_, raises) =>
    `All else equal, this question is ${raises ? 'easier' : 'harder'} than most of its skill`,
  itemRun: (run) => formatRun(run, 'to this very question', 'wrong', maxItemRun),
  streak: (streak) => formatRun(Math.abs(streak), 'on this skill', formatOutcome(streak), maxStreak),
  itemPattern: formatPattern,
  practisedBefore: (_, raises) =>
    `After what was practised just before, and how it went, answers on this skill are ${formatFrequency(raises)} than usual`,
  course: (_, raises) =>
    `Learners whose course of skills began alike are ${formatFrequency(raises)} on this one than others`,
  itemBefore: (_, raises) =>
    `Right after the last question of another skill, answers to this question are ${formatFrequency(raises)} than usual`,
  bias: (_, raises) =>
    `Recently, the learner was right ${raises ? 'more' : 'less'} often than all of this predicted`,
  bkt: (logOdds) =>
    `By mastery of this skill alone, about ${Math.round(100 * sigmoid(logOdds))} in 100 answers would be right`,
  ability: (ability) =>
    `Over all skills, the learner does ${formatComparison(ability)} than a typical new learner`,
  skillResidual: (residual) =>
    `On this skill, the learner does ${formatComparison(residual)} than ability suggests`,
  recentAnswers: (average) => `Among the last few answers, ${formatBalance(average)}`,
  slowAnswers: (average) => `Among the last thirty or so answers, ${formatBalance(average)}`,
  wrongRun: (figure) => formatRun(toCount(figure), 'on any skill', 'wrong'),
  rightAnswers: (figure) =>
    `Over all skills, ${formatCount(toCount(figure), 'answer was', 'answers were')} right`,
  wrongAnswers: (figure) =>
    `Over all skills, ${formatCount(toCount(figure), 'answer was', 'answers were')} wrong`,
  timeSinceRight: (figure) => `The last right answer on any skill was ${formatAge(Math.expm1(figure))}`,
  everRightOnSkill: () => 'The learner has been right on this skill before',
  rightOnSkill: (figure) => `The learner has been right on this skill ${formatTimes(toCount(figure))} so far`,
  answersSinceRightOnSkill: (figure) =>
    `Since the last right answer on this skill, the learner gave ${formatCount(toCount(figure), 'more answer')}`,
  timeSinceRightOnSkill: (figure) =>
    `The last right answer on this skill was ${formatAge(Math.expm1(figure))}`,
  lastRightByAnswers: (figure) => {
    const since = Math.round(1 / figure - 1);
    if (since === 0) return 'The very last answer was right, and on this skill';
    return `The last answer on this skill was right, with ${formatCount(since, 'answer')} on other skills since`;
  },
  lastRightByTime: (figure) =>
    `The last answer on this skill was right, ${formatAge(Math.expm1(1 / figure - 1))}`,
  rightOnItem: (figure) => `This very question was answered right ${formatTimes(toCount(figure))} so far`,
  wrongOnItem: (figure) => `This very question was answered wrong ${formatTimes(toCount(figure))} so far`,
  lastOnItem: (last) => `The last answer to this very question was ${formatOutcome(last)}`,
  itemSeen: () => 'The learner has answered this very question before',
  itemLag: (figure) =>
    `Since this very question, the learner gave ${formatCount(toCount(figure), 'answer')} on other skills`,
  itemLagIfRight: (figure) =>
    `Since a right answer to this very question, the learner gave ${formatCount(toCount(figure), 'answer')} on other skills`,
  itemTime: (figure) => `This very question was last answered ${formatAge(Math.expm1(figure))}`,
  itemTimeIfRight: (figure) => `This very question was last answered right, ${formatAge(Math.expm1(figure))}`,
  itemRetry: () => 'This very question was answered wrong, and is tried again with no other skill in between',
  easiness: (easiness) =>
    `The difficulty that was sent is ${easiness > 0 ? 'below' : 'above'} the average of the skill`,
  firstTryAbility: (ability) =>
    `At first tries of questions, the learner does ${formatComparison(ability)} than a typical new learner`,
  recentFirstTries: (average) => `Among recent first tries of questions, ${formatBalance(average)}`,
  retryAbility: (ability) =>
    `When a missed question is tried again, the learner does ${formatComparison(ability)} than most`,
  recentRetries: (average) => `Among recent tries of missed questions, ${formatBalance(average)}`,
};

const columns: Readonly<Partial<Record<Name, number>>> = {
  ...Object.fromEntries(features.map(({ name }) => [name, findColumn(name)])),
  ...{ itemRun: runColumn, streak: streakColumn, itemPattern: patternColumn },
};

export function formatTerm({ name, logits }: Term, row: FeatureRow): string {
  const column = columns[name];
  const figure = column === undefined ? 0 : (row[column] as number);
  const effect = logits === 0 ? 'hardly changes' : logits > 0 ? 'raises' : 'lowers';
  return `${sentences[name](figure, logits > 0)}: this ${effect} the chance.`;
}

/** Null without a clear change. */
export function formatChange(trend: Trend): string | null {
  if (!isChanging(trend)) return null;
  const more = trend.change < 0 ? 'fewer' : 'more';
  return `About ${computeChangePoints(trend)} in 100 ${more} of the recent answers are right than of earlier ones on the same skills.`;
}

export const computeChangePoints = ({ change }: Trend): number => Math.round(100 * Math.abs(change));
