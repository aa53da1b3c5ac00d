/** The load generator, in a process of its own. Argument: JSON of a LoadPlan. Prints JSON of a LoadResult. */
import { drive } from './load/drive.js';
import type { LoadPlan } from './load/plan.js';
import { readPool } from './load/pool.js';

const plan: LoadPlan = JSON.parse(process.argv[2] as string);
try {
  process.stdout.write(`${JSON.stringify(await drive(plan, readPool(plan.pool)))}\n`);
} catch (error) {
  // What the servers did is the report, not where it was noticed.
  process.stderr.write(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
