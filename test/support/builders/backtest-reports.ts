/** Reports of a backtest in each format. */
import { type Backtest, reportBacktest } from '../../../src/lab/backtest/report.js';
import { formatReport, renderReport, serializeReport } from '../../../src/lab/report/lab-report.js';
import type { RunInfo } from '../../../src/lab/report/run-info.js';

const defineFormat = (format: typeof formatReport) => (backtest: Backtest, run: RunInfo) =>
  format(reportBacktest(backtest), run);

export const formatBacktest = defineFormat(formatReport);
export const serializeBacktest = defineFormat(serializeReport);
export const renderBacktest = defineFormat(renderReport);
