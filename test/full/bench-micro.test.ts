import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';

const run = (filter: string) => {
  const entry = new URL('../../bench/micro/main.js', import.meta.url).href;
  const script = `import(${JSON.stringify(entry)}).then(({ main }) => main(process.argv[1]))`;
  return spawnSync(process.execPath, ['-e', script, '--', filter], { encoding: 'utf8', timeout: 60_000 });
};

test('micro-benchmarks run those that the filter finds, whatever its case, and no others', () => {
  const { status, stdout, stderr } = run('^Event: schema');
  assert.equal(status, 0, stderr);
  assert.match(stdout, /\nevent: schema check +[\d.]+ (ns|µs)\/iter/);
  assert.equal(stdout.match(/\/iter/g)?.length, 1);
});

test('a filter that finds none is an error', () => {
  const { status, stderr } = run('^no such');
  assert.equal(status, 1);
  assert.match(stderr, /No micro-benchmark matches \^no such/);
});
