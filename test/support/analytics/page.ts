/** docs/analytics.md as the tests read and write it: questions, each with its SQL and its result on the demo's data. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../runner/root.js';

export const pageFile = join(root, 'docs/analytics.md');

export interface Question {
  /** The heading. */
  readonly title: string;
  readonly sql: string;
  /** Lines of the Markdown table below the SQL; empty where there is none yet. */
  readonly result: string;
}

/** A question is a heading of the fourth level with SQL; a table right behind it is the result. */
const question = /^(#### ([^\n]+)\n(?:(?!^#)[^\n]*\n)*?```sql\n(.*?)\n```\n)(\n(?:\|[^\n]*\n)+)?/gms;

export const readPage = (): string => readFileSync(pageFile, 'utf8');

export const questionsOf = (page: string): Question[] =>
  [...page.matchAll(question)].map(([, , title = '', sql = '', result = '']) => ({
    ...{ title, sql },
    result: result.trim(),
  }));

/** The page with these results, by the questions' titles. */
export const withResults = (page: string, results: ReadonlyMap<string, string>): string =>
  page.replaceAll(question, (_, asked: string, title: string) => `${asked}\n${results.get(title) ?? ''}\n`);

/** As ClickHouse prints a table in Markdown; what is not known stays empty. */
export const tidied = (markdown: string): string => markdown.replaceAll(/(?<=\|) \\N (?=\|)/g, '  ').trim();
