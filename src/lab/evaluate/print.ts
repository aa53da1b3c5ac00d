/** What an evaluation prints. */
import type { ReliabilityBin } from '../../domain/base/metrics.js';
import { aligned, grouped, roundedJson } from '../report/numbers.js';
import type { ModelResult, Results } from './results.js';
import type { MonotoneCheck } from './served.js';
import type { FitFigures } from './train.js';

/** What is printed beside the results. */
export interface Summary {
  readonly file: string;
  readonly fold: number;
  /** Where folds come from. */
  readonly split: 'fold' | 'hash' | 'mixed';
  readonly test: Counts;
  readonly train: Counts;
  readonly leftOut: number;
  readonly fit: FitFigures & { readonly predictSeconds: number; readonly threads: number };
  readonly monotone: MonotoneCheck;
  readonly results: Results;
}

export interface Counts {
  readonly rows: number;
  readonly learners: number;
}

export const evaluationJson = ({ test, train, fit, monotone, results, ...summary }: Summary): string =>
  roundedJson({
    rows: test.rows,
    learners: test.learners,
    models: Object.fromEntries(
      results.models.map(({ name, metrics: { auc, rmse, logLoss, accuracy, ece } }) => [
        name,
        { auc, rmse, log_loss: logLoss, accuracy, ece },
      ]),
    ),
    fit: {
      seconds: fit.seconds,
      iterations: fit.iterations,
      observations: fit.observations,
      threads: fit.threads,
    },
    file: summary.file,
    fold: summary.fold,
    split: summary.split,
    train,
    left_out: summary.leftOut,
    served_fit: { seconds: fit.servedSeconds },
    predict: { seconds: fit.predictSeconds },
    monotone: {
      probes: monotone.probes,
      right_lowers: monotone.rightLowers,
      wrong_raises: monotone.wrongRaises,
    },
    reliability: Object.fromEntries(results.models.map(({ name, reliability }) => [name, reliability])),
  });

const splits = {
  fold: 'folds of the file',
  hash: 'folds by a hash of user_id',
  mixed: 'folds of the file, by a hash of user_id where it has none',
} as const;

export function evaluationText({ file, fold, split, test, train, fit, monotone, results }: Summary): string {
  const served = results.models.find(({ name }) => name === 'served');
  return [
    `${file}, fold ${fold} (${splits[split]})`,
    `${counts(test)} predicted, trained on ${counts(train)}`,
    `BKT fitted in ${fit.seconds.toFixed(2)} s (${grouped(fit.iterations)} iterations), the served model in ${fit.servedSeconds.toFixed(2)} s, ${fit.threads} ${fit.threads === 1 ? 'thread' : 'threads'}; predicted in ${fit.predictSeconds.toFixed(2)} s`,
    '',
    aligned([['MODEL', 'AUC', 'RMSE', 'LOG LOSS', 'ACCURACY', 'ECE'], ...results.models.map(metricsRow)]),
    '',
    `For another item of the skill, a right answer lowered the served probability ${grouped(monotone.rightLowers)} times`,
    `and a wrong one raised it ${grouped(monotone.wrongRaises)} times, tried at ${grouped(monotone.probes)} answers.`,
    '',
    'Reliability of the served model:',
    aligned([['PREDICTED', 'ANSWERS', 'MEAN', 'RIGHT', 'GAP'], ...(served?.reliability ?? []).map(binRow)]),
  ].join('\n');
}

const counts = ({ rows, learners }: Counts): string =>
  `${grouped(rows)} answers of ${grouped(learners)} learners`;

const shown = (value: number | null): string => (value === null ? 'none' : value.toFixed(4));

const metricsRow = ({ name, metrics }: ModelResult): string[] => [
  name,
  ...[metrics.auc, metrics.rmse, metrics.logLoss, metrics.accuracy, metrics.ece].map(shown),
];

const binRow = ({ low, high, answers, predicted, correct }: ReliabilityBin): string[] => [
  `${low.toFixed(3)} to ${high.toFixed(3)}`,
  grouped(answers),
  ...(predicted === null || correct === null
    ? ['', '', '']
    : [predicted, correct, predicted - correct].map(shown)),
];
