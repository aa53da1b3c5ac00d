import { existsSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { parse } from 'csv-parse/sync';
import { StartError } from '../../lifecycle.js';
import { distinct } from '../../lists.js';
import type { QuestionTable } from '../../services/answer-log/formats.js';
import type { QuestionRow } from '../../services/answer-log/rows.js';

/** Where data sets place their further files. */
const folders = ['.', '..', 'contents', '../contents', 'metadata', '../metadata'];

/** The tasks of Eedi number questions and answers separately, in a file for each. @throws StartError */
export function findNeighbour(path: string, fileName: string): string {
  const base = statSync(path).isDirectory() ? path : dirname(path);
  const task = /task_\d_\d/.exec(basename(path))?.[0] ?? '$&';
  const name = fileName.replace('task_1_2', task);
  const found = folders.map((folder) => join(base, folder, name)).find((one) => existsSync(one));
  if (found !== undefined) return found;
  throw new StartError(
    `${path} needs ${name}. Put that file of the data set into ${base} or the folder above it`,
  );
}

/** @returns questions by id @throws StartError */
export function readQuestions(
  path: string,
  { file, id, skills, separator, key, subjects }: QuestionTable,
): Map<string, QuestionRow> {
  const columns = [id, skills, ...(key === undefined ? [] : [key])];
  const nameSkills = subjects === undefined ? distinct : readSubjects(findNeighbour(path, subjects));
  return new Map(
    readTable(findNeighbour(path, file), columns).map((row) => {
      const listed = (row[skills] ?? '').replace(/[[\]]/g, '').split(separator);
      const ids = listed.map((skill) => skill.trim()).filter((skill) => skill !== '' && skill !== '-1');
      const right = key === undefined ? null : (row[key] ?? '');
      return [row[id] ?? '', { skillIds: nameSkills(ids), key: right }];
    }),
  );
}

/** @returns a function that keeps the lowest subjects of a list, by name */
function readSubjects(file: string) {
  const subjects = new Map(
    readTable(file, ['SubjectId', 'Name', 'ParentId']).map((row) => [row.SubjectId ?? '', row]),
  );
  return (ids: readonly string[]): string[] => {
    const parents = new Set(ids.map((id) => subjects.get(id)?.ParentId?.replace(/\.0$/, '')));
    const lowest = ids.filter((id) => !parents.has(id));
    return distinct(lowest.map((id) => subjects.get(id)?.Name?.trim() || id));
  };
}

function readTable(file: string, columns: readonly string[]): Partial<Record<string, string>>[] {
  const rows: Record<string, string>[] = parse(readFileSync(file), {
    ...{ columns: true, bom: true, relax_quotes: true, relax_column_count: true, skip_empty_lines: true },
  });
  const missing = columns.filter((name) => rows[0] === undefined || !(name in rows[0]));
  if (missing.length > 0) throw new StartError(`${file}: line 1 lacks the columns ${missing.join(', ')}`);
  return rows;
}
