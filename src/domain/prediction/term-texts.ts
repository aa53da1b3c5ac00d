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
const formatOutcome = (figure: number): string => (figure > 0 ? 'correct' : 'incorrect');
const formatComparison = (figure: number): string => (figure > 0 ? 'better' : 'worse');
const formatBalance = (figure: number): string =>
  figure > 0 ? 'correct answers outweigh incorrect ones' : 'incorrect answers outweigh correct ones';
const formatFrequency = (raises: boolean): string => `${raises ? 'more' : 'less'} often correct`;

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
  if (answers === 1) return `The only answer to this question was ${wrong === 0 ? 'correct' : 'incorrect'}`;
  return `Of the last ${answers} answers to this question, ${answers - wrong} ${answers - wrong === 1 ? 'was' : 'were'} correct`;
}

const sentences: Readonly<Record<Name, SentenceBuilder>> = {
  base: (_, raises) =>
    `The baseline, which is the same for all learners, is ${raises ? 'above' : 'below'} 50%`,
  skill: (_, raises) =>
    `With all other factors equal, this skill is ${raises ? 'easier' : 'harder'} than most skills`,
  item: (_, raises) =>
    `With all other factors equal, this question is ${raises ? 'easier' : 'harder'} than most questions of its skill`,
  itemRun: (run) => formatRun(run, 'to this question', 'incorrect', maxItemRun),
  streak: (streak) => formatRun(Math.abs(streak), 'on this skill', formatOutcome(streak), maxStreak),
  itemPattern: formatPattern,
  practisedBefore: (_, raises) =>
    `After the previous skills and their results, answers on this skill are ${formatFrequency(raises)} than usual`,
  course: (_, raises) =>
    `Answers on this skill are ${formatFrequency(raises)} than usual for learners with the same first skills`,
  itemBefore: (_, raises) =>
    `After the previous question on another skill, answers to this question are ${formatFrequency(raises)} than usual`,
  bias: (_, raises) =>
    `Recent answers were correct ${raises ? 'more' : 'less'} often than the other factors predict`,
  bkt: (logOdds) =>
    `Mastery of this skill alone predicts about ${Math.round(100 * sigmoid(logOdds))}% correct answers`,
  ability: (ability) =>
    `Across all skills, the learner does ${formatComparison(ability)} than a typical new learner`,
  skillResidual: (residual) =>
    `On this skill, the learner does ${formatComparison(residual)} than the general ability suggests`,
  recentAnswers: (average) => `In the last few answers, ${formatBalance(average)}`,
  slowAnswers: (average) => `In the last 30 answers or so, ${formatBalance(average)}`,
  wrongRun: (figure) => formatRun(toCount(figure), 'on any skill', 'incorrect'),
  rightAnswers: (figure) =>
    `Across all skills, ${formatCount(toCount(figure), 'answer was', 'answers were')} correct`,
  wrongAnswers: (figure) =>
    `Across all skills, ${formatCount(toCount(figure), 'answer was', 'answers were')} incorrect`,
  timeSinceRight: (figure) => `The last correct answer on any skill was ${formatAge(Math.expm1(figure))}`,
  everRightOnSkill: () => 'The learner has given a correct answer on this skill before',
  rightOnSkill: (figure) =>
    `The learner has answered correctly on this skill ${formatTimes(toCount(figure))}`,
  answersSinceRightOnSkill: (figure) =>
    `The learner has given ${formatCount(toCount(figure), 'more answer')} since the last correct answer on this skill`,
  timeSinceRightOnSkill: (figure) =>
    `The last correct answer on this skill was ${formatAge(Math.expm1(figure))}`,
  lastRightByAnswers: (figure) => {
    const since = Math.round(1 / figure - 1);
    if (since === 0) return 'The last answer was correct and on this skill';
    return `The last answer on this skill was correct, followed by ${formatCount(since, 'answer')} on other skills`;
  },
  lastRightByTime: (figure) =>
    `The last answer on this skill was correct, ${formatAge(Math.expm1(1 / figure - 1))}`,
  rightOnItem: (figure) => `This question was answered correctly ${formatTimes(toCount(figure))}`,
  wrongOnItem: (figure) => `This question was answered incorrectly ${formatTimes(toCount(figure))}`,
  lastOnItem: (last) => `The last answer to this question was ${formatOutcome(last)}`,
  itemSeen: () => 'The learner has answered this question before',
  itemLag: (figure) =>
    `The learner has given ${formatCount(toCount(figure), 'answer')} on other skills since this question`,
  itemLagIfRight: (figure) =>
    `The learner has given ${formatCount(toCount(figure), 'answer')} on other skills since a correct answer to this question`,
  itemTime: (figure) => `This question was last answered ${formatAge(Math.expm1(figure))}`,
  itemTimeIfRight: (figure) =>
    `The last answer to this question was correct, ${formatAge(Math.expm1(figure))}`,
  itemRetry: () =>
    'The last answer to this question was incorrect, and the learner has not answered on another skill since',
  easiness: (easiness) =>
    `The reported difficulty is ${easiness > 0 ? 'below' : 'above'} the average of the skill`,
  firstTryAbility: (ability) =>
    `On first attempts at questions, the learner does ${formatComparison(ability)} than a typical new learner`,
  recentFirstTries: (average) => `In recent first attempts at questions, ${formatBalance(average)}`,
  retryAbility: (ability) =>
    `When repeating missed questions, the learner does ${formatComparison(ability)} than most learners`,
  recentRetries: (average) => `In recent repeats of missed questions, ${formatBalance(average)}`,
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
  const direction = trend.change < 0 ? 'lower' : 'higher';
  return `Recent accuracy is about ${computeChangePoints(trend)} percentage points ${direction} than earlier accuracy on the same skills.`;
}

export const computeChangePoints = ({ change }: Trend): number => Math.round(100 * Math.abs(change));
