import assert from 'node:assert/strict';
import { test } from 'node:test';
import { importArguments } from '../../src/cli/import/import.js';

const read = (...argv: string[]) => importArguments.read(argv);
const nextWeek = new Date(Date.now() + 7 * 86_400_000).toISOString();

test('arguments of the import', () => {
  const defaults = { file: 'f', tenant: 'default', startMs: null, again: false, json: false };
  assert.deepEqual(read('f'), defaults);
  assert.deepEqual(read('f', '--start', '2005-08-01')?.startMs, Date.UTC(2005, 7, 1));
  assert.deepEqual(read('--tenant=a~b', 'f', '--start=2005-08-01T02:00:00+02:00', '--again', '--json'), {
    file: 'f',
    tenant: 'a~b',
    startMs: Date.UTC(2005, 7, 1),
    again: true,
    json: true,
  });
  assert.equal(read('--help'), null);
});

test('wrong arguments are refused in words', () => {
  const wrong: [string[], RegExp][] = [
    [[], /exactly one FILE/],
    [['a', 'b'], /exactly one FILE/],
    [['a', '--agian'], /--agian/],
    [['a', '--tenant', 'a:b'], /--tenant "a:b"/],
    [['a', '--start', 'May'], /--start "May" must be a date/],
    [['a', '--start', '2005-02-30'], /--start "2005-02-30" must be a date/],
    [['a', '--start', '1969-12-31'], /must not be before 1970/],
    [['a', '--start', nextWeek], /in the future/],
  ];
  for (const [argv, message] of wrong) assert.throws(() => read(...argv), { name: 'StartError', message });
});
