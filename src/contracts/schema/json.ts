import { isUtf8 } from 'node:buffer';
import { invalid } from '../../errors.js';
import { waitForSlice } from '../../slices.js';
import { validationError } from './validate.js';

/** @throws ApiError INVALID_REQUEST */
export const parseJson = (body: Uint8Array): unknown => parseJsonText(decodeUtf8(body));

/** @throws ApiError INVALID_REQUEST */
export function decodeUtf8(body: Uint8Array): string {
  if (!isUtf8(body)) throw invalid('The body is not valid UTF-8.');
  return Buffer.from(body.buffer, body.byteOffset, body.length).toString('utf8');
}

/** @throws ApiError INVALID_REQUEST */
export function parseJsonText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalid('The body is not valid JSON.');
  }
}

/** Waits for a slice first: parsing 1 MiB takes long. @throws ApiError INVALID_REQUEST */
export async function parseLargeJson(body: Uint8Array, maxValues: number): Promise<unknown> {
  await waitForSlice();
  checkJsonShape(body, maxValues, false);
  return parseJson(body);
}

const smallBytes = 16 * 1024;
const maxDepth = 32;

const [lineFeed, quote, comma, colon, backslash] = [0x0a, 0x22, 0x2c, 0x3a, 0x5c] as const;
/** Braces; the bit distinguishes them from brackets. */
const [opener, closer, braceBit] = [0x7b, 0x7d, 0x20] as const;

/**
 * Limits values before parsing: 1 MiB of brackets blocks the thread for 200 ms.
 * @param maxValues list elements and object fields
 * @param byLine each line is a JSON text
 * @throws ApiError INVALID_REQUEST
 */
export function checkJsonShape(body: Uint8Array, maxValues: number, byLine: boolean): void {
  if (body.length <= smallBytes) return;
  let depth = 0;
  let values = 0;
  for (let at = 0; at < body.length; at++) {
    const byte = body[at] as number;
    if (byte === quote) at = findStringEnd(body, at);
    else if (byte === comma) values += 1;
    else if (byte === lineFeed && byLine) depth = 0;
    else if ((byte | braceBit) === closer) depth -= 1;
    else if ((byte | braceBit) === opener) {
      values += 1;
      depth += 1;
      if (depth > maxDepth) throw invalid(`The body is nested deeper than ${maxDepth} levels.`);
    }
  }
  if (values > maxValues) throw invalid(`The body has more than ${maxValues} values.`);
}

/**
 * JSON.parse would keep the last of the fields. Yields, because a large body takes up to 35 ms.
 * @param body valid JSON. @throws ApiError INVALID_REQUEST if an object has two fields with the same name
 */
export function* checkUniqueNames(body: Buffer): Generator<undefined, void> {
  const namesOfOpen: Set<string>[] = [];
  let stringFrom = 0;
  let stringEnd = 0;
  for (let at = 0; at < body.length; at++) {
    const byte = body[at];
    if (byte === opener) namesOfOpen.push(new Set());
    else if (byte === closer) namesOfOpen.pop();
    else if (byte === colon) {
      const names = namesOfOpen.at(-1) as Set<string>;
      if (names.size % namesPerStep === 0) yield;
      addName(names, JSON.parse(body.toString('utf8', stringFrom, stringEnd)));
    } else if (byte === quote) {
      stringFrom = at;
      at = findStringEnd(body, at);
      stringEnd = at + 1;
    }
  }
}

const namesPerStep = 200;
const maxShownCharacters = 100;

function addName(names: Set<string>, name: string): void {
  const path = name.slice(0, maxShownCharacters);
  if (names.has(name)) throw validationError('body', { path, message: 'must not be repeated in its object' });
  names.add(name);
}

function findStringEnd(body: Uint8Array, from: number): number {
  for (let at = from + 1; at < body.length; at++) {
    const byte = body[at];
    if (byte === backslash) at += 1;
    else if (byte === quote) return at;
    else if (byte === lineFeed) return at - 1;
  }
  return body.length;
}
