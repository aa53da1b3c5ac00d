/** CPU seconds of a test run, per suite and per file. */
import { appendFileSync, readFileSync } from 'node:fs';
import { readChildrenSeconds } from '../../../bench/targets/processes.js';

/** Environment variable with the path of the file that collects one line per test file. */
export const cpuNotesVariable = 'TEST_CPU_NOTES';

/** A test file as printed: `unit/lanes`. @param file name of the compiled file */
export const nameOfFile = (file: string): string => file.replace(/\.test\.js$/, '');

interface FileCpu {
  readonly file: string;
  readonly seconds: number;
}

/** CPU seconds of this process and of its ended children. */
export function readCpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6 + readChildrenSeconds();
}

/** @param seconds CPU that the file used in this process and its children */
export function recordFileCpu(file: string, seconds: number): void {
  const notes = process.env[cpuNotesVariable];
  if (notes !== undefined) appendFileSync(notes, `${JSON.stringify({ file, seconds })}\n`);
}

const shownFiles = 10;

/** The test files that have ended. */
export const readEndedFiles = (notesFile: string): FileCpu[] =>
  readFileSync(notesFile, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line): FileCpu => JSON.parse(line));

/**
 * A table in Markdown of CPU seconds per suite, and the files that used most.
 * @param totalSeconds CPU of the whole run: the part that no file used belongs to the runner and the shared ClickHouse
 */
export function formatCpuReport(files: readonly FileCpu[], totalSeconds: number): string {
  const suites = sumBySuite(files);
  const ofFiles = files.reduce((sum, { seconds }) => sum + seconds, 0);
  const rows = [
    ...[...suites].sort(([a], [b]) => (a < b ? -1 : 1)),
    ['shared ClickHouse, start of processes', { files: 0, seconds: totalSeconds - ofFiles }] as const,
    ['all', { files: files.length, seconds: totalSeconds }] as const,
  ].map(([suite, { files: count, seconds }]) => `| ${suite} | ${count} | ${seconds.toFixed(0)} |\n`);
  const expensive = [...files]
    .sort((a, b) => b.seconds - a.seconds)
    .slice(0, shownFiles)
    .map(({ file, seconds }) => `${seconds.toFixed(1).padStart(6)} s ${file}\n`);
  return `| suite | files | CPU s |\n| --- | --- | --- |\n${rows.join('')}\nMost expensive files:\n${expensive.join('')}`;
}

function sumBySuite(files: readonly FileCpu[]): Map<string, { files: number; seconds: number }> {
  const suites = new Map<string, { files: number; seconds: number }>();
  for (const { file, seconds } of files) {
    const suite = file.split('/')[0] ?? '';
    const row = suites.get(suite) ?? { files: 0, seconds: 0 };
    suites.set(suite, { files: row.files + 1, seconds: row.seconds + seconds });
  }
  return suites;
}
