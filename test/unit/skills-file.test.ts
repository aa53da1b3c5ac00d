/** The file of SKILLS_FILE: CSV and JSON formats, and messages about invalid rows. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { readSkillsFile } from '../../src/app/startup/skills-file.js';
import { StartError } from '../../src/lifecycle.js';
import { tempDir } from '../support/temp.js';

async function pathOf(t: TestContext, content: string | Buffer): Promise<string> {
  const path = join(await tempDir(t), 'skills');
  writeFileSync(path, content);
  return path;
}

/** Tenants and skills as plain lists. */
async function read(t: TestContext, content: string): Promise<unknown> {
  const file = readSkillsFile(await pathOf(t, content));
  return [...file].map(([tenant, skills]) => [tenant, [...skills]]);
}

/** The error message, with FILE for the path. */
async function messageOf(t: TestContext, content: string | Buffer): Promise<string> {
  const path = await pathOf(t, content);
  try {
    readSkillsFile(path);
  } catch (error) {
    assert.ok(error instanceof StartError);
    return error.message.replaceAll(path, 'FILE');
  }
  return assert.fail('the file was accepted');
}

const algebra = {
  name: 'Algebra, "linear"',
  section: 'math',
  weight: 2,
  parameters: { pInit: 0.3, pLearn: 0.1, pGuess: 0.2, pSlip: 0.1, pForget: 0.02 },
};
const unset = { name: null, section: null, weight: 1, parameters: null };

test('readSkillsFile reads a CSV with all columns in any order, and a JSON list with all fields', async (t) => {
  const text = [
    '\uFEFFsection, skill_id ,name,weight,p_init,p_learn,p_guess,p_slip,p_forget,tenant,other',
    'math,algebra,"Algebra, ""linear""",2,.3,1e-1,0.20,0.1,.02,,x',
    '',
    ' rw ,comma,,, , , , ,,school,',
    ',😀,,,,,,,,school,',
  ];
  const expected = { comma: { ...unset, section: 'rw' }, '😀': unset };
  const found = [
    ['default', [['algebra', algebra]]],
    ['school', Object.entries(expected)],
  ];
  for (const lineEnd of ['\n', '\r\n']) assert.deepEqual(await read(t, text.join(lineEnd)), found);
  const skill = {
    ...{ skill_id: 'algebra', name: algebra.name, section: 'math', weight: '2' },
    ...{ p_init: 0.3, p_learn: '.1', p_guess: 0.2, p_slip: 0.1, p_forget: '.02', tenant: null, unknown: {} },
  };
  assert.deepEqual(await read(t, JSON.stringify([skill])), found.slice(0, 1));
});

test('readSkillsFile leaves missing columns unchanged and resets empty fields', async (t) => {
  assert.deepEqual(await read(t, 'skill_id\na\n'), [['default', [['a', {}]]]]);
  assert.deepEqual(await read(t, 'skill_id,section\na,\n'), [['default', [['a', { section: null }]]]]);
  assert.deepEqual(await read(t, 'skill_id,p_slip,weight\na,,\n'), [
    ['default', [['a', { parameters: null, weight: 1 }]]],
  ]);
  assert.deepEqual(await read(t, 'skill_id,name\n'), []);
  const skills = [
    { skill_id: 'a' },
    { skill_id: 'b', name: null, weight: '', p_init: null },
    { skill_id: 'c', tenant: 'x', section: 'rw' },
  ];
  const expected = [
    ['default', Object.entries({ a: {}, b: { name: null, weight: 1, parameters: null } })],
    ['x', [['c', { section: 'rw' }]]],
  ];
  assert.deepEqual(await read(t, JSON.stringify(skills)), expected);
  assert.deepEqual(await read(t, `\uFEFF \n${JSON.stringify({ skills, other: 1 })}`), expected);
});

test('readSkillsFile reads the JSON of GET /skills and takes only manual parameters', async (t) => {
  const chances = { p_init: 0.3, p_learn: 0.1, p_guess: 0.2, p_slip: 0.1, p_forget: 0.02 };
  const parameters = { ...chances, version: 7, fitted_at: null };
  const row = (skill_id: string, source: string) => ({
    ...{ skill_id, name: algebra.name, section: 'math', weight: 2, parameters: { ...parameters, source } },
    ...{ origin: 'fit', learners: 3, answers: 50, typical_seconds: null, updated_at: null },
  });
  const skills = [
    ...[row('configured', 'manual'), row('fitted', 'fitted'), row('default', 'default')],
    { skill_id: 'without source', parameters },
    { skill_id: 'removed', parameters: null },
  ];
  const { parameters: manual } = algebra;
  const expected = {
    configured: algebra,
    fitted: { ...algebra, parameters: null },
    default: { ...algebra, parameters: null },
    'without source': { parameters: manual },
    removed: { parameters: null },
  };
  const text = JSON.stringify({ skills, next_cursor: null, model_version: 7 });
  assert.deepEqual(await read(t, text), [['default', Object.entries(expected)]]);
  // A CSV has no such column.
  assert.deepEqual(await read(t, 'skill_id,parameters\na,x\n'), [['default', [['a', {}]]]]);
});

const head = 'skill_id,section,weight,p_init,p_learn,p_guess,p_slip,name,tenant';
const number = 'a number from 0.001 to 0.999, either for the first four or for none of them';

const inRange = (least: string) => `must be >= ${least}`;
const invalidRows: readonly (readonly [string, string])[] = [
  [
    ',math,1,,,,,,',
    'skill_id "" is not allowed; allowed: 1 to 128 characters without control characters, except . and ..',
  ],
  ['a,Math,1,,,,,,', 'section "Math" is not allowed (must be one of math, rw); allowed: math, rw or empty'],
  [
    'a,,0,,,,,,',
    `weight "0" is not allowed (${inRange('0.000001')}); allowed: empty, or a number from 0.000001 to 1000`,
  ],
  ['a,,,0,.1,.2,.1,,', `p_init "0" is not allowed (${inRange('0.001')}); allowed: ${number}`],
  ['a,,,.3,.1,.2,,,', `p_slip "" is not allowed (is required); allowed: ${number}`],
  [
    'a,,,.3,.1,.5,.5,,',
    `p_slip ".5" is not allowed (must be at most 0.45 (0.95 - p_guess)); allowed: ${number}`,
  ],
  ['a,,,,,,,,a b', 'tenant "a b" is not allowed; allowed: 1 to 128 characters of A-Za-z0-9._~-'],
  ['a,b', 'has 2 fields, but the header has 9'],
];

test('readSkillsFile reports line, field, value and allowed values of an invalid row', async (t) => {
  for (const [row, problem] of invalidRows) {
    const message = await messageOf(t, `${head}\n\nfine,,,,,,,,\n${row}\n`);
    assert.equal(message, `SKILLS_FILE: FILE, line 4: ${problem}`);
  }
  const twice = 'skill_id "b" is not allowed (duplicate); allowed: each skill once';
  assert.equal(await messageOf(t, 'skill_id,tenant\nb,x\nb,\nb,x\n'), `SKILLS_FILE: FILE, line 4: ${twice}`);
  const json = JSON.stringify([{ skill_id: 'a' }, 5, { skill_id: 7, weight: true }]);
  assert.equal(
    await messageOf(t, json),
    'SKILLS_FILE: FILE, skill 2: is not an object\n' +
      'SKILLS_FILE: FILE, skill 3: skill_id 7 is not allowed; allowed: 1 to 128 characters without control characters, except . and ..',
  );
});

test('readSkillsFile reports invalid parameters of a JSON object', async (t) => {
  const nested = { p_init: 0.3, p_learn: 0.1, p_guess: 0.2, p_slip: 0.1 };
  const cases: readonly (readonly [object, RegExp])[] = [
    [{ parameters: 'manual' }, /parameters "manual" is not allowed \(must be object\)/],
    [
      { parameters: { ...nested, p_slip: 0.9 } },
      /parameters\/p_slip 0.9 is not allowed \(must be at most 0.75/,
    ],
    [{ parameters: { ...nested, p_forget: 0.09 } }, /parameters\/p_forget 0.09 .*\(must be at most 0.04: /],
    [{ parameters: { ...nested, p_forget: 0.2 } }, /parameters\/p_forget 0.2 .*\(must be <= 0.1\)/],
    [{ parameters: { ...nested, p_init: '0.3' } }, /parameters\/p_init "0.3" .*\(must be number\)/],
    [{ parameters: { source: 'prior' } }, /parameters\/source "prior" .*one of default, fitted, manual/],
    [{ parameters: nested, p_guess: null }, /p_guess is not allowed together with parameters/],
  ];
  for (const [fields, message] of cases) {
    const text = await messageOf(t, JSON.stringify([{ skill_id: 'a', ...fields }]));
    assert.match(text, /^SKILLS_FILE: FILE, skill 1: /);
    assert.match(text, message);
  }
});

test('readSkillsFile reports the first ten problems and the number of the others', async (t) => {
  const rows = Array.from({ length: 14 }, (_, i) => `skill-${i},section ${i}`).join('\n');
  const lines = (await messageOf(t, `skill_id,section\n${rows}`)).split('\n');
  assert.equal(lines.length, 11);
  assert.match(lines[9] ?? '', /^SKILLS_FILE: FILE, line 11: section "section 9" is not allowed/);
  assert.equal(lines[10], 'and 4 more');
});

test('readSkillsFile reports files without a list of skills', async (t) => {
  const files: readonly (readonly [string | Buffer, RegExp])[] = [
    ['', /^SKILLS_FILE: FILE is empty$/],
    ['\uFEFF \n', /is empty$/],
    [Buffer.from([0x61, 0xff]), /is not valid UTF-8$/],
    ['{"skills":', /is not valid JSON: /],
    ['{"skills":{}}', /is not a list of skills/],
    ['{}', /is not a list of skills/],
    ['name,section\na,math', /missing: skill_id$/],
    ['skill_id,name,name\na,b,c', /has the column name twice$/],
    ['skill_id\n"a', /is not valid CSV: .*line 2/],
  ];
  for (const [content, message] of files) assert.match(await messageOf(t, content), message);
});
