import { basename } from 'node:path';
import { accuracyConstants } from '../../domain/base/accuracy-constants.js';
import { logLossClip } from '../../domain/base/prediction-metrics.js';
import { detectHorizonUnit } from '../../domain/fit/accuracy/accuracy-cases.js';
import { forecastFold, scoreForecasts } from '../../lab/backtest/forecasts.js';
import { type Backtest, reportBacktest } from '../../lab/backtest/report.js';
import { computeResults, resamples } from '../../lab/backtest/results.js';
import { type ForecastWindow, planWindows, selectAnswersBefore } from '../../lab/backtest/windows.js';
import { type AnswerTable, assignFolds } from '../../lab/evaluate/answers.js';
import { seed } from '../../lab/evaluate/bootstrap.js';
import { StartError } from '../../lifecycle.js';
import { logHelp } from '../answer-log/options.js';
import type { CommandContext } from '../support/command.js';
import { defineLabCommand, listFolds, openTrainer, requireSplit } from './lab-command.js';

const { horizons, minAnswers } = accuracyConstants;

export const main = defineLabCommand({
  name: 'backtest',
  options: {},
  about: `Forecasts the share of correct answers of each learner of FILE at many points of the log, and compares the forecasts
and their intervals with the answers that followed.`,
  fold: `forecast only the learners of fold N (default: each fold in turn; if FILE has all learners in
one fold, folds 1 to 5 by a hash of user_id)`,
  examples: ['npm run backtest -- answers.csv.gz', 'npm run backtest -- answers.csv --report report.html'],
  notes: `${logHelp}

Training: the models of a forecast are trained on learners of other folds. If the log has times, they also see only
earlier answers: the log is split into four parts with equal numbers of answers, and each part except the first is
forecast by models that were trained on the parts before it.

Recalibration: if the log has times, the outcomes of horizons that ended before a forecast correct its intervals, as in the
service. The corrections are recomputed every three days.

Horizons: ${horizons.days.join(', ')} days after the last answer; if the log has no times, the next ${horizons.answers.join(', ')} answers.
Forecasts with fewer than ${minAnswers} answers within the horizon are skipped. A horizon in answers is always complete; a
horizon in days may extend beyond the end of the log.

Models:
  served      the forecast of the service
  no_change   the learner's share of correct answers in the last 50 answers
  population  the share of correct answers in the training data

Metrics, by number of earlier answers and horizon; each forecast counts once:
  coverage    share of forecasts with the observed share inside the interval
  width       mean width of the 80 % interval
  brier       Brier score of single answers
  log_loss    natural logarithm, single answers; probabilities are clipped at ${logLossClip}
  mae         mean absolute difference of expected and observed share
  trends      bias (expected minus observed share), rmse and coverage for learners whose results were falling, constant
              or rising at the forecast
  uncalibrated_coverage_80 and _width_80 are those before recalibration. A fault of a band (80 % interval) or of a trend
  (bias) is null if judged is false: too few forecasts or learners.
Brackets are 95 % intervals from ${resamples} bootstrap samples of learners with seed ${seed}. Needs no servers.`,
  measure: async (context, args, { table, since }) => {
    const folds = args.fold === null ? chooseFolds(table, context) : assignFolds(table);
    const forecasts: ReturnType<typeof forecastFold> = [];
    let unit: Backtest['unit'] = 'days';
    let windows: readonly ForecastWindow[] = [];
    const train = openTrainer(context, args, table);
    for (const fold of args.fold === null ? listFolds(folds) : [args.fold]) {
      const split = requireSplit(table, folds, fold);
      unit = detectHorizonUnit(split.training);
      windows = planWindows(split);
      for (const [i, window] of windows.entries()) {
        const training = selectAnswersBefore(split.training, window);
        if (training.correct.length === 0) continue;
        const trained = await train(training, `fold ${fold}, part ${i + 1} of ${windows.length}: `);
        if (trained === null) return null;
        if (trained.models.served.model.accuracy.unit !== unit) continue;
        // `push(...all)` with millions of arguments overflows the stack.
        for (const one of forecastFold({ ...split, training }, trained.models.served, fold, window))
          forecasts.push(one);
      }
    }
    if (forecasts.length === 0) throw createNoForecastError(unit);
    context.showProgress('recalibrating over time');
    const scored = await scoreForecasts(forecasts);
    context.showProgress('computing intervals by bootstrap');
    const results = await computeResults(scored);
    const seconds = (performance.now() - since) / 1000;
    const cutoffs = windows.map(({ from }) => from).filter(Number.isFinite);
    const found = { file: basename(args.file), fold: args.fold, unit, cutoffs, seconds, results };
    return reportBacktest(found);
  },
});

function createNoForecastError(unit: Backtest['unit']): StartError {
  const needed =
    unit === 'days'
      ? `${minAnswers} answers within ${Math.max(...horizons.days)} days after a forecast`
      : `more than ${Math.min(...horizons.answers)} answers, because no learner has answers at different times`;
  return new StartError(
    `No forecast can be checked: a learner needs ${needed}. Use a log with more answers per learner`,
  );
}

/** Uses folds by a hash if the file has only one fold. */
function chooseFolds(table: AnswerTable, { stderr }: CommandContext): Uint16Array {
  const fileFolds = assignFolds(table);
  const hashFolds = assignFolds({ ...table, folds: new Map() });
  const [fold, another] = listFolds(fileFolds);
  if (another !== undefined || listFolds(hashFolds).length === 1) return fileFolds;
  stderr.write(`All learners are in fold ${fold}; a hash of user_id assigns folds 1 to 5 instead\n`);
  return hashFolds;
}
