/**
 * Makes stack traces name the sources. Node's own --enable-source-maps reads and parses the map of every file when the file
 * is loaded, a tenth of what a start costs; this reads a map when an error that went through its file is told.
 */
import { readFileSync } from 'node:fs';
import { SourceMap, type SourceMapping } from 'node:module';
import { fileURLToPath } from 'node:url';

const maps = new Map<string, SourceMap | null>();

/** @param url of a file of the build, beside which its map stands */
function mapOf(url: string): SourceMap | null {
  const known = maps.get(url);
  if (known !== undefined) return known;
  const map = readMap(url);
  maps.set(url, map);
  return map;
}

function readMap(url: string): SourceMap | null {
  try {
    return new SourceMap(JSON.parse(readFileSync(fileURLToPath(`${url}.map`), 'utf8')));
  } catch {
    // Nothing may take the place of the error that is being told: too many open files, for one, is such an error.
    return null;
  }
}

/** The line of a stack trace, with the place in the source where there is a map. */
function told(frame: NodeJS.CallSite): string {
  const url = frame.getFileName() ?? '';
  const line = frame.getLineNumber();
  const column = frame.getColumnNumber();
  const text = `    at ${frame}`;
  if (!url.startsWith('file:') || line === null || column === null) return text;
  // V8 counts from one, maps from nought.
  const origin = mapOf(url)?.findEntry(line - 1, column - 1);
  if (origin === undefined || !isMapping(origin)) return text;
  const { originalSource, originalLine, originalColumn } = origin;
  const place = `${fileURLToPath(new URL(originalSource, url))}:${originalLine + 1}:${originalColumn + 1}`;
  return text.replace(`${url}:${line}:${column}`, () => place);
}

const isMapping = (origin: SourceMapping | object): origin is SourceMapping => 'originalSource' in origin;

Error.prepareStackTrace = (error, frames) =>
  [Error.prototype.toString.call(error), ...frames.map(told)].join('\n');
