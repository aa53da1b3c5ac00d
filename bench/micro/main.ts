/** `npm run bench -- --micro [filter]`: on a busy machine, compare `min`. */
import { run } from 'mitata';
import { answerBenches } from './answers.js';
import { forecastBenches } from './forecasts.js';
import { recordBenches } from './records.js';

/**
 * @param filter a case-insensitive regular expression
 * @throws Error if no benchmark matches
 */
export async function main(filter = ''): Promise<void> {
  answerBenches();
  recordBenches();
  forecastBenches();
  const colors = process.stdout.isTTY === true;
  const { benchmarks } = await run({ filter: new RegExp(filter, 'i'), colors, throw: true });
  if (benchmarks.length === 0) throw new Error(`No micro-benchmark matches ${filter}`);
}
