/**
 * `npm run bench -- --micro [filter]`: what single steps of the models and records cost, in one thread. Times are by
 * the clock: where something else runs as well, the smallest ones (`min`) are those to compare.
 */
import { run } from 'mitata';
import { answerBenches } from './answers.js';
import { forecastBenches } from './forecasts.js';
import { recordBenches } from './records.js';

/** @param filter a case-insensitive regular expression for names. @throws Error if no benchmark matches */
export async function main(filter = ''): Promise<void> {
  answerBenches();
  recordBenches();
  forecastBenches();
  const colors = process.stdout.isTTY === true;
  const { benchmarks } = await run({ filter: new RegExp(filter, 'i'), colors, throw: true });
  if (benchmarks.length === 0) throw new Error(`No micro-benchmark matches ${filter}`);
}
