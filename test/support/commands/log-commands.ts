/** Files, results and pages of the commands that read a log of answers. */
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
import type { FileAnswer } from '../../../src/services/answer-log/rows.js';
import type { MadeAnswer, MadeColumn } from '../builders/answer-file.js';
import { tempDir } from '../temp.js';
import type { Ended } from './command.js';

export async function fileOf(t: TestContext, content: string | Buffer, name = 'answers.csv') {
  const file = join(await tempDir(t), name);
  await writeFile(file, content);
  return file;
}

/** The JSON object of a run with --json, which prints a single line. */
export function lineOf({ code, out, err }: Ended) {
  assert.equal(code, 0, err);
  assert.match(out, /^\{.*\}\n$/);
  return JSON.parse(out);
}

/** Checks that a page needs no other file and has this number of charts. */
export function assertSelfContained(html: string, figures: number): void {
  assert.match(html, /^<!DOCTYPE html>/);
  assert.doesNotMatch(html, /https?:|src=|href=|url\(|@import|<script|<link/i);
  assert.equal(html.match(/<figure>/g)?.length, figures);
  assert.doesNotMatch(html, /NaN|Infinity|undefined/);
}

/**
 * The split of the commands with fold 1 for the test. Skills and items are numbered in order of appearance, so the training
 * learners come first: then a changed test learner changes no number.
 */
export function splitOf(made: readonly MadeAnswer[], columns: readonly MadeColumn[]): Split {
  const table = createAnswerTable();
  const trainingFirst = [...made].sort((a, b) => Number(a.fold === 1) - Number(b.fold === 1));
  for (const one of trainingFirst) table.add(toFileAnswer(one, columns));
  return splitByFold(table, assignFolds(table), 1);
}

/** The answer of a file with these columns. */
function toFileAnswer(made: MadeAnswer, columns: readonly MadeColumn[]): FileAnswer {
  const { skill, correct, user, item, ts, seconds, order, fold, difficulty } = made;
  const reported = <Value>(column: MadeColumn, value: Value): Value | null =>
    columns.includes(column) ? value : null;
  return {
    ...{ userId: user, skillIds: [skill], isCorrect: correct === 1, itemId: reported('item_id', item) },
    ...{ at: reported('ts', 1000 * ts), seconds: reported('response_time_s', seconds) },
    ...{ order: reported('order', order), fold: reported('fold', fold) },
    difficulty: reported('question_difficulty', difficulty),
  };
}
