import { setImmediate as nextTurn } from 'node:timers/promises';
import { logLossClip, reliabilityBins } from '../../domain/base/prediction-metrics.js';
import { type AnswerTable, assignFolds, type Split } from '../../lab/evaluate/answers.js';
import { predictAll } from '../../lab/evaluate/predict.js';
import {
  type Evaluation,
  formatEvaluation,
  renderEvaluation,
  serializeEvaluation,
} from '../../lab/evaluate/report.js';
import { computeResults } from '../../lab/evaluate/results.js';
import { checkAnswers } from '../../lab/evaluate/validity.js';
import { maxFold } from '../../services/answer-log/rows.js';
import { logHelp } from '../answer-log/options.js';
import { chooseThreads, defineLabCommand, openTrainer, requireSplit } from './lab-command.js';

export const main = defineLabCommand<Evaluation>({
  name: 'evaluate',
  about: `Measures how well the models predict the answers of one fold of FILE. The models are trained on the learners of the
other folds. Each answer is predicted from the learner's earlier answers, with the code of the service.`,
  fold: `predict the learners of fold N, 0 to ${maxFold} (default: 1)`,
  examples: [
    'npm run evaluate -- answers.csv.gz',
    'npm run evaluate -- answers.csv --fold 2 --report report.html',
  ],
  notes: `${logHelp}

If all answers of a learner have an order, it sorts them; otherwise ts sorts them if all have it; otherwise the order of the
file applies. The learner's first fold, 0 to ${maxFold}, applies to all rows of the learner; without one, a hash of user_id
assigns fold 1 to 5, the same in every run. Invalid rows are skipped, counted and reported on standard error.

Models:
  overall_mean  share of correct answers in the training data
  skill_mean    share of correct answers of the skill in the training data
  bkt           plain Bayesian Knowledge Tracing with fitted parameters
  served        p_correct as the service returns it

Metrics: auc (ties count half; null if all answers are equal), rmse, log_loss (natural logarithm; probabilities are
clipped at ${logLossClip}), accuracy (threshold .5), ece (expected calibration error over ${reliabilityBins} bins of equal width).

Other fields of --json:
  rows, learners         predicted answers and their learners; train has the same for training
  fit                    BKT fit: seconds with data preparation, EM iterations of all skills, observations
  served_fit.peak_bytes  peak memory of the process until the end of the fit
  parts                  log loss without and with each part of the served model, on training learners that were
                         held out by a cross-fit, and whether the part is published
  monotone               probes of other items of the skill after an answer: right_lowers and wrong_raises count
                         moves against the answer, furthest is the largest one; met_items counts the probes of
                         items that the learner had answered before
  validity               mastery compared with the answers; intervals: 95 %, over learners
  headline, run          summary; version, date and command of the run
  auc_margins            half of the 95 % interval of each AUC, over learners
  several_skills         metrics of the served model for questions with several skills; null without such answers
  movers                 predictions for learners whose share of correct answers changes by .2 or more

docs/understand/model-results.md ("Does mastery follow the answers?") defines validity and movers. Needs no servers.`,
  measure: async (context, args, { table, leftOut }) => {
    const fold = args.fold ?? 1;
    const split = requireSplit(table, assignFolds(table), fold);
    const threads = chooseThreads(args, split.training);
    const trained = await openTrainer(context, threads)(split.training);
    if (trained === null) return null;
    context.showProgress('predicting');
    await nextTurn();
    const since = performance.now();
    const { predictions, monotone, answers } = predictAll(split, trained.models);
    const predict = { seconds: (performance.now() - since) / 1000 };
    const { fit, servedFit, parts } = trained.figures;
    return {
      ...{ file: args.file, fold, split: findFoldSource(table), leftOut },
      test: countAnswers(split.test),
      train: countAnswers(split.training),
      fit: { ...fit, threads },
      ...{ servedFit, parts, predict, monotone },
      ...checkAnswers(answers),
      results: computeResults(split, predictions, table.skills),
    };
  },
  json: serializeEvaluation,
  text: formatEvaluation,
  page: renderEvaluation,
});

const countAnswers = ({ correct, starts }: Split['test']) => ({
  rows: correct.length,
  learners: starts.length - 1,
});

function findFoldSource({ folds, learners }: AnswerTable): Evaluation['split'] {
  if (folds.size === 0) return 'hash';
  return folds.size === learners.length ? 'fold' : 'mixed';
}
