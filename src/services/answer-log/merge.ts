import { maxQuestionSkills } from '../../contracts/answers/events.js';
import type { NonEmpty } from '../../domain/base/common.js';
import { distinct } from '../../lists.js';
import type { LogRow } from './log-rows.js';
import { isAbsent } from './values.js';

/**
 * Joins consecutive rows of one answer, which differ only in the skill. Invalid rows and rows without a key are
 * finished immediately.
 * @returns `add` and `flush` return finished rows
 */
export function createRowMerger() {
  let pending: LogRow[] = [];
  let pendingKey = '';
  const flush = (): LogRow[] => pending.splice(0);
  const add = (row: LogRow): LogRow[] => {
    if (row.answer === null) return [row];
    if (isAbsent(row.mergeKey)) return [...flush(), row];
    const key = `${row.answer.userId}\n${row.mergeKey}`;
    const [first] = pending;
    const isSame = first !== undefined && key === pendingKey;
    const finished = isSame ? [] : flush();
    pending = [isSame ? addSkills(first, row.answer.skillIds) : row];
    pendingKey = key;
    return finished;
  };
  return { add, flush };
}

function addSkills(first: LogRow, others: readonly string[]): LogRow {
  if (first.answer === null) return first;
  const skillIds = distinct([...first.answer.skillIds, ...others]) as readonly string[] as NonEmpty<string>;
  const reason = `skill_id has more than ${maxQuestionSkills} skills`;
  if (skillIds.length > maxQuestionSkills) return { line: first.line, answer: null, reason, message: reason };
  return { ...first, answer: { ...first.answer, skillIds } };
}
