import { hash } from 'node:crypto';

export const allScopes = ['read', 'write', 'admin', 'operator'] as const;
export type Scope = (typeof allScopes)[number];
/** What a call needs: a scope, or any of several. */
export type NeededScope = Scope | readonly Scope[];
/** Of a key that asks for none. `operator` reaches beyond the key's tenant, so it has to be asked for. */
export const defaultScopes: readonly Scope[] = ['read', 'write', 'admin'];

/** Requests a minute of a key that asks for no other quota. */
export const defaultQuota = 100;
export const maxQuota = 1_000_000_000;

/** Name under which a key is stored; the key itself never is. */
export const hashKey = (key: string): string => hash('sha256', key);

/** What people are shown of it. */
export const shortHash = (keyHash: string): string => keyHash.slice(0, 12);

export interface Grant {
  /** SHA-256 of the key, hexadecimal. */
  readonly keyHash: string;
  readonly tenant: string;
  /** Null: no limit. */
  readonly requestsPerMinute: number | null;
  readonly scopes: readonly Scope[];
  /** The development key, which works on the machine itself only. */
  readonly development: boolean;
}

/** A key as it is stored. A revoked key is kept, or its end would look like its loss. */
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
