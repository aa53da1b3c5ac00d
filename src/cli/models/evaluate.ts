import { setImmediate as nextTurn } from 'node:timers/promises';
import { logLossClip, reliabilityBins } from '../../domain/base/prediction-metrics.js';
import { type AnswerTable, assignFolds, maxFold, type Split } from '../../lab/evaluate/answers.js';
import { predictAll } from '../../lab/evaluate/predict.js';
import {
  type Evaluation,
  formatEvaluation,
  renderEvaluation,
  serializeEvaluation,
} from '../../lab/evaluate/report.js';
import { computeResults } from '../../lab/evaluate/results.js';
import { checkAnswers } from '../../lab/evaluate/validity.js';
import { chooseThreads, defineLabCommand, openTrainer, requireSplit } from './lab-command.js';

export const main = defineLabCommand<Evaluation>({
  name: 'evaluate',
  about: `Measures how well the models predict the answers of FILE. They are trained on the learners of all folds but
one, and predict every answer of that fold's learners from the learner's own earlier answers, through the
code that serves. What is known of skills and items comes from the training learners alone.

FILE is CSV with a header, or NDJSON, both also as gzip. Columns: user_id, skill_id, correct, and
optionally item_id, order, ts, fold, response_time_s, question_difficulty, each of which may be empty in a
row; others are ignored. Rows that do not fit are left out, counted and reported on standard error.
  order                a learner's answers are sorted by it where all of them have one, else by ts where
                       all of them have one, else they come as in the file
  ts                   RFC 3339, or Unix seconds
  fold                 integer 0 to ${maxFold}; the first one holds for all rows of a learner. Learners
                       without any are in fold 1 to 5 by a hash of user_id, the same in every run
  question_difficulty  -3 to 3`,
  fold: 'whose answers are predicted (default: 1)',
  notes: `Models: overall_mean (share of right answers in training), skill_mean (the same by skill), bkt (plain
Bayesian Knowledge Tracing with fitted parameters), served (what the service answers as p_correct).
Figures: auc (ties count half; null where all answers are alike), rmse, log_loss (natural logarithm,
of ${logLossClip} at least), accuracy (at .5), ece (calibration error over ${reliabilityBins} bins of equal width).
In JSON, rows and learners are those that were predicted, the training ones stand under train;
fit.seconds is the time of the BKT fit with the preparation of its data, fit.iterations the EM iterations
of all skills together, fit.observations the answers fitted on, served_fit.peak_bytes the most memory of the
process by the end of the fit. parts tells the log loss without and with each part of the served
model, on answers of training learners whom a fit did not see, and which are published. monotone counts how
often, of probes tried, a right answer lowered (right_lowers) or a wrong one raised (wrong_raises) the
served probability for another item of the skill, by furthest at most; met_items are the probes of items
that the learner knew.
validity compares mastery with the answers of learners on a skill, movers the predictions of learners whose
share right rises or falls by .2 or more with it; docs/understand/model-results.md ("Does mastery follow the
answers?") defines each figure.`,
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
