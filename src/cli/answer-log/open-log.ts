import type { LogFormat } from '../../services/answer-log/formats.js';
import { createRowReader, type LogRow } from '../../services/answer-log/log-rows.js';
import { listKcModels, mapColumns } from '../../services/answer-log/map-columns.js';
import { createRowMerger } from '../../services/answer-log/merge.js';
import type { ReadOptions } from '../../services/answer-log/options.js';
import { checkColumns, chooseFormat, findSortPlaces } from './check-columns.js';
import type { JoinedColumn } from './engine-query.js';
import { streamRows } from './engine-rows.js';
import { detectLayout } from './layout.js';
import { findNeighbour, readQuestions } from './questions.js';
import { openSource } from './source.js';

export type AnswerLogFile = Awaited<ReturnType<typeof openAnswerLog>>;

export interface LogPage {
  /** Rows of the file behind the page. */
  readonly fileRows: number;
  /** `place` increases; without sorted, merged or expanded rows, it is the line. */
  readonly rows: readonly { readonly place: number; readonly row: LogRow }[];
}

/** @throws StartError */
export async function openAnswerLog(path: string, options: ReadOptions) {
  const source = await openSource(path);
  const layout = await detectLayout(source, options);
  const format = chooseFormat(path, layout.header, options);
  const join = findJoin(path, format, layout.header);
  const header = join === null ? layout.header : [...layout.header, join.column];
  const joined = { ...layout, header };
  const mapping = mapColumns(header, format, options);
  checkColumns(path, joined, format, mapping, options);
  const sortPlaces = findSortPlaces(path, joined, format, options);
  const questions = format.questions === undefined ? null : readQuestions(path, format.questions);
  const encoding = options.encoding ?? format.encoding ?? 'utf-8';
  const isMerged = 'answer_id' in mapping.positions;
  const isReordered = isMerged || sortPlaces.length > 0 || 'seen' in mapping.positions;

  /** Reads all rows in order. @param now Unix milliseconds @param onBytes receives the content of the file */
  async function* readPages(now: number, onBytes: (chunk: Buffer) => void): AsyncGenerator<LogPage> {
    const reader = createRowReader({ format, mapping, options, questions, now });
    const merger = createRowMerger();
    let place = 0;
    const placeRows = (rows: readonly LogRow[]): LogPage['rows'] =>
      rows.map((row) => {
        place = isReordered ? place + 1 : row.line;
        return { place, row };
      });
    const isMonthFirst = options.timeFormat === 'mdy';
    const selection = { places: reader.places, sortPlaces, join, encoding, isMonthFirst };
    for await (const page of streamRows(source, layout, selection, onBytes)) {
      const rows = page.flatMap(({ line, values, problem }): LogRow[] =>
        problem === null
          ? reader.read(line, values)
          : [{ line, answer: null, reason: describeShape(problem), message: problem }],
      );
      // The merger delays answers. With lines as places, a resumed import would skip them.
      yield { fileRows: page.length, rows: placeRows(isMerged ? rows.flatMap(merger.add) : rows) };
    }
    yield { fileRows: 0, rows: placeRows(merger.flush()) };
  }
  const warnings = [...(format.notes ?? []), ...mapping.warnings];
  /** `models`: knowledge component models. */
  return {
    ...{ path, bytes: source.bytes, format, mapping },
    warnings,
    models: listKcModels(header),
    readPages,
  };
}

/** Without the number of fields, which differs between rows. */
const describeShape = (problem: string): string =>
  problem.replace(/^the row has \d+ fields/, 'the row has fewer or more fields');

function findJoin(path: string, { join }: LogFormat, header: readonly string[]): JoinedColumn | null {
  if (join === undefined || header.includes(join.column) || !header.includes(join.id)) return null;
  return { ...join, path: findNeighbour(path, join.file), place: header.indexOf(join.id) };
}
