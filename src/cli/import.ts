/** Imports a file of answers through the engine. */
import { type CommandContext, startCommand } from './command.js';
import { countFile } from './import-count.js';
import { checkContent, openFile } from './import-file.js';
import { type ImportArguments, importHelp, readImportArguments } from './import-options.js';
import { createProgress, summaryJson, summaryText } from './import-report.js';
import { beginImport } from './import-run.js';

/** @param argv arguments after the command */
export const main = (argv: readonly string[]): Promise<void> =>
  startCommand(
    {
      name: 'import',
      help: importHelp,
      read: (given) => readImportArguments(given, Date.now()),
      work: importFile,
    },
    argv,
  );

async function importFile(context: CommandContext, args: ImportArguments): Promise<void> {
  const { closers } = context;
  const progress = createProgress(closers);
  const file = openFile(args.file);
  const meaning = `${args.tenant}\n${args.startMs ?? ''}`;
  const content = await checkContent(file, meaning, progress, () => closers.closing);
  if (closers.closing) return;
  const run = await beginImport(context, args, content);
  const summary = await countFile(context, args, file, run, progress);
  progress.show('');
  if (summary !== null) process.stdout.write(`${args.json ? summaryJson(summary) : summaryText(summary)}\n`);
}
