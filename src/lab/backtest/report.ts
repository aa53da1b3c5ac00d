import { formatDate } from '../../domain/base/common.js';
import type { HorizonUnit } from '../../domain/prediction/accuracy-model.js';
import { formatJsonLine, formatNumber } from '../report/format.js';
import { textTable } from '../report/page.js';
import { intervalLevels } from './forecasts.js';
import { type BacktestResults, type Band, type CaseSummary, resamples, seed } from './results.js';
import {
  bandHead,
  bandRows,
  bandText,
  coverageHead,
  coverageRows,
  formatShare,
  lossHead,
  lossRows,
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

export function serializeBacktest({ file, fold, unit, cutoffs, seconds, results }: Backtest): string {
  const { cases, learners, coverage, models, width } = results.all;
  const found = {
    ...{ cases, learners },
    coverage: Object.fromEntries(intervalLevels.map((level, i) => [100 * level, coverage[i]?.mean])),
    bands: results.bands.map(describeBand),
    models: describeLosses(models),
    ...{ file, fold, unit },
    cutoffs: cutoffs.map((time) => new Date(time).toISOString()),
    width80: width.mean,
    bootstrap: { seed, resamples },
    seconds,
  };
  return formatJsonLine(found, 6);
}

function describeBand({ historyFrom, historyTo, horizon, cases, learners, ...band }: Band) {
  const [half, { mean, low, high }, nearlyAll] = band.coverage;
  return {
    ...{ historyFrom, historyTo, horizon, cases, learners },
    ...{ coverage80: mean, low, high, coverage50: half.mean, coverage95: nearlyAll.mean },
    width80: band.width.mean,
    models: describeLosses(band.models),
  };
}

const describeLosses = (models: CaseSummary['models']) =>
  Object.fromEntries(
    Object.entries(models).map(([name, { brier, logLoss, mae }]) => [
      name,
      { brier: brier.mean, logLoss: logLoss.mean, mae: mae.mean },
    ]),
  );

export function formatBacktest(backtest: Backtest): string {
  const { file, fold, unit, seconds, results } = backtest;
  const { all, bands } = results;
  const foldText = fold === null ? 'all folds, each with models trained on the other folds' : `fold ${fold}`;
  const about = `${file}: ${foldText}, horizons in ${unit}, ${seconds.toFixed(1)} s
Trained on ${describeTraining(backtest)}
${formatNumber(all.cases)} forecasts for ${formatNumber(all.learners)} learners; brackets are 95 % confidence intervals from ${formatNumber(resamples)} bootstrap samples of learners, seed ${seed}`;
  return [
    about,
    textTable(coverageHead, coverageRows(all, bands)),
    `Mean width of the 80 % interval: ${formatShare(all.width.mean)}`,
    textTable(lossHead, lossRows(all)),
    textTable(bandHead(unit), bandRows(bands, [0.8])),
    bandText,
  ].join('\n\n');
}

export const describeTraining = ({ cutoffs }: Backtest): string =>
  cutoffs.length === 0
    ? 'all answers of other learners (the log has no times, or is too short to split by time)'
    : `answers of other learners before ${cutoffs.map(formatDate).join(', ')}; each date starts the forecasts until the next date`;
