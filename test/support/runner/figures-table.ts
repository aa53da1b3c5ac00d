/** What the suites of a test run start and take, as a table in Markdown. */
import { readFileSync } from 'node:fs';
import type { Note, Start } from './figures.js';

interface Row {
  readonly files: Set<string>;
  readonly starts: Partial<Record<Start, number>>;
  cpuSeconds: number;
}

const columns: Readonly<Record<Start, string>> = {
  redis: 'Redis',
  clickhouse: 'ClickHouse',
  service: 'service',
  'service-inside': 'service inside',
  command: 'command',
};

/** What the processes of a run have noted in a file. */
export const readNotes = (file: string): Note[] =>
  readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));

/** @param wholeSeconds CPU seconds of the run: what no file took was the runner's and the shared ClickHouse's */
export function figuresTable(notes: readonly Note[], wholeSeconds: number): string {
  const suites = rowsOf(notes);
  const heads = ['suite', 'files', ...Object.values(columns), 'CPU s'];
  const rows = [...suites].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, row]) => cells(name, row));
  const ofFiles = [...suites.values()].reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0);
  const shared = [
    'shared ClickHouse, runner',
    '0',
    ...Object.keys(columns).map((start) => (start === 'clickhouse' ? '1' : '0')),
    (wholeSeconds - ofFiles).toFixed(0),
  ];
  const all = [...rows, shared];
  return [heads, heads.map(() => '---'), ...all, total(all)]
    .map((row) => `| ${row.join(' | ')} |\n`)
    .join('');
}

function rowsOf(notes: readonly Note[]): Map<string, Row> {
  const suites = new Map<string, Row>();
  for (const note of notes) {
    const name = note.file.split('/')[0] ?? '';
    const row = suites.get(name) ?? { files: new Set(), starts: {}, cpuSeconds: 0 };
    suites.set(name, row);
    row.files.add(note.file);
    if ('start' in note) row.starts[note.start] = (row.starts[note.start] ?? 0) + 1;
    else row.cpuSeconds += note.cpuSeconds;
  }
  return suites;
}

const cells = (name: string, { files, starts, cpuSeconds }: Row): string[] => [
  name,
  `${files.size}`,
  ...Object.keys(columns).map((start) => `${starts[start as Start] ?? 0}`),
  cpuSeconds.toFixed(0),
];

const total = (rows: readonly string[][]): string[] => [
  'all',
  ...(rows[0] ?? []).slice(1).map((_, i) => `${rows.reduce((sum, row) => sum + Number(row[i + 1]), 0)}`),
];

/** The dearest files, for whoever wants to know where the time goes. */
export function dearestFiles(notes: readonly Note[], count: number): string {
  return notes
    .flatMap((note) => ('cpuSeconds' in note ? [note] : []))
    .sort((a, b) => b.cpuSeconds - a.cpuSeconds)
    .slice(0, count)
    .map(({ file, cpuSeconds }) => `${cpuSeconds.toFixed(1).padStart(6)} s ${file}\n`)
    .join('');
}
