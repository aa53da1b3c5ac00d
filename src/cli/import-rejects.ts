import { closeSync, openSync, writeSync } from 'node:fs';
import { basename, join } from 'node:path';
import { makeFolder } from '../embedded/private-file.js';

export interface Rejects {
  add(line: number, reason: string): void;
  /** Writes what is left; may be called again. @returns the file, or null if nothing was rejected */
  close(): string | null;
}

const bufferedCharacters = 64 * 1024;

/** Rejected rows as lines of JSON in a file under the data folder, which is made for the first one. */
export function openRejects(dataDir: string, inputPath: string, importId: string): Rejects {
  const folder = join(dataDir, 'imports');
  const path = join(folder, `${basename(inputPath)}.${importId.slice(-12)}.rejects.ndjson`);
  let descriptor: number | null = null;
  let text = '';
  let closed = false;
  const write = (): void => {
    if (descriptor === null) {
      makeFolder(folder);
      descriptor = openSync(path, 'w', 0o600);
    }
    writeSync(descriptor, text);
    text = '';
  };
  return {
    add: (line, reason) => {
      text += `${JSON.stringify({ line, reason })}\n`;
      if (text.length >= bufferedCharacters) write();
    },
    close: () => {
      if (text !== '') write();
      if (descriptor === null) return null;
      if (!closed) closeSync(descriptor);
      closed = true;
      return path;
    },
  };
}
