import type { EngineJob } from './lanes.js';

const narrow = 'Ask for one tenant, fewer days or fewer columns';

const boundedBy: ReadonlyMap<string, string> = new Map([
  ['158', 'ANALYST_MAX_ROWS bounds the rows that a query reads'],
  ['159', 'ANALYST_MAX_SECONDS bounds the time'],
  ['160', 'ANALYST_MAX_SECONDS bounds the time'],
  ['241', 'ANALYST_MAX_MEMORY bounds the memory'],
]);

const streaming =
  'This format is made as a whole, so its size is bounded; one that streams is not: TSVWithNames, CSVWithNames, ' +
  'JSONEachRow, RowBinaryWithNamesAndTypes, Native or ArrowStream';

function adviceFor(code: string | undefined, { streamed }: EngineJob): string | null {
  if (code === '396') return streamed === null ? `${streaming}. ${narrow}` : narrow;
  const bound = boundedBy.get(code ?? '');
  return bound === undefined ? null : `${narrow}; ${bound}`;
}

/** Adds advice to an analyst's error if a limit was exceeded. */
export function advised(job: EngineJob, error: unknown): unknown {
  if (job.readonly !== 1 || !(error instanceof Error)) return error;
  const advice = adviceFor(/^Code: (\d+)/.exec(error.message)?.[1], job);
  return advice === null
    ? error
    : new Error(error.message.replace(/\.? (?=\([A-Z_]+\)\s*$)/, `. ${advice}. `));
}
