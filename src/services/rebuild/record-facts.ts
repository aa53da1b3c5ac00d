/** Copies the deployment and API keys to ClickHouse. Code that changes a key need not record it. */
import type { DeploymentRecord, StoredKey } from '../../contracts/access/access.js';
import { mapInSlices } from '../../slices.js';
import type { FactsHistory } from '../../warehouse/reads/facts-history.js';

interface FactsStore {
  /** Null while the deployment is new or not restored. */
  deployment(): Promise<DeploymentRecord | null>;
  keys(): Promise<readonly StoredKey[]>;
}

/** @returns a function that records changes since its last successful call */
export function createFactsRecorder(store: FactsStore, history: FactsHistory): () => Promise<void> {
  let recordedDeployment = '';
  let recordedKeys: Map<string, string> | undefined;
  return async () => {
    const deployment = await store.deployment();
    if (deployment === null) return;
    if (recordedKeys === undefined) {
      recordedDeployment = JSON.stringify(await history.fetchDeployment());
      recordedKeys = new Map((await history.fetchKeys()).keys.map((key) => [key.keyHash, serializeKey(key)]));
    }
    if (recordedDeployment !== JSON.stringify(deployment)) await history.recordDeployment(deployment);
    recordedDeployment = JSON.stringify(deployment);
    const keys = await store.keys();
    const states = await mapInSlices(keys, serializeKey);
    const changed = keys.filter(({ keyHash }, i) => recordedKeys?.get(keyHash) !== states[i]);
    if (changed.length > 0) await history.recordKeys(changed);
    for (const key of changed) recordedKeys.set(key.keyHash, serializeKey(key));
  };
}

const serializeKey = (key: StoredKey): string => JSON.stringify(Object.entries(key).sort());
