import { existsSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Path of a file with real logs or reference results; null if it does not exist. REFERENCE_DATA is the folder that
 * contains the file, or has it in a sub-folder `data` or `reference`. The files are not part of the project.
 */
export function referenceFile(name: string): string | null {
  const root = process.env.REFERENCE_DATA;
  if (root === undefined || root === '') return null;
  const places = ['', 'data', 'reference'].map((folder) => join(root, folder, name));
  return places.find((file) => existsSync(file)) ?? null;
}
