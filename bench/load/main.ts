/** The load generator: gets a LoadPlan as JSON argument, prints a LoadResult as JSON. */
import { driveLoad } from './drive.js';
import type { LoadPlan } from './plan.js';
import { readPool } from './request-pool.js';

const plan: LoadPlan = JSON.parse(process.argv[2] as string);
try {
  process.stdout.write(`${JSON.stringify(await driveLoad(plan, readPool(plan.pool)))}\n`);
} catch (error) {
  // Without the stack: the message describes the server.
  process.stderr.write(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
