import { maxQuestionSkills } from '../../contracts/answers/events.js';
import type { NonEmpty } from '../../domain/base/common.js';
import { distinct } from '../../lists.js';
import type { LogRow } from './log-rows.js';

/**
 * Joins consecutive rows of one answer, which differ only in the skill.
 * @returns finished rows
 */
export function createRowMerger() {
  let pending: LogRow | null = null;
  let pendingKey = '';
  return {
    add: (row: LogRow, key: string): LogRow[] => {
      const own = row.answer === null ? '' : `${row.answer.userId}\n${key}`;
      if (own !== '' && own === pendingKey && pending !== null) {
        pending = mergeRows(pending, row);
        return [];
      }
      const finished = pending === null ? [] : [pending];
      [pending, pendingKey] = [row, own];
      return finished;
    },
    flush: (): LogRow[] => (pending === null ? [] : [pending]),
  };
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
