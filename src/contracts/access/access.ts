import { hash } from 'node:crypto';

export const allScopes = ['read', 'write', 'admin', 'operator'] as const;
export type Scope = (typeof allScopes)[number];
export type RequiredScope = Scope | readonly Scope[];
/** `operator` must be requested, because it reaches beyond the tenant. */
export const defaultScopes: readonly Scope[] = ['read', 'write', 'admin'];

export const defaultQuota = 100;
export const maxQuota = 1_000_000_000;

export const hashKey = (key: string): string => hash('sha256', key);

export const toKeyId = (keyHash: string): string => keyHash.slice(0, 12);

export interface Grant {
  readonly keyHash: string;
  readonly tenant: string;
  /** Null: no limit. */
  readonly requestsPerMinute: number | null;
  readonly scopes: readonly Scope[];
  /** Valid on this machine only. */
  readonly development: boolean;
  /** Display name. */
  readonly name?: string | null;
  /** Free text of the owner. */
  readonly note?: string | null;
}

/** Revoked keys stay stored: a missing key would look like data loss. */
export interface StoredKey extends Grant {
  /** RFC 3339. */
  readonly createdAt: string;
  /** RFC 3339; null: not revoked. */
  readonly revokedAt: string | null;
}

export interface DeploymentRecord {
  readonly deploymentId: string;
  readonly partitions: number;
  /** RFC 3339. */
  readonly createdAt: string;
}
