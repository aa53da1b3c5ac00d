import { existsSync } from 'node:fs';
import { join } from 'node:path';

/**
 * A file of the folder of real logs and reference figures, which is not part of the project: REFERENCE_DATA names
 * it, or the folder that holds it as `data` or `reference`. Null where it is not there.
 */
export function referenceFile(name: string): string | null {
  const root = process.env.REFERENCE_DATA;
  if (root === undefined || root === '') return null;
  const places = ['', 'data', 'reference'].map((folder) => join(root, folder, name));
  return places.find((file) => existsSync(file)) ?? null;
}
