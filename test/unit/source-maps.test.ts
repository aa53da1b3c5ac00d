import assert from 'node:assert/strict';
import { utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import '../../src/source-maps.js';
import { tempDir } from '../support/temp.js';

/** Maps the second line to line 5 of `src/thrower.ts`. */
const map = { version: 3, sources: ['src/thrower.ts'], names: [], mappings: ';AAIA' };

test('A stack trace names the source if its map is usable, and the compiled file otherwise', async (t) => {
  const dir = await tempDir(t);
  const stackOf = async (name: string, sourceMap?: string, written = new Date(0)): Promise<string> => {
    const file = join(dir, name);
    await writeFile(file, 'export const thrower = () => {\nreturn new Error("why", { cause: 1 });\n};\n');
    if (sourceMap !== undefined) {
      await writeFile(`${file}.map`, sourceMap);
      await utimes(`${file}.map`, written, written);
    }
    const { thrower } = await import(pathToFileURL(file).href);
    return thrower().stack;
  };
  const lines = (await stackOf('a.mjs', JSON.stringify(map))).split('\n');
  assert.equal(lines[0], 'Error: why');
  assert.equal(lines[1], `    at thrower (${join(dir, 'src/thrower.ts')}:5:1)`);
  const laterBuild = new Date(Date.now() + 60_000);
  for (const stack of [
    await stackOf('b.mjs'),
    await stackOf('c.mjs', '{ "version":'),
    await stackOf('d.mjs', JSON.stringify(map), laterBuild),
    await stackOf('e.mjs', JSON.stringify({ ...map, sources: ['webpack:///a.ts'] })),
  ])
    assert.match(stack, /^Error: why\n {4}at thrower \(file:.*\/[b-e]\.mjs:2:8\)\n/);
});

test("A stack trace starts like Node's, with the code of Node's own errors only", () => {
  assert.throws(
    () => Buffer.from(1 as never),
    ({ stack }: Error) => stack?.startsWith('TypeError [ERR_INVALID_ARG_TYPE]: The first') === true,
  );
  const stack = Object.assign(new Error('gone'), { code: 'ENOENT' }).stack;
  assert.equal(stack?.split('\n')[0], 'Error: gone');
});
