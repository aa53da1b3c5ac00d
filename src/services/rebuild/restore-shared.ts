/** What a rebuild restores beside learners and their event ids: before them what they are restored by, and the rest. */
import { groupedBy } from '../../lists.js';
import type { RecordedChange } from '../models/fit-ports.js';
import type { Checkpoint } from './ports.js';
import type { RebuildOptions, RebuildParts } from './rebuild.js';

export async function restoreTenants(
  parts: RebuildParts,
  { check, onProgress }: RebuildOptions,
  { shared, answers }: Checkpoint,
): Promise<void> {
  check();
  onProgress({ step: 'catalogues', answers, total: answers });
  await restoreSkills(parts, shared.includes('catalogues'));
  if (!shared.includes('models')) return;
  check();
  onProgress({ step: 'models and items', answers, total: answers });
  await restoreModels(parts);
}

/** @returns how many API keys could not be restored, because their hashes were sealed with another secret */
export async function restoreShared(
  parts: RebuildParts,
  { check, onProgress }: RebuildOptions,
  checkpoint: Checkpoint,
  count: number,
): Promise<number> {
  const { source, store } = parts;
  const { partitions, counted, answers } = checkpoint;
  const step = (name: string): void => {
    check();
    onProgress({ step: name, answers, total: answers });
  };
  step('goals');
  for await (const goals of source.goals()) await store.putGoals(goals, partitions, count);
  step('what is counted by day');
  const uncounted = partitions.filter((partition) => !counted.includes(partition));
  await store.putAccepted(await source.answersByDay(uncounted));
  const month = await source.archivedMonth();
  for (const partition of partitions) {
    if (month > 0) await store.raiseFence(partition, month);
    const last = await source.lastOutboxId(partition);
    if (last !== null) await store.raiseOutbox(partition, last);
  }
  // Also beside keys that are there: those that a start has put may have been revoked.
  step('API keys');
  const { keys, unreadable } = await source.keys();
  await store.putKeys(keys);
  return unreadable;
}

const tenantOf = ({ tenant }: { readonly tenant: string }): string => tenant;

/** Skills that were answered, by whom, or set. */
async function restoreSkills({ source, store }: RebuildParts, withCatalogues: boolean): Promise<void> {
  for (const tenant of await source.tenants())
    for await (const skills of source.answeredSkills(tenant)) await store.noteAnswered(tenant, skills);
  for (const [tenant, entries] of groupedBy(await source.catalogue(), tenantOf)) {
    await store.addSkills(
      tenant,
      entries.map(({ skillId }) => skillId),
    );
    if (withCatalogues) await store.putCatalogue(tenant, entries);
  }
}

/** Items belong to the version in force, also of a tenant who never had a fit. */
async function restoreModels({ source, store }: RebuildParts): Promise<void> {
  const newest = await source.newestVersions();
  const byTenant = groupedBy(await source.modelChanges(), tenantOf);
  for (const tenant of await source.tenants()) {
    const inForce = byTenant.get(tenant)?.[0]?.version ?? 0;
    for await (const items of source.items(tenant)) await store.putItems(tenant, inForce, items);
  }
  for (const [tenant, changes] of byTenant) {
    const kept: RecordedChange[] = [];
    for (const change of store.versionsKept(changes)) kept.push(await source.modelTexts(change));
    await store.putModels(tenant, changes, kept, newest.get(tenant) ?? 0);
  }
}
