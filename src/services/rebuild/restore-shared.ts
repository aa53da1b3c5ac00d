/** What a rebuild restores beside learners and their event ids. */
import type { ModelChange, RecordedChange } from '../fit-ports.js';
import type { CatalogueRecord, Checkpoint } from './ports.js';
import type { RebuildOptions, RebuildParts } from './rebuild.js';

/** @returns how many API keys could not be restored, because their hashes were sealed with another secret */
export async function restoreShared(
  parts: RebuildParts,
  { check, onProgress }: RebuildOptions,
  checkpoint: Checkpoint,
  count: number,
): Promise<number> {
  const { source, store } = parts;
  const { partitions, shared, answers } = checkpoint;
  const step = (name: string): void => {
    check();
    onProgress({ step: name, answers, total: answers });
  };
  step('goals and catalogues');
  for await (const goals of source.goals()) await store.putGoals(goals, partitions, count);
  await restoreSkills(parts, shared.includes('catalogues'));
  step('models and items');
  if (shared.includes('models')) await restoreModels(parts);
  step('what is counted by day');
  await store.putAccepted(await source.answersByDay(partitions));
  const month = await source.archivedMonth();
  for (const partition of partitions) {
    if (month > 0) await store.raiseFence(partition, month);
    const last = await source.lastOutboxId(partition);
    if (last !== null) await store.raiseOutbox(partition, last);
  }
  if (!shared.includes('keys')) return 0;
  step('API keys');
  const { keys, unreadable } = await source.keys();
  await store.putKeys(keys);
  return unreadable;
}

/** Skills that were answered, or set. */
async function restoreSkills({ source, store }: RebuildParts, withCatalogues: boolean): Promise<void> {
  for (const [tenant, skillIds] of await source.skills()) await store.addSkills(tenant, skillIds);
  const catalogues = new Map<string, CatalogueRecord[]>();
  for (const entry of await source.catalogue()) {
    const entries = catalogues.get(entry.tenant) ?? [];
    catalogues.set(entry.tenant, entries);
    entries.push(entry);
  }
  for (const [tenant, entries] of catalogues) {
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
  const byTenant = new Map<string, ModelChange[]>();
  for (const change of await source.modelChanges()) {
    const changes = byTenant.get(change.tenant) ?? [];
    byTenant.set(change.tenant, changes);
    changes.push(change);
  }
  for (const tenant of (await source.skills()).keys()) {
    const inForce = byTenant.get(tenant)?.[0]?.version ?? 0;
    for await (const items of source.items(tenant)) await store.putItems(tenant, inForce, items);
  }
  for (const [tenant, changes] of byTenant) {
    const kept: RecordedChange[] = [];
    for (const change of store.versionsKept(changes)) kept.push(await source.modelTexts(change));
    await store.putModels(tenant, changes, kept, newest.get(tenant) ?? 0);
  }
}
