/** The folder of an export: whole files, the manifest that lists them, a lock; nothing else. */
import { createHash } from 'node:crypto';
import { createReadStream, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { lockDir } from '../dir-lock.js';
import { type Closers, StartError } from '../lifecycle.js';

/** What makes an export this one and no other. */
export interface Wanted {
  readonly table: string;
  readonly format: string;
  readonly tenant: string;
  readonly since: string | null;
  readonly until: string | null;
  readonly part_rows: number;
}

interface Content {
  readonly bytes: number;
  readonly sha256: string;
}

interface Part extends Content {
  readonly file: string;
  readonly rows: number;
  readonly first_key: readonly string[];
  readonly last_key: readonly string[];
  /** What was erased or taken back since is in it. */
  readonly read_at: string;
}

export interface Manifest extends Wanted {
  readonly version: 1;
  readonly time_column: string | null;
  /** Rows of this time and later are not in it, also where a later run goes on. */
  readonly rows_before: string;
  readonly started_at: string;
  /** Answers that were accepted and did not stand in ClickHouse yet when it started. */
  readonly waiting_answers: number;
  readonly key: readonly string[];
  readonly columns: readonly { readonly name: string; readonly type: string }[];
  readonly parts: readonly Part[];
  readonly rows: number;
  /** Null: more parts follow. */
  readonly finished_at: string | null;
}

const manifestName = 'manifest.json';
/** What a killed run leaves, and the files of the lock. */
const passing = /^(part|manifest)\.tmp$|^lock[.-]/;

/** Of the part that follows those of the manifest. */
export const nextFile = ({ table, format, parts }: Manifest): string =>
  `${table}-${String(parts.length + 1).padStart(5, '0')}.${format}`;

/** Makes the last folder of the path where it is missing, and locks it. @throws StartError */
export function takeFolder(folder: string, closers: Closers): void {
  try {
    if (!existsSync(folder)) mkdirSync(folder);
    const lock = lockDir(folder);
    if ('heldBy' in lock) throw new Error(`process ${lock.heldBy.pid} exports to it`);
    closers.add('lock of the folder', lock.release);
  } catch (error) {
    throw new StartError(`${folder} cannot be taken: ${error instanceof Error ? error.message : error}`);
  }
}

/**
 * The manifest of this very export, whose files are as it says; null: the folder is empty.
 * @throws StartError where there is anything else
 */
export async function openExport(folder: string, wanted: Wanted): Promise<Manifest | null> {
  const names = readdirSync(folder).filter((name) => !passing.test(name));
  if (names.length === 0) return null;
  const refuse = (reason: string): never => {
    throw new StartError(
      `${folder} ${reason}; nothing is overwritten: name a new folder, or delete this one`,
    );
  };
  if (!names.includes(manifestName)) refuse(`holds ${names[0]}, and no export`);
  const manifest: Manifest = JSON.parse(readFileSync(join(folder, manifestName), 'utf8'));
  for (const name of Object.keys(wanted) as (keyof Wanted)[])
    if (manifest[name] !== wanted[name])
      refuse(`holds another export: ${name} is ${manifest[name]} there, not ${wanted[name]}`);
  // A killed run may have named a file that it did not list yet.
  const known = [manifestName, nextFile(manifest), ...manifest.parts.map(({ file }) => file)];
  const strange = names.find((name) => !known.includes(name));
  if (strange !== undefined) refuse(`holds ${strange}, which its manifest does not list`);
  for (const { file, bytes, sha256 } of manifest.parts) {
    if (!names.includes(file)) refuse(`does not hold ${file}, which its manifest lists`);
    const content = await contentOf(createReadStream(join(folder, file)), async () => {});
    if (content.bytes !== bytes || content.sha256 !== sha256) refuse(`has another ${file} than was written`);
  }
  return manifest;
}

async function contentOf(
  chunks: AsyncIterable<Buffer>,
  use: (chunk: Buffer) => Promise<unknown>,
): Promise<Content> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of chunks) {
    hash.update(chunk);
    bytes += chunk.length;
    await use(chunk);
  }
  return { bytes, sha256: hash.digest('hex') };
}

/** Under its name a file is whole, and on the disk. */
export async function writeWhole(
  folder: string,
  name: string,
  chunks: AsyncIterable<Buffer>,
): Promise<Content> {
  const temporary = join(folder, name === manifestName ? 'manifest.tmp' : 'part.tmp');
  const file = await open(temporary, 'w');
  try {
    const content = await contentOf(chunks, (chunk) => file.writeFile(chunk));
    await file.sync();
    await rename(temporary, join(folder, name));
    await syncFolder(folder);
    return content;
  } finally {
    await file.close();
  }
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  await handle.sync().finally(() => handle.close());
}

export async function writeManifest(folder: string, manifest: Manifest): Promise<Manifest> {
  await writeWhole(folder, manifestName, textOf(`${JSON.stringify(manifest, null, 2)}\n`));
  return manifest;
}

async function* textOf(text: string): AsyncGenerator<Buffer> {
  yield Buffer.from(text);
}
