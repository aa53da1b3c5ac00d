/** Reports of a backtest in each format. */
import { type Backtest, reportBacktest } from '../../../src/lab/backtest/report.js';
import { formatReport, type RunInfo } from '../../../src/lab/report/lab-report.js';

const format = (backtest: Backtest, run: RunInfo) => formatReport(reportBacktest(backtest), run);

export const formatBacktest = (backtest: Backtest, run: RunInfo): string => format(backtest, run).text();
export const serializeBacktest = (backtest: Backtest, run: RunInfo): string => format(backtest, run).json();
export const renderBacktest = (backtest: Backtest, run: RunInfo): string => format(backtest, run).page();
