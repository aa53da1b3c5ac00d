/** The packages of package-lock.json. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './root.js';

export interface Locked {
  readonly version: string;
  readonly resolved?: string;
  readonly integrity?: string;
  readonly license?: string;
  readonly optional?: true;
  readonly dev?: true;
  readonly link?: true;
  readonly hasInstallScript?: true;
}

export const lockedPackages = (): [path: string, locked: Locked][] => {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  return Object.entries<Locked>(packages).filter(([path, { link }]) => path !== '' && !link);
};

/**
 * Binaries of other platforms that the registry did not have by which the lock file was written: by their prefixes.
 * Nothing may be added. full/lock-file tells the hashes once a registry names them.
 */
const unhashed = {
  '@biomejs/cli-':
    'android-arm64 android-x64 darwin-arm64 darwin-x64 linux-arm64-musl linux-x64-musl win32-arm64 win32-x64',
  '@chdb/lib-': 'darwin-arm64 darwin-x64 linux-arm64-gnu',
  '@msgpackr-extract/msgpackr-extract-': 'darwin-arm64 darwin-x64 linux-arm win32-x64',
  '@oxc-parser/binding-':
    'android-arm-eabi android-arm64 darwin-arm64 darwin-x64 freebsd-x64 linux-arm-gnueabihf linux-arm-musleabihf linux-ppc64-gnu linux-riscv64-gnu linux-riscv64-musl linux-s390x-gnu openharmony-arm64 win32-arm64-msvc win32-ia32-msvc win32-x64-msvc',
};

export const withoutHash: readonly string[] = Object.entries(unhashed).flatMap(([prefix, platforms]) =>
  platforms.split(' ').map((platform) => prefix + platform),
);
