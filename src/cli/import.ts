/** Imports a file of answers through the engine. */
import { type CommandContext, commandOf } from './command.js';
import { countFile } from './import-count.js';
import { checkContent, openFile } from './import-file.js';
import { type ImportArguments, importHelp, readImportArguments } from './import-options.js';
import { createProgress, summaryJson, summaryText } from './import-report.js';
import { beginImport } from './import-run.js';

export const main = commandOf({
  name: 'import',
  help: importHelp,
  read: (given) => readImportArguments(given, Date.now()),
  work: importFile,
});

async function importFile(context: CommandContext, args: ImportArguments): Promise<void> {
  const { closers } = context;
  const progress = createProgress(context);
  const file = openFile(args.file);
  const meaning = `${args.tenant}\n${args.startMs ?? ''}`;
  const content = await checkContent(file, meaning, progress, () => closers.closing);
  if (closers.closing) return;
  const run = await beginImport(context, args, content);
  const summary = await countFile(context, args, file, run, progress);
  progress.show('');
  if (summary !== null) context.stdout.write(`${args.json ? summaryJson(summary) : summaryText(summary)}\n`);
}
