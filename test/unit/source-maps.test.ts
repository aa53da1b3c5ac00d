import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import '../../src/source-maps.js';
import { tempDir } from '../support/temp.js';

/** The map leads the second line to the fifth of `src/thrower.ts`. */
const map = { version: 3, sources: ['src/thrower.ts'], names: [], mappings: ';AAIA' };

test('a frame tells the source where there is a map, and itself where there is none or it is broken', async (t) => {
  const dir = await tempDir(t);
  const stackOf = async (name: string, beside?: string): Promise<string> => {
    const file = join(dir, name);
    await writeFile(file, 'export const thrower = () => {\nreturn new Error("why", { cause: 1 });\n};\n');
    if (beside !== undefined) await writeFile(`${file}.map`, beside);
    const { thrower } = await import(pathToFileURL(file).href);
    return thrower().stack;
  };
  const lines = (await stackOf('a.mjs', JSON.stringify(map))).split('\n');
  assert.equal(lines[0], 'Error: why');
  assert.equal(lines[1], `    at thrower (${join(dir, 'src/thrower.ts')}:5:1)`);
  for (const stack of [await stackOf('b.mjs'), await stackOf('c.mjs', '{ "version":')])
    assert.match(stack, /^Error: why\n {4}at thrower \(file:.*\/[bc]\.mjs:2:8\)\n/);
});
