import { formatDate } from '../../domain/base/common.js';
import type { HorizonUnit } from '../../domain/prediction/accuracy-model.js';
import { seed } from '../evaluate/bootstrap.js';
import { formatNumber } from '../report/format.js';
import type { LabReport } from '../report/lab-report.js';
import { chartGrid, htmlTable, section, textTable } from '../report/page.js';
import { calibrationSection, coverageSection, lossCharts, modelTitles } from './charts.js';
import { intervalLevels } from './forecasts.js';
import { buildHeadline } from './headline.js';
import {
  type BacktestResults,
  type Band,
  type CaseSummary,
  listHorizons,
  resamples,
  type TrendGroup,
} from './results.js';
import {
  bandText,
  buildTables,
  findBias,
  findCoverageFault,
  formatPercent,
  isFew,
  ruleText,
  trendText,
} from './tables.js';

export interface Backtest {
  readonly file: string;
  /** Null: all. */
  readonly fold: number | null;
  readonly unit: HorizonUnit;
  /** Starts of the windows, Unix milliseconds; empty without times, or if the log is too short. */
  readonly cutoffs: readonly number[];
  readonly seconds: number;
  readonly results: BacktestResults;
}

export const reportBacktest = (backtest: Backtest): LabReport => ({
  title: `Backtest of ${backtest.file}${backtest.fold === null ? '' : `, fold ${backtest.fold}`}`,
  headline: buildHeadline(backtest.results, backtest.unit),
  settings: describeSettings(backtest),
  json: buildJson(backtest),
  text: buildText(backtest),
  sections: () => buildSections(backtest),
});

function buildJson({ file, fold, unit, cutoffs, seconds, results }: Backtest): object {
  const { cases, learners, coverage, models, width } = results.all;
  return {
    ...{ cases, learners },
    coverage: Object.fromEntries(intervalLevels.map((level, i) => [100 * level, coverage[i]?.mean])),
    bands: results.bands.map(describeBand),
    models: describeLosses(models),
    ...{ file, fold, unit },
    cutoffs: cutoffs.map((time) => new Date(time).toISOString()),
    ...{ width80: width.mean, bootstrap: { seed, resamples }, seconds },
    trends: results.trends.map(describeTrend),
    ...{ horizons: listHorizons(results.bands), isRecalibrated: results.isRecalibrated },
    ...describeUncalibrated(results.all),
  };
}

const describeUncalibrated = ({ uncalibrated: { coverage, width } }: CaseSummary) => ({
  uncalibratedCoverage80: coverage.mean,
  uncalibratedWidth80: width.mean,
});

function describeBand(band: Band) {
  const { historyFrom, historyTo, horizon, cases, learners } = band;
  const [half, { mean, low, high }, nearlyAll] = band.coverage;
  return {
    ...{ historyFrom, historyTo, horizon, cases, learners },
    ...{ coverage80: mean, low, high, coverage50: half.mean, coverage95: nearlyAll.mean },
    width80: band.width.mean,
    models: describeLosses(band.models),
    /** Of the 80 % interval. */
    ...{ judged: !isFew(band), fault: findCoverageFault(band, 1) },
    ...describeUncalibrated(band),
  };
}

function describeTrend(group: TrendGroup) {
  const { trend, horizon, cases, learners, rmse, bias, expected, observed } = group;
  return {
    ...{ trend, horizon, cases, learners, rmse, expected: expected.mean, observed: observed.mean },
    ...{ bias: bias.mean, biasLow: bias.low, biasHigh: bias.high },
    ...{ coverage80: group.coverage[1].mean, judged: !isFew(group), fault: findBias(group) },
  };
}

const describeLosses = (models: CaseSummary['models']) =>
  Object.fromEntries(
    Object.entries(models).map(([name, { brier, logLoss, mae }]) => [
      name,
      { brier: brier.mean, logLoss: logLoss.mean, mae: mae.mean },
    ]),
  );

function buildText({ unit, results }: Backtest): string[] {
  const tables = buildTables(results, unit, [0.8]);
  return [
    `${textTable(...tables.coverage)}\n${ruleText}`,
    textTable(...tables.losses),
    `By past trend, horizons in ${unit}:\n${textTable(...tables.trends)}\n${trendText}`,
    textTable(...tables.bands),
    bandText,
  ];
}

function buildSections({ unit, results }: Backtest): string[] {
  const tables = buildTables(results, unit, intervalLevels, (name) => modelTitles[name]);
  const about = `Each forecast predicts the share of correct answers over the next ${unit} from the learner’s earlier answers. Coverage is the share of forecasts with the observed share inside the interval; it should equal the level of the interval. Below and Above are the shares of forecasts with an observed share outside the interval. Brackets are 95 % confidence intervals over learners. ${ruleText} These are in grey italics.`;
  const losses =
    'Lower is better; each forecast counts once. “No change” predicts the learner’s share of correct answers in the last 50 answers. “Population” predicts the share of correct answers in the training data. The charts show the mean log loss per answer by number of earlier answers.';
  return [
    section('Coverage', about, htmlTable(...tables.coverage)),
    section('By past trend', trendText, htmlTable(...tables.trends, true)),
    coverageSection(results.bands, unit),
    calibrationSection(results),
    section('Losses', losses, htmlTable(...tables.losses, true), chartGrid(lossCharts(results.bands, unit))),
    section('Bands', bandText, htmlTable(...tables.bands, true)),
  ];
}

const describeSettings = (backtest: Backtest): Readonly<Record<string, string>> => ({
  File: backtest.file,
  Fold:
    backtest.fold === null ? 'all folds, each with models trained on the other folds' : String(backtest.fold),
  'Trained on': describeTraining(backtest),
  Horizons: `${listHorizons(backtest.results.bands).join(', ')} ${backtest.unit}`,
  Intervals: intervalLevels.map(formatPercent).join(', '),
  Brackets: `95 % confidence intervals from ${formatNumber(resamples)} bootstrap samples of learners, seed ${seed}`,
  Forecasts: `${formatNumber(backtest.results.all.cases)} for ${formatNumber(backtest.results.all.learners)} learners, in ${backtest.seconds.toFixed(1)} s`,
});

const describeTraining = ({ cutoffs }: Backtest): string =>
  cutoffs.length === 0
    ? 'all answers of other learners (the log has no times, or is too short to split by time)'
    : `answers of other learners before ${cutoffs.map(formatDate).join(', ')}; each date starts the forecasts until the next date`;
