/** Imports a file of answers through the engine. */
import { reportStartFailure } from '../lifecycle.js';
import { createLogger } from '../telemetry.js';
import { runCommand } from './command.js';
import { countFile } from './import-count.js';
import { checkContent, openFile } from './import-file.js';
import { type ImportArguments, importHelp, readImportArguments } from './import-options.js';
import { createProgress, summaryJson, summaryText } from './import-report.js';
import { beginImport } from './import-run.js';

/** @param argv arguments after the command */
export async function main(argv: readonly string[]): Promise<void> {
  let args: ImportArguments | null;
  try {
    args = readImportArguments(argv, Date.now());
  } catch (error) {
    reportStartFailure(error, createLogger('info', 'import'));
    process.exitCode = 1;
    return;
  }
  if (args === null) process.stdout.write(importHelp);
  else await importFile(args);
}

const importFile = (args: ImportArguments): Promise<void> =>
  runCommand('import', async (context) => {
    const { closers } = context;
    const progress = createProgress(closers);
    const file = openFile(args.file);
    const meaning = `${args.tenant}\n${args.startMs ?? ''}`;
    const content = await checkContent(file, meaning, progress, () => closers.closing);
    if (closers.closing) return;
    const run = await beginImport(context, args, content);
    const summary = await countFile(context, args, file, run, progress);
    progress.show('');
    if (summary !== null)
      process.stdout.write(`${args.json ? summaryJson(summary) : summaryText(summary)}\n`);
  });
