import { readFileSync, writeFileSync } from 'node:fs';
import type { Profiler } from 'node:inspector';
import { SourceMap } from 'node:module';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { resolveBenchPath } from '../targets/targets.js';

/** A function, or a state of V8 in brackets. */
export interface FlameNode {
  readonly label: string;
  /** Wall-clock µs, with callees. */
  total: number;
  self: number;
  readonly children: Map<string, FlameNode>;
}

export type FunctionTime = Pick<FlameNode, 'label' | 'self' | 'total'>;

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

const createNode = (label: string): FlameNode => ({ label, total: 0, self: 0, children: new Map() });

export function buildFlame(profile: Profiler.Profile): FlameNode {
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  const self = sumSelfTimes(profile);
  const grow = (id: number, into: FlameNode): void => {
    const { callFrame, children = [] } = nodes.get(id) as Profiler.ProfileNode;
    const label = formatLabel(callFrame);
    if (label === idleLabel || label.includes(recorderPath)) return;
    const node = into.children.get(label) ?? createNode(label);
    into.children.set(label, node);
    node.self += self.get(id) ?? 0;
    for (const child of children) grow(child, node);
  };
  const all = createNode('all');
  for (const child of profile.nodes[0]?.children ?? []) grow(child, all);
  addTotals(all);
  return all;
}

function sumSelfTimes({ samples = [], timeDeltas = [] }: Profiler.Profile): Map<number, number> {
  const self = new Map<number, number>();
  samples.forEach((id, i) => {
    self.set(id, (self.get(id) ?? 0) + (timeDeltas[i] ?? 0));
  });
  return self;
}

function addTotals(node: FlameNode): number {
  node.total = node.self;
  for (const child of node.children.values()) node.total += addTotals(child);
  return node.total;
}

/** Sorted by self time. A recursive function's total counts once. */
export function sumFunctionTimes(flame: FlameNode): FunctionTime[] {
  const times = new Map<string, FunctionTime>();
  const visit = (node: FlameNode, above: ReadonlySet<string>): void => {
    const time = times.get(node.label) ?? { label: node.label, self: 0, total: 0 };
    times.set(node.label, time);
    time.self += node.self;
    if (!above.has(node.label)) time.total += node.total;
    for (const child of node.children.values()) visit(child, new Set([...above, node.label]));
  };
  for (const child of flame.children.values()) visit(child, new Set());
  return [...times.values()].sort((a, b) => b.self - a.self);
}
