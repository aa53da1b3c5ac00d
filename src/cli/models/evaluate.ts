import { logLossClip, reliabilityBins } from '../../domain/base/prediction-metrics.js';
import { type AnswerTable, assignFolds, countAnswers } from '../../lab/evaluate/answers.js';
import { reportFolds, summarizeFolds } from '../../lab/evaluate/folds.js';
import { collectAnswers } from '../../lab/evaluate/predict.js';
import { createProbes } from '../../lab/evaluate/probe.js';
import { type Evaluation, reportEvaluation } from '../../lab/evaluate/report.js';
import { computeResults } from '../../lab/evaluate/results.js';
import { measureSkills, type ScoredFold, scoreSplit } from '../../lab/evaluate/scores.js';
import { checkAnswers } from '../../lab/evaluate/validity.js';
import { maxFold } from '../../services/answer-log/rows.js';
import { logHelp } from '../answer-log/options.js';
import { choiceOption, UsageError } from '../support/arguments.js';
import { defineLabCommand, type LabCommand, listFolds, openTrainer, requireSplit } from './lab-command.js';
import { tableOptions, writeTables } from './output-files.js';

const options = {
  ...tableOptions,
  folds: choiceOption('all', 'predict each fold in turn, and print the mean and standard deviation', ['all']),
};
type Measure = LabCommand<typeof options>['measure'];

export const main = defineLabCommand({
  name: 'evaluate',
  about: `Measures how well the models predict the answers of one fold of FILE. The models are trained on the learners of the
other folds. Each answer is predicted from the learner's earlier answers, with the code of the service.`,
  fold: `predict the learners of fold N, 0 to ${maxFold} (default: 1)`,
  examples: [
    'npm run evaluate -- answers.csv.gz',
    'npm run evaluate -- answers.csv --fold 2 --report report.html',
    'npm run evaluate -- answers.csv --folds all --predictions predictions.parquet --parameters skills.csv',
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

--folds all prints and returns only the metrics of bkt and served: folds, and mean and sd (n - 1) over the folds.

docs/load-results.md describes the columns of --predictions and --parameters, and the fields of --json.
docs/understand/model-results.md ("Does mastery follow the answers?") defines validity and movers. Needs no servers.`,
  options,
  check: ({ fold, folds }) => {
    if (fold !== null && folds !== null)
      throw new UsageError('--fold and --folds exclude each other. Pass only one of them');
  },
  measure: (context, args, answers) =>
    args.folds === 'all' ? crossValidate(context, args, answers) : evaluateFold(context, args, answers),
});

const evaluateFold: Measure = async (context, args, { table, leftOut }) => {
  const fold = args.fold ?? 1;
  const split = requireSplit(table, assignFolds(table), fold);
  const trained = await openTrainer(context, args, table)(split.training);
  if (trained === null) return null;
  const { models, figures } = trained;
  const since = performance.now();
  const [probes, collected] = [createProbes(models.served, split), collectAnswers(models.served)];
  const scored = scoreSplit(split, models, (moment, effect) => {
    collected.visit(moment, effect);
    probes.visit(moment);
  });
  const predict = { seconds: (performance.now() - since) / 1000 };
  const evaluation: Evaluation = {
    ...{ file: args.file, fold, split: findFoldSource(table), leftOut },
    ...{ test: countAnswers(split.test), train: countAnswers(split.training) },
    ...{ ...figures, predict, monotone: probes.check },
    ...checkAnswers(collected.answers),
    results: await computeResults(split, scored.predictions),
  };
  const report = reportEvaluation(evaluation, () => measureSkills([scored], table.skills));
  return { ...report, write: () => writeTables(context, args, table, [scored]) };
};

const crossValidate: Measure = async (context, args, { table, leftOut }) => {
  const folds = assignFolds(table);
  const listed = listFolds(folds);
  const train = openTrainer(context, args, table);
  const scored: ScoredFold[] = [];
  for (const [i, fold] of listed.entries()) {
    const split = requireSplit(table, folds, fold);
    const trained = await train(split.training, `fold ${i + 1} of ${listed.length}: `);
    if (trained === null) return null;
    scored.push(scoreSplit(split, trained.models));
  }
  const found = summarizeFolds({ file: args.file, split: findFoldSource(table), leftOut }, scored);
  const report = reportFolds(found, () => measureSkills(scored, table.skills));
  return { ...report, write: () => writeTables(context, args, table, scored) };
};

function findFoldSource({ folds, learners }: AnswerTable): Evaluation['split'] {
  if (folds.size === 0) return 'hash';
  return folds.size === learners.length ? 'fold' : 'mixed';
}
