/** The query book in docs/analytics: questions with their SQL, and the results on the demo. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../runner/root.js';

const names = [
  'activity',
  'learners',
  'skills',
  'groups',
  'habits',
  'items',
  'forecasts',
  'models',
  'operations',
];

export const queryPages = names.map((name) => join(root, `docs/analytics/${name}.md`));

interface Question {
  /** The heading. */
  readonly title: string;
  readonly sql: string;
  /** Whether an answer with several skills counts once or under each; undefined: the query counts no answers. */
  readonly counts: string | undefined;
  /** Lines of the Markdown table below the SQL; empty if there is none yet. */
  readonly result: string;
}

/** A question is a heading of level 2 with SQL; the table directly below is its result. */
const question = /^(## ([^\n]+)\n(?:(?!^#)[^\n]*\n)*?```sql\n(.*?)\n```\n)(\n(?:\|[^\n]*\n)+)?/gms;

const readPage = (page: string): string => readFileSync(page, 'utf8');

export const readQuestions = (page: string): Question[] =>
  [...readPage(page).matchAll(question)].map(([, asked = '', title = '', sql = '', result = '']) => ({
    ...{ title, sql, counts: /Counts\s+an\s+answer\s+(once|under)/.exec(asked)?.[1] },
    result: result.trim(),
  }));

/** Replaces the results of a page. @param results by title of the question */
export function writeResults(page: string, results: ReadonlyMap<string, string>): void {
  const insertResult = (_: string, asked: string, title: string) => `${asked}\n${results.get(title) ?? ''}\n`;
  writeFileSync(page, readPage(page).replaceAll(question, insertResult));
}

/** A table in Markdown from ClickHouse, with empty cells instead of \N. */
export const tidied = (markdown: string): string => markdown.replaceAll(/(?<=\|) \\N (?=\|)/g, '  ').trim();
