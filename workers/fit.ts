/**
 * Piscina entry: the heavy parts of fits. Alone among the workers it speaks to ClickHouse, so that the bytes of a
 * large read never pass through the thread that answers requests.
 */
import type { ItemsTask, PublishTask, ReadTask } from '../src/contracts/fit-tasks.js';
import { runStage, type StageArguments, type StageName } from '../src/domain/fit-stages.js';
import { publish, readItems } from './fit/publish.js';
import { readAnswers } from './fit/read.js';

interface StageTask<Name extends StageName = StageName> {
  readonly kind: 'stage';
  readonly name: Name;
  readonly args: StageArguments[Name];
}

export default async function fit(task: StageTask | ReadTask | ItemsTask | PublishTask): Promise<unknown> {
  if (task.kind === 'read') return readAnswers(task);
  if (task.kind === 'items') return readItems(task);
  if (task.kind === 'publish') return publish(task);
  return runStage(task.name, task.args);
}
