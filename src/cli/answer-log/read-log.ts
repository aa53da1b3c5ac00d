import { createHash } from 'node:crypto';
import { formatJsonLine, formatNumber, formatTableLines } from '../../lab/report/format.js';
import { textTable } from '../../lab/report/page.js';
import { StartError } from '../../lifecycle.js';
import type { ReadOptions } from '../../services/answer-log/options.js';
import { buildWarnings, createProfile } from '../../services/answer-log/profile.js';
import type { FileAnswer } from '../../services/answer-log/rows.js';
import { flag } from '../support/arguments.js';
import type { CommandContext } from '../support/command.js';
import { type AnswerLogFile, openAnswerLog } from './open-log.js';

const shownAnswers = 10;
const shownProblems = 5;
/** Fewer answers can be equal by chance. */
const minOneClassAnswers = 100;

type ReadFile = NonNullable<Awaited<ReturnType<typeof readLog>>>;

/**
 * Reads the whole file. `hash`: SHA-256 of the content; `first` answers; `problems`: first invalid rows.
 * @returns null after a signal @throws StartError for a damaged file
 */
export async function readLog(
  log: AnswerLogFile,
  { closers, showProgress }: Pick<CommandContext, 'closers' | 'showProgress'>,
  onAnswer: (answer: FileAnswer) => void = () => undefined,
) {
  const hash = createHash('sha256');
  const profile = createProfile();
  const [first, problems]: [FileAnswer[], string[]] = [[], []];
  let [rows, bytes] = [0, 0];
  const onBytes = (chunk: Buffer): void => {
    hash.update(chunk);
    bytes += chunk.length;
  };
  for await (const page of log.readPages(Date.now(), onBytes)) {
    if (closers.closing) return null;
    rows += page.fileRows;
    for (const { row } of page.rows) {
      profile.add(row);
      if (row.answer !== null) {
        if (first.length < shownAnswers) first.push(row.answer);
        onAnswer(row.answer);
      } else if (!row.isFiltered && problems.length < shownProblems)
        problems.push(`  line ${row.line}: ${row.message}`);
    }
    const share = Math.floor((100 * bytes) / Math.max(1, log.bytes));
    showProgress(`reading: ${share} %, ${formatNumber(rows)} rows`);
  }
  showProgress('');
  const found = profile.read(rows);
  const warnings = [...log.warnings, ...buildWarnings(found)];
  return { hash: hash.digest(), profile: found, first, problems, warnings };
}

/** @throws StartError without answers, or if all are equal and the options do not name the right values */
export function rejectUnusable(path: string, { profile, problems }: ReadFile, options: ReadOptions): void {
  const { answers, correctShare, leftOut } = profile;
  const reasons = Object.entries(leftOut).map(([reason, rows]) => `  ${formatNumber(rows)} rows: ${reason}`);
  if (answers === 0) {
    const found = [problems, reasons, ['  it has no rows: pass a file with a row for each answer']];
    const details = found.find((lines) => lines.length > 0) ?? [];
    throw new StartError([`${path} contains no valid answer`, ...details].join('\n'));
  }
  const isOneClass = correctShare === 0 || correctShare === 1;
  if (!isOneClass || answers < minOneClassAnswers || options.correctValues !== null) return;
  const result = correctShare === 1 ? 'correct' : 'incorrect';
  throw new StartError(
    `${path}: all ${formatNumber(answers)} answers are ${result}. Check the column of the results, or name the right values with --correct-values`,
  );
}

export const dryRunFlag = flag('print how FILE is read, ten answers and warnings, and stop');

/** --dry-run. @throws StartError for a damaged file */
export async function printDryRun(
  { file, options, json }: { readonly file: string; readonly options: ReadOptions; readonly json: boolean },
  context: CommandContext,
): Promise<void> {
  const log = await openAnswerLog(file, options);
  const read = await readLog(log, context);
  if (read !== null) context.print(describeFile(log, read, json));
}

function describeFile(log: AnswerLogFile, read: ReadFile, isJson: boolean): string {
  const { format, mapping } = log;
  const { correctShare, from, to, leftOut, ...counts } = read.profile;
  const { rows, answers, learners, skills, items, severalSkills, repeated } = counts;
  const time = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());
  const reasons = Object.entries(leftOut).map(([reason, count]) => [reason, formatNumber(count)]);
  if (isJson)
    return formatJsonLine({
      ...{ format: format.name, mapping: mapping.names, rows, answers, learners, skills, items },
      ...{ severalSkills, correctShare, from: time(from), to: time(to), leftOut, warnings: read.warnings },
    });
  const entries = (title: string, values: Readonly<Record<string, string>>): string =>
    [title, formatTableLines(Object.entries(values), 'padEnd').map((line) => `  ${line}`)].flat().join('\n');
  return [
    `${log.path}: format ${format.name} (${format.title})`,
    entries('Columns:', mapping.names),
    `First answers:\n${textTable(answerHead, read.first.map(toCells))}`,
    entries('Content:', {
      rows: formatNumber(rows),
      answers: `${formatNumber(answers)}, ${formatNumber(severalSkills)} of them on several skills`,
      ...{ learners: formatNumber(learners), skills: formatNumber(skills), items: formatNumber(items) },
      'share correct': correctShare === null ? 'none' : correctShare.toFixed(3),
      'repeated rows': formatNumber(repeated.same + repeated.otherSkill),
      time: from === null ? 'none' : `${time(from)} to ${time(to)}`,
    }),
    ...(reasons.length === 0 ? [] : [entries('Rows left out:', Object.fromEntries(reasons))]),
    read.warnings.map((warning) => `Warning: ${warning}`).join('\n'),
  ]
    .join('\n\n')
    .trimEnd();
}

const answerHead = ['user_id', 'skills', 'correct', 'item_id', 'ts', 'response_time_s', 'order'];

const toCells = ({ userId, skillIds, isCorrect, itemId, at, seconds, order }: FileAnswer): string[] => [
  ...[userId, skillIds.join(' ~~ '), isCorrect ? '1' : '0', itemId ?? ''].map(shorten),
  at === null ? '' : new Date(at).toISOString(),
  ...[seconds, order].map((value) => (value === null ? '' : String(value))),
];

const maxCellCharacters = 40;

const shorten = (text: string): string =>
  text.length <= maxCellCharacters ? text : `${text.slice(0, maxCellCharacters - 3)}...`;
