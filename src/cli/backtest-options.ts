import { logLossClip } from '../domain/base/metrics.js';
import { accuracyConstants } from '../domain/base/params.js';
import { resamples, seed } from '../lab/backtest/bootstrap.js';
import { maxFold } from '../lab/evaluate/rows.js';
import { onlyFile, parseArguments, readInteger, usageOf } from './arguments.js';
import { maxThreads } from './evaluate-options.js';
import { checkReportPlace } from './report-file.js';

export interface BacktestArguments {
  readonly file: string;
  /** null: all in turn. */
  readonly fold: number | null;
  /** Where the page goes; null: no page. */
  readonly report: string | null;
  /** null: as many as are worth it. */
  readonly threads: number | null;
  readonly json: boolean;
}

const { horizons, minAnswers } = accuracyConstants;

export const backtestHelp = `Usage: npm run backtest -- FILE [options]

Tells how far forecasts of the share of right answers can be relied on: each learner of FILE is looked at
after so many answers, the share of right answers over the next days is forecast with its interval by models
that were trained on the learners of the other folds, and then held against what was answered.

FILE is as for npm run evaluate (its --help tells the columns). With times, horizons are
${horizons.days.join(', ')} days from the last answer on; without any, they are the next ${horizons.answers.join(', ')} answers.
Moments with fewer than ${minAnswers} answers inside the horizon are left out; a horizon in answers is always complete.

Options:
  --fold N       forecasts only the learners of fold N (default: those of each fold in turn; where FILE has
                 all learners in one fold, of folds 1 to 5 by a hash of user_id)
  --report HTML  writes a page with plots and tables; it opens without a network
  --threads N    threads of the fit, 1 to ${maxThreads} (default: 1, from a million answers on all cores)
  --json         the figures as one line of JSON
  --help         this text

Models: served (what the service forecasts), no_change (the learner's last 50 answers go on), population (the
share of right answers in training).
Figures: coverage (share of moments whose observed share lies inside the interval), width of the 80 % interval,
brier and log_loss (natural logarithm, of ${logLossClip} at least) of single answers, mae (distance of the expected
share from the observed one); each moment counts once. Intervals of figures are 95 %, by ${resamples} bootstrap
samples of learners with seed ${seed}. Bands are by answers so far and horizon.
`;

const usage = usageOf('npm run backtest -- FILE [options]');

/** @returns the arguments, or null if help was asked for. @throws StartError */
export function readBacktestArguments(argv: readonly string[]): BacktestArguments | null {
  const { values, positionals } = parseArguments(usage, argv, {
    fold: { type: 'string' },
    report: { type: 'string' },
    threads: { type: 'string' },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  });
  if (values.help) return null;
  const { fold, report, threads } = values;
  return {
    file: onlyFile(usage, positionals),
    fold: fold === undefined ? null : readInteger(usage, '--fold', fold, 0, maxFold),
    report: report === undefined ? null : checkReportPlace(report),
    threads: threads === undefined ? null : readInteger(usage, '--threads', threads, 1, maxThreads),
    json: values.json,
  };
}
