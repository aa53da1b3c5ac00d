import { logLossClip, reliabilityBins } from '../domain/base/metrics.js';
import { maxFold } from '../lab/evaluate/rows.js';
import { onlyFile, parseArguments, readInteger, usageOf } from './arguments.js';
import { checkReportPlace } from './report-file.js';

export interface EvaluateArguments {
  readonly file: string;
  readonly fold: number;
  /** Where the page goes; null: no page. */
  readonly report: string | null;
  /** null: as many as are worth it. */
  readonly threads: number | null;
  readonly json: boolean;
}

export const maxThreads = 256;

export const evaluateHelp = `Usage: npm run evaluate -- FILE [options]

Tells how well the models foretell the answers of FILE: they are trained on the learners of all folds but
one, and predict every answer of that fold's learners from the learner's own earlier answers, through the
code that serves. What is known of skills and items comes from the training learners alone.

FILE is CSV with a header, or NDJSON, both also as gzip. Columns: user_id, skill_id, correct, and
optionally item_id, order, ts, fold, response_time_s, question_difficulty, each of which may be empty in a
row; others are ignored. Rows that do not fit are left out, counted and told on standard error.
  order                a learner's answers are sorted by it where all of them have one, else by ts where
                       all of them have one, else they come as in the file
  ts                   RFC 3339, or Unix seconds
  fold                 integer 0 to ${maxFold}; the first one told holds for all rows of a learner. Learners
                       without any are in fold 1 to 5 by a hash of user_id, the same in every run
  question_difficulty  -3 to 3

Options:
  --fold N       whose answers are predicted (default: 1)
  --report HTML  writes a page with reliability plots, learning curves and tables; it opens without a network
  --threads N    threads of the fit, 1 to ${maxThreads} (default: 1, from a million answers on all cores)
  --json         the figures as one line of JSON
  --help         this text

Models: overall_mean (share of right answers in training), skill_mean (the same by skill), bkt (plain
Bayesian Knowledge Tracing with fitted parameters), served (what the service answers as p_correct).
Figures: auc (ties count half; null where all answers are alike), rmse, log_loss (natural logarithm,
of ${logLossClip} at least), accuracy (at .5), ece (calibration error over ${reliabilityBins} bins of equal width).
In JSON, rows and learners are those that were predicted, the training ones stand under train;
fit.seconds is the time of the BKT fit with the preparation of its data, fit.iterations the EM iterations
of all skills together, fit.observations the answers fitted on. monotone tells how often, of probes tried,
a right answer lowered (right_lowers) or a wrong one raised (wrong_raises) the served probability for
another item of the skill.
`;

const usage = usageOf('npm run evaluate -- FILE [options]');

/** @returns the arguments, or null if help was asked for. @throws StartError */
export function readEvaluateArguments(argv: readonly string[]): EvaluateArguments | null {
  const { values, positionals } = parseArguments(usage, argv, {
    fold: { type: 'string', default: '1' },
    report: { type: 'string' },
    threads: { type: 'string' },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  });
  if (values.help) return null;
  return {
    file: onlyFile(usage, positionals),
    fold: readInteger(usage, '--fold', values.fold, 0, maxFold),
    report: values.report === undefined ? null : checkReportPlace(values.report),
    threads:
      values.threads === undefined ? null : readInteger(usage, '--threads', values.threads, 1, maxThreads),
    json: values.json,
  };
}
