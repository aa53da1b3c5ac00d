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
  const passed = isFew(all) ? 'few forecasts, not judged' : 'Holds';
  const { text, look = '' } = countFailingBands(bands, i);
  const lines: readonly (readonly [text: string, look: string])[] = [
    [`The ${formatPercent(level)} interval covers`, ''],
    [`${points(mean)} %`, fault === null ? 'figure' : 'figure off'],
    [fault === null ? passed : `Fails: ${fault}`, fault === null ? '' : 'off'],
    [`95 % interval over learners ${points(low)} to ${points(high)} %`, ''],
    [`${formatNumber(all.cases)} forecasts for ${formatNumber(all.learners)} learners`, ''],
    [`Bands that fail: ${text}`, look],
  ];
  return tag('div', {}, ...lines.map(([told, own]) => textTag('p', own === '' ? {} : { class: own }, told)));
}

const describeSettings = (backtest: Backtest): Readonly<Record<string, string>> => ({
  File: backtest.file,
  Fold:
    backtest.fold === null
      ? 'all in turn, each forecast by models trained on the others'
      : String(backtest.fold),
  'Trained on': describeTraining(backtest),
  Horizons: `${listHorizons(backtest.results.bands).join(', ')} ${backtest.unit}`,
  Bootstrap: `${formatNumber(resamples)} samples of learners, seed ${seed}`,
});

export function renderBacktest(backtest: Backtest, run: RunInfo): string {
  const { file, fold, unit, results } = backtest;
  const { all, bands } = results;
  const about = `Forecasts of the share of right answers over the next ${unit}, from the learner’s answers up to the moment. An interval holds what it says if it covers the observed share as often as its level; the others lie below or above it. Brackets are 95 % intervals over learners. A band of answers so far and horizon fails where its coverage is more than ${100 * coverageTolerance} points from the level; with fewer than ${manyLearners} learners only if by more than chance. What rests on fewer than ${minObservations} forecasts is in grey italics and not judged.`;
  const losses =
    'All losses are better the lower; each forecast counts once. No change takes the learner’s last 50 answers for what follows, population the share of right answers of all others. The charts show the mean log loss of single answers by answers so far.';
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
