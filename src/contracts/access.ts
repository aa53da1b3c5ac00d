import { hash } from 'node:crypto';

export const allScopes = ['read', 'write', 'admin', 'operator'] as const;
export type Scope = (typeof allScopes)[number];
export type NeededScope = Scope | readonly Scope[];
/** Default. `operator` reaches beyond the tenant, so it must be requested. */
export const defaultScopes: readonly Scope[] = ['read', 'write', 'admin'];

/** Default requests per minute. */
export const defaultQuota = 100;
export const maxQuota = 1_000_000_000;

/** Keys are stored by this hash only. */
export const hashKey = (key: string): string => hash('sha256', key);

/** Shown to people. */
export const shortHash = (keyHash: string): string => keyHash.slice(0, 12);

export interface Grant {
  readonly keyHash: string;
  readonly tenant: string;
  /** Null: no limit. */
  readonly requestsPerMinute: number | null;
  readonly scopes: readonly Scope[];
  /** Valid on this machine only. */
  readonly development: boolean;
}

/** Revoked keys are kept: a missing one would look lost. */
export interface StoredKey extends Grant {
  /** RFC 3339. */
  readonly createdAt: string;
  /** RFC 3339; null while it is in force. */
  readonly revokedAt: string | null;
}

export interface DeploymentFacts {
  readonly deploymentId: string;
  readonly partitions: number;
  /** RFC 3339. */
  readonly createdAt: string;
}
