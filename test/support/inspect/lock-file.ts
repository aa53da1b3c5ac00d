/** The packages of package-lock.json. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../runner/root.js';

export type Locked = { readonly version: string } & Partial<
  Readonly<Record<'resolved' | 'integrity' | 'license', string>> &
    Readonly<Record<'optional' | 'dev' | 'link' | 'hasInstallScript', true>>
>;

export const lockedPackages = (): [path: string, locked: Locked][] => {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  return Object.entries<Locked>(packages).filter(([path, { link }]) => path !== '' && !link);
};

/** The registry had no hashes of these binaries. The test full/registry fails once it has them. */
export const withoutHash: readonly string[] = ['darwin-arm64', 'darwin-x64', 'linux-arm64-gnu'].map(
  (platform) => `@chdb/lib-${platform}`,
);
