/**
 * Reads a source map only when an error is shown. Node's --enable-source-maps parses all maps, a tenth of the
 * startup time.
 */
import { readFileSync, statSync } from 'node:fs';
import { SourceMap, type SourceMapping } from 'node:module';
import { fileURLToPath } from 'node:url';

/** Younger maps are from another build. */
const loadedAt = Date.now();
const maps = new Map<string, SourceMap | null>();

function loadMap(url: string): SourceMap | null {
  const known = maps.get(url);
  if (known !== undefined) return known;
  const file = fileURLToPath(`${url}.map`);
  const found = statSync(file, { throwIfNoEntry: false });
  const isUsable = found !== undefined && found.mtimeMs <= loadedAt;
  const map = isUsable ? new SourceMap(JSON.parse(readFileSync(file, 'utf8'))) : null;
  maps.set(url, map);
  return map;
}

const isMapping = (origin: SourceMapping | object): origin is SourceMapping =>
  'originalSource' in origin && typeof origin.originalSource === 'string';

function formatFrame(frame: NodeJS.CallSite): string {
  const text = `    at ${frame}`;
  const [url, line, column] = [frame.getFileName(), frame.getLineNumber(), frame.getColumnNumber()];
  if (!url?.startsWith('file:') || line === null || column === null) return text;
  try {
    // V8 counts from 1, source maps from 0.
    const origin = loadMap(url)?.findEntry(line - 1, column - 1);
    if (origin === undefined || !isMapping(origin)) return text;
    const { originalSource, originalLine, originalColumn } = origin;
    const place = `${fileURLToPath(new URL(originalSource, url))}:${originalLine + 1}:${originalColumn + 1}`;
    return text.replace(`${url}:${line}:${column}`, () => place);
  } catch {
    // Show the error even if the map is unreadable, for example with too many open files.
    return text;
  }
}

/** Like Node, shows codes of Node errors. */
function formatHead(error: Error): string {
  const text = Error.prototype.toString.call(error);
  const isNodes = 'code' in error && typeof error.code === 'string' && error.code.startsWith('ERR_');
  return isNodes && text.startsWith(`${error.name}:`)
    ? `${error.name} [${error.code}]${text.slice(error.name.length)}`
    : text;
}

Error.prepareStackTrace = (error, frames) => [formatHead(error), ...frames.map(formatFrame)].join('\n');
