import { createHash } from 'node:crypto';
import { createReadStream, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { lockDir } from '../../dir-lock.js';
import { type Closers, StartError } from '../../lifecycle.js';
import type { ExportFormat } from '../../warehouse/reads/tenant-tables.js';

export interface ExportSpec {
  readonly table: string;
  readonly format: ExportFormat;
  readonly tenant: string;
  readonly since: string | null;
  readonly until: string | null;
  readonly part_rows: number;
}

interface FileDigest {
  readonly bytes: number;
  readonly sha256: string;
}

interface ExportPart extends FileDigest {
  readonly file: string;
  readonly rows: number;
  readonly first_key: readonly string[];
  readonly last_key: readonly string[];
  /** The part ignores later erasures and retractions. */
  readonly read_at: string;
}

export interface Manifest extends ExportSpec {
  readonly version: 1;
  readonly time_column: string | null;
  /** Rows from this time on are excluded, also in a resumed run. */
  readonly rows_before: string;
  readonly started_at: string;
  /** Accepted answers that ClickHouse did not have at the start. */
  readonly waiting_answers: number;
  readonly key: readonly string[];
  readonly parts: readonly ExportPart[];
  readonly rows: number;
  /** Null: incomplete. */
  readonly finished_at: string | null;
}

const manifestName = 'manifest.json';
/** Leftovers of a killed run, and lock files. */
const temporaryNames = /^(part|manifest)\.tmp$|^lock[.-]/;

export const nextPartName = ({ table, format, parts }: Manifest): string =>
  `${table}-${String(parts.length + 1).padStart(5, '0')}.${format}`;

/**
 * Creates and locks the folder. Its parent must exist.
 * @returns the manifest of an earlier run after a check of its files; null for an empty folder
 * @throws StartError if the folder has other content
 */
export async function openExportFolder(
  folder: string,
  spec: ExportSpec,
  closers: Closers,
): Promise<Manifest | null> {
  try {
    if (!existsSync(folder)) mkdirSync(folder);
    // Checked first, so that a foreign folder gets no lock file.
    readManifest(folder, spec);
    const lock = lockDir(folder);
    if ('heldBy' in lock) throw new Error(`is in use by process ${lock.heldBy.pid}`);
    closers.add('folder lock', lock.release);
    const manifest = readManifest(folder, spec);
    for (const part of manifest?.parts ?? []) await verifyPart(folder, part);
    return manifest;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new StartError(
      `${folder} ${reason}. Existing files are never overwritten: pass a new folder, or delete this one`,
    );
  }
}

function readManifest(folder: string, spec: ExportSpec): Manifest | null {
  const names = readdirSync(folder).filter((name) => !temporaryNames.test(name));
  if (names.length === 0) return null;
  if (!names.includes(manifestName)) throw new Error(`contains ${names[0]} and no export`);
  const manifest: Manifest = JSON.parse(readFileSync(join(folder, manifestName), 'utf8'));
  for (const name of Object.keys(spec) as (keyof ExportSpec)[])
    if (manifest[name] !== spec[name])
      throw new Error(`contains a different export: its ${name} is ${manifest[name]}, not ${spec[name]}`);
  // A killed run may have written a part that the manifest does not list.
  const expected = [manifestName, nextPartName(manifest), ...manifest.parts.map(({ file }) => file)];
  const unexpected = names.find((name) => !expected.includes(name));
  if (unexpected !== undefined) throw new Error(`contains ${unexpected}, which is not in its manifest`);
  return manifest;
}

async function verifyPart(folder: string, { file, bytes, sha256 }: ExportPart): Promise<void> {
  if (!existsSync(join(folder, file))) throw new Error(`lacks ${file}, which is in its manifest`);
  const found = await digestChunks(createReadStream(join(folder, file)), async () => {});
  if (found.bytes !== bytes || found.sha256 !== sha256) throw new Error(`contains a modified ${file}`);
}

type Chunks = AsyncIterable<Buffer> | Iterable<Buffer>;

async function digestChunks(
  chunks: Chunks,
  onChunk: (chunk: Buffer) => Promise<unknown>,
): Promise<FileDigest> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of chunks) {
    hash.update(chunk);
    bytes += chunk.length;
    await onChunk(chunk);
  }
  return { bytes, sha256: hash.digest('hex') };
}

/** Atomic: gives the file its name after a sync to disk. */
export async function writeAtomically(folder: string, name: string, chunks: Chunks): Promise<FileDigest> {
  const temporary = join(folder, name === manifestName ? 'manifest.tmp' : 'part.tmp');
  const [file, directory] = [await open(temporary, 'w'), await open(folder)];
  try {
    const content = await digestChunks(chunks, (chunk) => file.writeFile(chunk));
    await file.sync();
    await rename(temporary, join(folder, name));
    await directory.sync();
    return content;
  } finally {
    await Promise.all([file.close(), directory.close()]);
  }
}

export async function writeManifest(folder: string, manifest: Manifest): Promise<Manifest> {
  await writeAtomically(folder, manifestName, [Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`)]);
  return manifest;
}
