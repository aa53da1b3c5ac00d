/** What the tests of commands that read a log of answers have in common. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import {
  assignFolds,
  createAnswerTable,
  type Split,
  splitByFold,
} from '../../../src/lab/evaluate/answers.js';
import { type MadeAnswer, type MadeColumn, recordsOf } from '../builders/answer-file.js';
import { tempDir } from '../temp.js';
import type { Ended } from './command.js';

export async function fileOf(
  t: TestContext,
  content: string | Buffer,
  name = 'answers.csv',
): Promise<string> {
  const file = join(await tempDir(t), name);
  await writeFile(file, content);
  return file;
}

/** The one line of a run with --json. */
export function lineOf({ code, out, err }: Ended) {
  assert.equal(code, 0, err);
  assert.match(out, /^\{.*\}\n$/, 'one line and nothing else');
  assert.equal(out.indexOf('\n'), out.length - 1);
  return JSON.parse(out);
}

/** A page that opens without a network, and shows so many figures. */
export function assertSelfContained(html: string, figures: number): void {
  assert.match(html, /^<!DOCTYPE html>/);
  assert.doesNotMatch(html, /https?:|src=|href=|url\(|@import|<script|<link/i);
  assert.equal(html.match(/<figure>/g)?.length, figures);
  assert.doesNotMatch(html, /NaN|Infinity|undefined/);
}

/**
 * The answers as the commands divide them, fold 1 for the test. Skills and items are numbered as they come: with the
 * training learners first, nothing of the others changes a number.
 */
export function splitOf(made: readonly MadeAnswer[], columns: readonly MadeColumn[]): Split {
  const table = createAnswerTable();
  const trainingFirst = [...made].sort((a, b) => Number(a.fold === 1) - Number(b.fold === 1));
  for (const [line, fields] of recordsOf(trainingFirst, columns).entries()) {
    assert.equal(table.add({ line, fields }, Date.now()), null);
  }
  return splitByFold(table, assignFolds(table), 1);
}
