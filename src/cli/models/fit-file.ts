import { splitInSample } from '../../lab/evaluate/answers.js';
import { formatFigure } from '../../lab/evaluate/figures.js';
import { measureFold } from '../../lab/evaluate/folds.js';
import { formatJsonLine, formatNumber } from '../../lab/report/format.js';
import type { ReadOptions } from '../../services/answer-log/options.js';
import type { CommandContext } from '../support/command.js';
import { chooseThreads, openTrainer, readAnswers, trainAndScore } from './lab-command.js';
import { type TablePaths, writeTables } from './output-files.js';

interface FitFileArguments extends TablePaths {
  readonly file: string;
  readonly options: ReadOptions;
  readonly threads: number | null;
  readonly json: boolean;
}

interface FileFit {
  readonly answers: number;
  readonly learners: number;
  readonly skills: number;
  readonly seconds: number;
  readonly inSample: ReturnType<typeof measureFold>['models'];
}

/** Fits the models on all answers of a file. Publishes nothing and needs no servers. */
export async function fitFile(context: CommandContext, args: FitFileArguments): Promise<void> {
  const answers = await readAnswers(args, context);
  if (answers === null) return;
  const { table, leftOut, since } = answers;
  const split = splitInSample(table);
  const train = openTrainer(context, chooseThreads(args, split.training));
  const scored = await trainAndScore(context, train, split);
  if (scored === null) return;
  const seconds = (performance.now() - since) / 1000;
  const { rows, learners, models: inSample } = measureFold(scored);
  const found = { answers: rows, learners, skills: table.skills.length, leftOut, seconds, inSample };
  context.print(args.json ? formatJsonLine(found, 6) : formatFit(found));
  await writeTables(context, args, table, [scored]);
}

const formatFit = ({ answers, learners, skills, seconds, inSample: { served, bkt } }: FileFit): string => {
  const describe = ({ auc, logLoss }: FileFit['inSample']['bkt']): string =>
    `AUC ${formatFigure(auc)}, log loss ${formatFigure(logLoss)}`;
  return `Fitted ${formatNumber(skills)} skills on ${formatNumber(answers)} answers of ${formatNumber(learners)} learners in ${seconds.toFixed(1)} s. Published nothing.
In-sample predictions of the served model: ${describe(served)}; of plain BKT: ${describe(bkt)}.
npm run evaluate measures the predictions of learners that the fit did not use.`;
};
