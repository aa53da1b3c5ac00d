import { maxQuestionSkills } from '../../contracts/answers/events.js';
import type { NonEmpty } from '../../domain/base/common.js';
import { distinct } from '../../lists.js';
import type { LogRow } from './log-rows.js';
import { isAbsent } from './values.js';

/**
 * Joins consecutive rows of one answer, which differ only in the skill. `add` returns invalid rows immediately.
 * @returns `add` and `flush` return finished rows
 */
export function createRowMerger() {
  let pending: LogRow | null = null;
  let pendingKey = '';
  const flush = (): LogRow[] => (pending === null ? [] : [pending]);
  const add = (row: LogRow): LogRow[] => {
    if (row.answer === null) return [row];
    const key = isAbsent(row.mergeKey) ? '' : `${row.answer.userId}\n${row.mergeKey}`;
    if (key !== '' && key === pendingKey && pending !== null) {
      pending = mergeRows(pending, row);
      return [];
    }
    const finished = flush();
    [pending, pendingKey] = [row, key];
    return finished;
  };
  return { add, flush };
}

function mergeRows(first: LogRow, { answer }: LogRow): LogRow {
  if (first.answer === null || answer === null) return first;
  const skillIds = distinct([...first.answer.skillIds, ...answer.skillIds]);
  const reason = `skill_id has more than ${maxQuestionSkills} skills`;
  if (skillIds.length > maxQuestionSkills) return { line: first.line, answer: null, reason, message: reason };
  return {
    ...first,
    answer: { ...first.answer, skillIds: skillIds as readonly string[] as NonEmpty<string> },
  };
}
