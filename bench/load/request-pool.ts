import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { numberPlaceholder, type PreparedRequest } from './traffic.js';

export interface PooledRequest extends PreparedRequest {
  readonly holes: readonly number[];
}

const bytesFile = (folder: string): string => join(folder, 'requests');
/** Lines of "length answers". */
const indexFile = (folder: string): string => join(folder, 'index');

export function writePool(folder: string, requests: readonly PreparedRequest[]): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(bytesFile(folder), Buffer.concat(requests.map(({ bytes }) => bytes)));
  writeFileSync(
    indexFile(folder),
    requests.map(({ bytes, answers }) => `${bytes.length} ${answers}\n`).join(''),
  );
}

export function readPool(folder: string): PooledRequest[] {
  const all = readFileSync(bytesFile(folder));
  const lines = readFileSync(indexFile(folder), 'latin1').trimEnd().split('\n');
  let start = 0;
  return lines.map((line) => {
    const [length = 0, answers = 0] = line.split(' ').map(Number);
    const bytes = all.subarray(start, start + length);
    start += length;
    return { bytes, answers, holes: findNumberOffsets(bytes) };
  });
}

function findNumberOffsets(bytes: Buffer): number[] {
  const holes: number[] = [];
  for (
    let at = bytes.indexOf(numberPlaceholder);
    at >= 0;
    at = bytes.indexOf(numberPlaceholder, at + numberPlaceholder.length)
  )
    holes.push(at);
  return holes;
}

/** All placeholders of one answer get its number. */
export function fillNumbers({ bytes, answers, holes }: PooledRequest, first: number): void {
  const perAnswer = holes.length / answers;
  for (let i = 0; i < holes.length; i++) {
    writeDigits(bytes, holes[i] as number, first + Math.floor(i / perAnswer));
  }
}

const zero = 48;

function writeDigits(bytes: Buffer, at: number, number: number): void {
  let rest = number;
  for (let i = at + numberPlaceholder.length - 1; i >= at; i--) {
    const tenth = Math.floor(rest / 10);
    bytes[i] = zero + rest - 10 * tenth;
    rest = tenth;
  }
}
