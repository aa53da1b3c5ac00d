import { formatNumber } from '../report/format.js';
import { chartGrid, htmlPage, htmlTable, minObservations, section, tag, textTag } from '../report/page.js';
import { type RunInfo, renderRunInfo } from '../report/run-info.js';
import { calibrationSection, coverageSection, lossCharts, modelTitles } from './charts.js';
import { intervalLevels } from './forecasts.js';
import { type Backtest, describeTraining } from './report.js';
import { type BacktestResults, type Estimate, listHorizons, resamples, seed } from './results.js';
import {
  bandHead,
  bandRows,
  bandText,
  countFailingBands,
  coverageHead,
  coverageRows,
  coverageTolerance,
  findCoverageFault,
  formatPercent,
  isFew,
  lossHead,
  lossRows,
  manyLearners,
} from './tables.js';

const leadStyle = `
.lead { display: grid; gap: 1.25rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 15rem), 1fr)); margin: 1.4rem 0; }
.lead > div { padding: .9rem 1rem; background: var(--panel); border: 1px solid var(--line); border-radius: .6rem; }
.lead p { margin: 0; color: var(--text); }
.lead .figure { font-size: 2.6rem; font-weight: 700; line-height: 1.2; font-variant-numeric: tabular-nums; }
.lead .off { color: var(--alert); font-weight: 700; }
`;

function leadTile({ all, bands }: BacktestResults, level: number, i: number): string {
  const { mean, low, high } = all.coverage[i] as Estimate;
  const points = (value: number): string => (100 * value).toFixed(1);
  const fault = findCoverageFault(all, i);
  const passed = isFew(all) ? 'Not rated: too few forecasts' : 'Passed';
  const { text, look = '' } = countFailingBands(bands, i);
  const lines: readonly (readonly [text: string, look: string])[] = [
    [`Coverage of the ${formatPercent(level)} interval`, ''],
    [`${points(mean)} %`, fault === null ? 'figure' : 'figure off'],
    [fault === null ? passed : `Failed: ${fault}`, fault === null ? '' : 'off'],
    [`95 % confidence interval: ${points(low)} to ${points(high)} %`, ''],
    [`${formatNumber(all.cases)} forecasts for ${formatNumber(all.learners)} learners`, ''],
    [`Failed bands: ${text}`, look],
  ];
  return tag('div', {}, ...lines.map(([told, own]) => textTag('p', own === '' ? {} : { class: own }, told)));
}

const describeSettings = (backtest: Backtest): Readonly<Record<string, string>> => ({
  File: backtest.file,
  Fold:
    backtest.fold === null ? 'all folds, each with models trained on the other folds' : String(backtest.fold),
  'Trained on': describeTraining(backtest),
  Horizons: `${listHorizons(backtest.results.bands).join(', ')} ${backtest.unit}`,
  Bootstrap: `${formatNumber(resamples)} samples of learners, seed ${seed}`,
});

export function renderBacktest(backtest: Backtest, run: RunInfo): string {
  const { file, fold, unit, results } = backtest;
  const { all, bands } = results;
  const about = `Each forecast predicts the share of correct answers over the next ${unit} from the learner’s earlier answers. Coverage is the share of forecasts with the observed share inside the interval; it should equal the level of the interval. Below and Above are the shares of forecasts with an observed share outside the interval. Brackets are 95 % confidence intervals over learners. A band (earlier answers and horizon) fails if its coverage differs from the level by more than ${100 * coverageTolerance} points. With fewer than ${manyLearners} learners, it fails only if the confidence interval excludes the level. Figures from fewer than ${minObservations} forecasts are in grey italics and not rated.`;
  const losses =
    'Lower is better; each forecast counts once. “No change” predicts the learner’s share of correct answers in the last 50 answers. “Population” predicts the share of correct answers in the training data. The charts show the mean log loss per answer by number of earlier answers.';
  const lossTable = htmlTable(
    lossHead,
    lossRows(all, (name) => modelTitles[name]),
    true,
  );
  return htmlPage(
    `Backtest of ${file}${fold === null ? '' : `, fold ${fold}`}`,
    [
      tag('div', { class: 'lead' }, ...intervalLevels.map((level, i) => leadTile(results, level, i))),
      renderRunInfo(run, describeSettings(backtest)),
      section('Coverage', about, htmlTable(coverageHead, coverageRows(all, bands))),
      coverageSection(bands, unit),
      calibrationSection(results),
      section('Losses', losses, lossTable, chartGrid(lossCharts(bands, unit))),
      section('Bands', bandText, htmlTable(bandHead(unit), bandRows(bands, intervalLevels), true)),
    ],
    leadStyle,
  );
}
