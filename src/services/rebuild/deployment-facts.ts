/**
 * Facts of the deployment that only Redis knows and a rebuild needs: into how many partitions it is divided, and its
 * API keys. They are few, so that all of them are compared with what ClickHouse was told of before; nobody who changes
 * one has to think of it, and those of a deployment from before it was recorded are told as well.
 */
import type { StoredKey } from '../../contracts/access.js';

export interface DeploymentFacts {
  readonly deploymentId: string;
  readonly partitions: number;
  /** RFC 3339. */
  readonly createdAt: string;
}

export interface FactsStore {
  /** Null while the deployment is new, or not restored. */
  deployment(): Promise<DeploymentFacts | null>;
  keys(): Promise<readonly StoredKey[]>;
}

/** What ClickHouse was told. */
export interface FactsHistory {
  /** The deployment that was recorded last. */
  deployment(): Promise<DeploymentFacts | null>;
  /** Each key as it was recorded last. */
  keys(): Promise<{
    readonly keys: readonly StoredKey[] /** Sealed with another secret. */;
    readonly unreadable: number;
  }>;
  recordDeployment(facts: DeploymentFacts): Promise<void>;
  /** Later records of a key win. */
  recordKeys(keys: readonly StoredKey[]): Promise<void>;
}

/** @returns records what is new since its last call; what fails is repeated by the next */
export function createFactsRecorder(store: FactsStore, history: FactsHistory): () => Promise<void> {
  let recorded: Map<string, string> | null = null;
  let recordedDeployment: string | null = null;

  async function readRecorded(): Promise<Map<string, string>> {
    recordedDeployment = JSON.stringify(await history.deployment());
    const { keys } = await history.keys();
    return new Map(keys.map((key) => [key.keyHash, stateOf(key)]));
  }

  return async () => {
    const deployment = await store.deployment();
    if (deployment === null) return;
    recorded ??= await readRecorded();
    if (recordedDeployment !== JSON.stringify(deployment)) await history.recordDeployment(deployment);
    recordedDeployment = JSON.stringify(deployment);
    const known = recorded;
    const changed = (await store.keys()).filter((key) => known.get(key.keyHash) !== stateOf(key));
    if (changed.length > 0) await history.recordKeys(changed);
    for (const key of changed) known.set(key.keyHash, stateOf(key));
  };
}

const stateOf = ({
  tenant,
  requestsPerMinute,
  scopes,
  development,
  createdAt,
  revokedAt,
}: StoredKey): string =>
  JSON.stringify([tenant, requestsPerMinute, scopes, development, createdAt, revokedAt]);
