/** What is made of CPU profiles: sums without what was idle, names of the sources, a page; and what perf tells. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import type { Profiler } from 'node:inspector';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { buildFlame, readProfile, sumFunctionTimes } from '../../bench/profile/cpu-profile.js';
import { renderFlamePage } from '../../bench/profile/flame-page.js';
import { parseSplit } from '../../bench/profile/runtime-split.js';
import { tempDir } from '../support/temp.js';

const node = (id: number, functionName: string, children: number[] = [], url = ''): Profiler.ProfileNode => ({
  id,
  callFrame: { functionName, scriptId: '0', url, lineNumber: 1, columnNumber: 0 },
  children,
});

/** `again` calls itself; 2 ms of 10 are idle. */
const profile: Profiler.Profile = {
  nodes: [
    node(1, '(root)', [2, 3, 5]),
    node(2, '(idle)'),
    node(3, 'again', [4], 'node:x'),
    node(4, 'again', [], 'node:x'),
    node(5, '<leaf>'),
  ],
  startTime: 0,
  endTime: 10_000,
  samples: [2, 3, 4, 5],
  timeDeltas: [2000, 1000, 3000, 4000],
};

test('times are summed by function without what was idle, and one that calls itself counts once', () => {
  const flame = buildFlame(profile);
  assert.equal(flame.total, 8000);
  assert.deepEqual(sumFunctionTimes(flame), [
    { label: 'again node:x:2', self: 4000, total: 4000 },
    { label: '<leaf>', self: 4000, total: 4000 },
  ]);
  const page = renderFlamePage('worker', flame, 100);
  assert.match(page, /title="&lt;leaf&gt;: 40\.00 µs an answer, itself 40\.00"/);
  assert.doesNotMatch(page, /<leaf>|https?:|\(idle\)/);
});

test('frames get the names of the sources where there is a map', async (t) => {
  const dir = await tempDir(t);
  const [file, bundle] = [join(dir, 'one.cpuprofile'), join(dir, 'bundle.js')];
  // The second line to the fifth of `src/thrower.ts`.
  const map = { version: 3, sources: ['src/thrower.ts'], names: [], mappings: ';AAIA' };
  writeFileSync(`${bundle}.map`, JSON.stringify(map));
  const nodes = [node(1, '(root)', [2]), node(2, 'thrower', [], pathToFileURL(bundle).href)];
  writeFileSync(file, JSON.stringify({ ...profile, nodes, samples: [2], timeDeltas: [5] }));
  for (const { nodes: found } of [readProfile(file), readProfile(file)]) {
    const { url, lineNumber } = found[1]?.callFrame ?? {};
    assert.deepEqual([url, lineNumber], [pathToFileURL(join(dir, 'src/thrower.ts')).href, 4]);
  }
});

test('samples of V8’s own threads are compiling or collecting by the outermost function that tells', () => {
  const stacks = [
    ' 1 v8::internal::Zone::New\n 2 v8::internal::compiler::PipelineImpl::Run\n 3 start_thread',
    ' 1 memmove\n 2 v8::internal::Scavenger::Process\n 3 start_thread',
    ' 1 v8::internal::Heap::Allocate\n 2 v8::internal::maglev::MaglevCompiler::Compile\n 3 start_thread',
    ' 1 futex_wait\n 2 start_thread',
  ];
  assert.deepEqual(parseSplit(`${stacks.join('\n\n')}\n`), { compiling: 0.5, collecting: 0.25 });
  assert.equal(parseSplit('\n'), null);
});
