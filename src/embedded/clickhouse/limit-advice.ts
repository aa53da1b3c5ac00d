import type { EngineJob } from './query-lanes.js';

const narrowingAdvice = 'Read one tenant, fewer days or fewer columns';

const limitSettings: ReadonlyMap<string, string> = new Map([
  ['158', 'ANALYST_MAX_ROWS limits the rows that a query reads'],
  ['159', 'ANALYST_MAX_SECONDS limits the time'],
  ['160', 'ANALYST_MAX_SECONDS limits the time'],
  ['241', 'ANALYST_MAX_MEMORY limits the memory'],
]);

const streamingAdvice =
  'Only the size of results that are not streamed is limited; use a streamed format: TSVWithNames, CSVWithNames, ' +
  'JSONEachRow, RowBinaryWithNamesAndTypes, Native or ArrowStream, without WITH TOTALS and extremes; or add LIMIT';

function findAdvice(code: string | undefined, { streamFormat }: EngineJob): string | null {
  if (code === '396')
    return streamFormat === null ? `${streamingAdvice}. ${narrowingAdvice}` : narrowingAdvice;
  const bound = limitSettings.get(code ?? '');
  return bound === undefined ? null : `${narrowingAdvice}; ${bound}`;
}

/** Adds advice to an analyst's error if a limit was exceeded. */
export function addAdvice(job: EngineJob, error: unknown): unknown {
  if (job.readonly !== 1 || !(error instanceof Error)) return error;
  const advice = findAdvice(/^Code: (\d+)/.exec(error.message)?.[1], job);
  return advice === null
    ? error
    : new Error(error.message.replace(/\.? (?=\([A-Z_]+\)\s*$)/, `. ${advice}. `));
}
