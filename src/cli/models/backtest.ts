import { basename } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { accuracyConstants } from '../../domain/base/accuracy-constants.js';
import { logLossClip } from '../../domain/base/prediction-metrics.js';
import { detectHorizonUnit } from '../../domain/fit/accuracy/accuracy-cases.js';
import { forecastFold, type ScoredCase } from '../../lab/backtest/forecasts.js';
import { renderBacktest } from '../../lab/backtest/page.js';
import { type Backtest, formatBacktest, serializeBacktest } from '../../lab/backtest/report.js';
import { computeResults, resamples, seed } from '../../lab/backtest/results.js';
import { type ForecastWindow, planWindows, selectAnswersBefore } from '../../lab/backtest/windows.js';
import { type AnswerTable, assignFolds } from '../../lab/evaluate/answers.js';
import { StartError } from '../../lifecycle.js';
import type { CommandContext } from '../support/command.js';
import { chooseThreads, defineLabCommand, listFolds, openTrainer, requireSplit } from './lab-command.js';

const { horizons, minAnswers } = accuracyConstants;

export const main = defineLabCommand<Backtest>({
  name: 'backtest',
  about: `Measures how far forecasts of the share of right answers can be relied on. After so many answers of each
learner of FILE the share of right answers over the next days is forecast with its interval, by models that
were trained on the learners of the other folds, and compared with what was answered. With times, the models
know only what was answered before: the log is cut into four stretches of as many answers, and the moments of
each but the first are forecast by models of those before it.

FILE is as for npm run evaluate (its --help lists the columns). With times, horizons are
${horizons.days.join(', ')} days from the last answer on; without any, they are the next ${horizons.answers.join(', ')} answers.
Moments with fewer than ${minAnswers} answers inside the horizon are left out; a horizon in answers
is always complete, one in days ends with the log.`,
  fold: `forecasts only the learners of fold N (default: those of each fold in turn; where FILE has
all learners in one fold, of folds 1 to 5 by a hash of user_id)`,
  notes: `Models: served (what the service forecasts), no_change (the learner's last 50 answers go on), population (the
share of right answers in training).
Figures: coverage (share of moments whose observed share lies inside the interval), width of the 80 % interval,
brier and log_loss (natural logarithm, of ${logLossClip} at least) of single answers, mae (distance of the expected
share from the observed one); each moment counts once. Intervals of figures are 95 %, by ${resamples} bootstrap
samples of learners with seed ${seed}. Bands are by answers so far and horizon.`,
  measure: async (context, args, { table, since }) => {
    const folds = args.fold === null ? chooseFolds(table, context) : assignFolds(table);
    const scored: ScoredCase[] = [];
    let unit: Backtest['unit'] = 'days';
    let windows: readonly ForecastWindow[] = [];
    let train: ReturnType<typeof openTrainer> | undefined;
    for (const fold of args.fold === null ? listFolds(folds) : [args.fold]) {
      const split = requireSplit(table, folds, fold);
      train ??= openTrainer(context, chooseThreads(args, split.training));
      unit = detectHorizonUnit(split.training);
      windows = planWindows(split);
      for (const [i, window] of windows.entries()) {
        const training = selectAnswersBefore(split.training, window);
        const trained = training.correct.length > 0 ? await train(training) : null;
        if (context.closers.closing) return null;
        if (trained === null || trained.models.served.model.accuracy.unit !== unit) continue;
        context.showProgress(`forecasting fold ${fold}, window ${i + 1}`);
        await nextTurn();
        if (context.closers.closing) return null;
        // `push(...all)` with millions of arguments overflows the stack.
        for (const one of forecastFold({ ...split, training }, trained.models.served, fold, window))
          scored.push(one);
      }
    }
    if (scored.length === 0)
      throw new StartError('No learner has enough answers after another for a forecast to be held against');
    context.showProgress('bootstrap');
    const results = await computeResults(scored);
    const seconds = (performance.now() - since) / 1000;
    const cutoffs = windows.map(({ from }) => from).filter(Number.isFinite);
    return { file: basename(args.file), fold: args.fold, unit, cutoffs, seconds, results };
  },
  json: serializeBacktest,
  text: formatBacktest,
  page: renderBacktest,
});

/** Uses folds by a hash if the file has only one fold. */
function chooseFolds(table: AnswerTable, { stderr }: CommandContext): Uint16Array {
  const fileFolds = assignFolds(table);
  const hashFolds = assignFolds({ ...table, folds: new Map() });
  const [fold, another] = listFolds(fileFolds);
  if (another !== undefined || listFolds(hashFolds).length === 1) return fileFolds;
  stderr.write(`Every learner is in fold ${fold}: folds are 1 to 5 by a hash of user_id instead\n`);
  return hashFolds;
}
