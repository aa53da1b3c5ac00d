import { readFileSync, writeFileSync } from 'node:fs';
import type { Profiler } from 'node:inspector';
import { SourceMap } from 'node:module';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { computeSum } from '../../src/lists.js';
import { resolveBenchPath } from '../targets/targets.js';

/** Wall-clock µs of a function, or of a state of V8 in brackets. */
export interface FunctionTime {
  readonly label: string;
  self: number;
  /** With callees. */
  total: number;
}

/** V8 also samples waiting threads. */
const idleLabel = '(idle)';
/** Excludes frames of the profiler. */
const recorderPath = 'bench/profile/recorder.';
const maps = new Map<string, SourceMap | null>();

function loadSourceMap(url: string): SourceMap | null {
  if (!url.startsWith('file:')) return null;
  const known = maps.get(url);
  if (known !== undefined) return known;
  const map = readSourceMap(`${fileURLToPath(url)}.map`);
  maps.set(url, map);
  return map;
}

function readSourceMap(file: string): SourceMap | null {
  try {
    return new SourceMap(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    return null; // unbundled packages have no map
  }
}

/** Also writes source positions to the file, for other tools. */
export function readProfile(file: string): Profiler.Profile {
  const profile: Profiler.Profile = JSON.parse(readFileSync(file, 'utf8'));
  for (const node of profile.nodes) node.callFrame = mapToSource(node.callFrame);
  writeFileSync(file, JSON.stringify(profile));
  return profile;
}

function mapToSource(frame: Profiler.ProfileNode['callFrame']): Profiler.ProfileNode['callFrame'] {
  const origin = loadSourceMap(frame.url)?.findEntry(frame.lineNumber, frame.columnNumber);
  if (origin === undefined || !('originalSource' in origin)) return frame;
  const { originalSource, originalLine, originalColumn } = origin;
  const url = new URL(originalSource, frame.url).href;
  return { ...frame, url, lineNumber: originalLine, columnNumber: originalColumn };
}

const root = resolveBenchPath('../..');

function formatLabel({ functionName, url, lineNumber }: Profiler.ProfileNode['callFrame']): string {
  const name = functionName === '' ? '(anonymous)' : functionName;
  if (url === '') return name;
  const path = url.startsWith('file:') ? relative(root, fileURLToPath(url)) : url;
  return `${name} ${path.replace(/^.*node_modules\//, '')}:${lineNumber + 1}`;
}

/** Without idle time, sorted by self time. A recursive function's total counts once. */
export function sumFunctionTimes(profile: Profiler.Profile): FunctionTime[] {
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  const selfTimes = sumSelfTimes(profile);
  const times = new Map<string, FunctionTime>();
  const visit = (id: number, above: ReadonlySet<string>): number => {
    const { callFrame, children = [] } = nodes.get(id) as Profiler.ProfileNode;
    const label = formatLabel(callFrame);
    if (label === idleLabel || label.includes(recorderPath)) return 0;
    const time = times.get(label) ?? { label, self: 0, total: 0 };
    times.set(label, time);
    const self = selfTimes.get(id) ?? 0;
    const path = new Set([...above, label]);
    const total = self + computeSum(children.map((child) => visit(child, path)));
    time.self += self;
    if (!above.has(label)) time.total += total;
    return total;
  };
  for (const child of profile.nodes[0]?.children ?? []) visit(child, new Set());
  return [...times.values()].sort((a, b) => b.self - a.self);
}

function sumSelfTimes({ samples = [], timeDeltas = [] }: Profiler.Profile): Map<number, number> {
  const self = new Map<number, number>();
  samples.forEach((id, i) => {
    self.set(id, (self.get(id) ?? 0) + (timeDeltas[i] ?? 0));
  });
  return self;
}
