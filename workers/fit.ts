/** Piscina entry of fits. Loads database clients only for tasks that need them. */
import type { FitTask } from '../src/contracts/models/fit-tasks.js';
import { localRunner, type StageArguments, type StageName } from '../src/domain/fit/fit-stages.js';

interface StageTask<Name extends StageName = StageName> {
  readonly kind: 'stage';
  readonly name: Name;
  readonly args: StageArguments[Name];
}

export default async function fit(task: StageTask | FitTask): Promise<unknown> {
  if (task.kind === 'stage') return localRunner.run(task.name, ...task.args);
  const { runDatabaseTask } = await import('./fit/database-tasks.js');
  return runDatabaseTask(task);
}
