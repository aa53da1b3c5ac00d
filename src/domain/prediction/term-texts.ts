/** Sentences for teachers. */
import { sigmoid } from '../base/common.js';
import { itemPatternCounts, maxItemRun, maxStreak } from '../tracing/traces.js';
import { isChanging, type Trend } from '../tracing/trend.js';
import { columnOf, type FeatureRow, features, patternColumn, runColumn, streakColumn } from './features.js';
import type { Term } from './model.js';

type Name = Term['name'];

/** @param raises the term is positive */
type Telling = (figure: number, raises: boolean) => string;

const counted = (count: number, one: string, several = `${one}s`): string =>
  `${count} ${count === 1 ? one : several}`;
const times = (count: number): string => (count === 1 ? 'once' : `${count} times`);

/** Rounds, because some rows have single precision. */
const countOf = (figure: number): number => Math.round(Math.expm1(figure));
const right = (figure: number): string => (figure > 0 ? 'right' : 'wrong');
const better = (figure: number): string => (figure > 0 ? 'better' : 'worse');
const outweigh = (figure: number): string =>
  figure > 0 ? 'right answers outweigh wrong ones' : 'wrong answers outweigh right ones';
const oftener = (raises: boolean): string => `${raises ? 'more' : 'less'} often right`;

function ago(minutes: number): string {
  const hours = minutes / 60;
  if (minutes < 1) return 'less than a minute ago';
  if (hours < 1.5) return `${counted(Math.round(minutes), 'minute')} ago`;
  return hours < 36 ? `${Math.round(hours)} hours ago` : `${counted(Math.round(hours / 24), 'day')} ago`;
}

function inARow(count: number, where: string, outcome: string, most = Number.POSITIVE_INFINITY): string {
  if (count === 1) return `The last answer ${where} was ${outcome}`;
  return `The last ${count} ${count < most ? '' : 'or more '}answers ${where} were ${outcome}`;
}

function patternText(pattern: number): string {
  const { answers, wrong } = itemPatternCounts(pattern);
  if (answers === 1) return `The one answer to this very question was ${wrong === 0 ? 'right' : 'wrong'}`;
  return `Of the last ${answers} answers to this very question, ${answers - wrong} ${answers - wrong === 1 ? 'was' : 'were'} right`;
}

const tellings: Readonly<Record<Name, Telling>> = {
  base: (_, raises) =>
    `The starting point, the same for every learner, is ${raises ? 'above' : 'below'} an even chance`,
  skill: (_, raises) => `All else equal, this skill is ${raises ? 'easier' : 'harder'} than most`,
  item: (_, raises) =>
    `All else equal, this question is ${raises ? 'easier' : 'harder'} than most of its skill`,
  itemRun: (run) => inARow(run, 'to this very question', 'wrong', maxItemRun),
  streak: (streak) => inARow(Math.abs(streak), 'on this skill', right(streak), maxStreak),
  itemPattern: patternText,
  practisedBefore: (_, raises) =>
    `After what was practised just before, and how it went, answers on this skill are ${oftener(raises)} than usual`,
  course: (_, raises) =>
    `Learners whose course of skills began alike are ${oftener(raises)} on this one than others`,
  itemBefore: (_, raises) =>
    `Right after the last question of another skill, answers to this question are ${oftener(raises)} than usual`,
  bias: (_, raises) =>
    `Recently, the learner was right ${raises ? 'more' : 'less'} often than all of this predicted`,
  bkt: (logOdds) =>
    `By mastery of this skill alone, about ${Math.round(100 * sigmoid(logOdds))} in 100 answers would be right`,
  ability: (ability) => `Over all skills, the learner does ${better(ability)} than a typical new learner`,
  skillResidual: (residual) => `On this skill, the learner does ${better(residual)} than ability suggests`,
  recentAnswers: (average) => `Among the last few answers, ${outweigh(average)}`,
  slowAnswers: (average) => `Among the last thirty or so answers, ${outweigh(average)}`,
  wrongRun: (figure) => inARow(countOf(figure), 'on any skill', 'wrong'),
  rightAnswers: (figure) =>
    `Over all skills, ${counted(countOf(figure), 'answer was', 'answers were')} right`,
  wrongAnswers: (figure) =>
    `Over all skills, ${counted(countOf(figure), 'answer was', 'answers were')} wrong`,
  timeSinceRight: (figure) => `The last right answer on any skill was ${ago(Math.expm1(figure))}`,
  everRightOnSkill: () => 'The learner has been right on this skill before',
  rightOnSkill: (figure) => `The learner has been right on this skill ${times(countOf(figure))} so far`,
  answersSinceRightOnSkill: (figure) =>
    `Since the last right answer on this skill, the learner gave ${counted(countOf(figure), 'more answer')}`,
  timeSinceRightOnSkill: (figure) => `The last right answer on this skill was ${ago(Math.expm1(figure))}`,
  lastRightByAnswers: (figure) => {
    const since = Math.round(1 / figure - 1);
    if (since === 0) return 'The very last answer was right, and on this skill';
    return `The last answer on this skill was right, with ${counted(since, 'answer')} on other skills since`;
  },
  lastRightByTime: (figure) => `The last answer on this skill was right, ${ago(Math.expm1(1 / figure - 1))}`,
  rightOnItem: (figure) => `This very question was answered right ${times(countOf(figure))} so far`,
  wrongOnItem: (figure) => `This very question was answered wrong ${times(countOf(figure))} so far`,
  lastOnItem: (last) => `The last answer to this very question was ${right(last)}`,
  itemSeen: () => 'The learner has answered this very question before',
  itemLag: (figure) =>
    `Since this very question, the learner gave ${counted(countOf(figure), 'answer')} on other skills`,
  itemLagIfRight: (figure) =>
    `Since a right answer to this very question, the learner gave ${counted(countOf(figure), 'answer')} on other skills`,
  itemTime: (figure) => `This very question was last answered ${ago(Math.expm1(figure))}`,
  itemTimeIfRight: (figure) => `This very question was last answered right, ${ago(Math.expm1(figure))}`,
  itemRetry: () => 'This very question was answered wrong, and is tried again with no other skill in between',
  easiness: (easiness) =>
    `The difficulty that was sent is ${easiness > 0 ? 'below' : 'above'} the average of the skill`,
  firstTryAbility: (ability) =>
    `At first tries of questions, the learner does ${better(ability)} than a typical new learner`,
  recentFirstTries: (average) => `Among recent first tries of questions, ${outweigh(average)}`,
  retryAbility: (ability) =>
    `When a missed question is tried again, the learner does ${better(ability)} than most`,
  recentRetries: (average) => `Among recent tries of missed questions, ${outweigh(average)}`,
};

const columns: Readonly<Partial<Record<Name, number>>> = {
  ...Object.fromEntries(features.map(({ name }) => [name, columnOf(name)])),
  ...{ itemRun: runColumn, streak: streakColumn, itemPattern: patternColumn },
};

export function termText({ name, logits }: Term, row: FeatureRow): string {
  const column = columns[name];
  const figure = column === undefined ? 0 : (row[column] as number);
  const effect = logits === 0 ? 'hardly changes' : logits > 0 ? 'raises' : 'lowers';
  return `${tellings[name](figure, logits > 0)}: this ${effect} the chance.`;
}

/** Null without a clear change. */
export function changeText(trend: Trend): string | null {
  if (!isChanging(trend)) return null;
  const more = trend.change < 0 ? 'fewer' : 'more';
  return `About ${changePoints(trend)} in 100 ${more} of the recent answers are right than of earlier ones on the same skills.`;
}

export const changePoints = ({ change }: Trend): number => Math.round(100 * Math.abs(change));
