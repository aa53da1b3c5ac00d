import { chartGrid, headlineBlock, htmlPage, htmlTable, section } from '../report/page.js';
import { type RunInfo, renderRunInfo } from '../report/run-info.js';
import { calibrationSection, coverageSection, lossCharts, modelTitles } from './charts.js';
import { intervalLevels } from './forecasts.js';
import { buildHeadline } from './headline.js';
import { type Backtest, describeSettings } from './report.js';
import { bandText, buildTables, ruleText, trendText } from './tables.js';

export function renderBacktest(backtest: Backtest, run: RunInfo): string {
  const { file, fold, unit, results } = backtest;
  const { bands } = results;
  const tables = buildTables(results, unit, intervalLevels, (name) => modelTitles[name]);
  const about = `Each forecast predicts the share of correct answers over the next ${unit} from the learner’s earlier answers. Coverage is the share of forecasts with the observed share inside the interval; it should equal the level of the interval. Below and Above are the shares of forecasts with an observed share outside the interval. Brackets are 95 % confidence intervals over learners. ${ruleText} These are in grey italics.`;
  const losses =
    'Lower is better; each forecast counts once. “No change” predicts the learner’s share of correct answers in the last 50 answers. “Population” predicts the share of correct answers in the training data. The charts show the mean log loss per answer by number of earlier answers.';
  return htmlPage(`Backtest of ${file}${fold === null ? '' : `, fold ${fold}`}`, [
    headlineBlock(buildHeadline(results, unit)),
    renderRunInfo(run, describeSettings(backtest)),
    section('Coverage', about, htmlTable(...tables.coverage)),
    section('By past trend', trendText, htmlTable(...tables.trends, true)),
    coverageSection(bands, unit),
    calibrationSection(results),
    section('Losses', losses, htmlTable(...tables.losses, true), chartGrid(lossCharts(bands, unit))),
    section('Bands', bandText, htmlTable(...tables.bands, true)),
  ]);
}
