import { randomBytes } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hasCode } from './error-code.js';
import { makeFolder } from './private-file.js';

/** Where a data folder has its development key. */
export const developmentKeyFile = (dataDir: string): string => join(dataDir, 'api-key');

/** The development key of a data folder, or null if none was made there. */
export function readDevelopmentKey(dataDir: string): string | null {
  try {
    return readFileSync(developmentKeyFile(dataDir), 'utf8').trim();
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return null;
    throw error;
  }
}

/**
 * Makes the development key, readable by its owner only; of several processes at once the first one's counts.
 * @param revoked the key that is in the file, for the fresh one to replace; null where there is none
 */
export function makeDevelopmentKey(dataDir: string, revoked: string | null): string {
  makeFolder(dataDir);
  // Asked again, for another process may have replaced it meanwhile.
  if (revoked !== null && readDevelopmentKey(dataDir) === revoked) rmSync(developmentKeyFile(dataDir));
  const key = `dev-${randomBytes(18).toString('base64url')}`;
  try {
    writeFileSync(developmentKeyFile(dataDir), `${key}\n`, { mode: 0o600, flag: 'wx' });
    return key;
  } catch (error) {
    const made = hasCode(error, 'EEXIST') ? readDevelopmentKey(dataDir) : null;
    if (made === null) throw error;
    return made;
  }
}
