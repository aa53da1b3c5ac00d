/** The queries of docs/analytics.md, each with its result on the demo. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../runner/root.js';

export const pageFile = join(root, 'docs/analytics.md');

interface Question {
  /** The heading. */
  readonly title: string;
  readonly sql: string;
  /** Lines of the Markdown table below the SQL; empty if there is none yet. */
  readonly result: string;
}

/** A question is a heading of level 4 with SQL; the table directly below is its result. */
const question = /^(#### ([^\n]+)\n(?:(?!^#)[^\n]*\n)*?```sql\n(.*?)\n```\n)(\n(?:\|[^\n]*\n)+)?/gms;

export const readPage = (): string => readFileSync(pageFile, 'utf8');

export const questionsOf = (page: string): Question[] =>
  [...page.matchAll(question)].map(([, , title = '', sql = '', result = '']) => ({
    ...{ title, sql },
    result: result.trim(),
  }));

/** Replaces the results of the page. @param results by title of the question */
export const withResults = (page: string, results: ReadonlyMap<string, string>): string =>
  page.replaceAll(question, (_, asked: string, title: string) => `${asked}\n${results.get(title) ?? ''}\n`);

/** A table in Markdown from ClickHouse, with empty cells instead of \N. */
export const tidied = (markdown: string): string => markdown.replaceAll(/(?<=\|) \\N (?=\|)/g, '  ').trim();
