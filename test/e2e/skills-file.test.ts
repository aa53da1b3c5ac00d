/** SKILLS_FILE at the start, and settings that the API changed. */
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type Caller, callerOf, event } from '../support/http/http.js';
import { keysOf, type Service, startService } from '../support/servers/service.js';
import { tempDir } from '../support/temp.js';

const parameters = { p_init: 0.5, p_learn: 0.1, p_guess: 0.2, p_slip: 0.1 };

async function writeSkillsFile(t: TestContext, content: string): Promise<string> {
  const file = join(await tempDir(t), 'skills');
  writeFileSync(file, content);
  return file;
}

async function put(caller: Caller, skillId: string, body: object): Promise<void> {
  const path = `/api/v1/skills/${skillId}`;
  assert.equal((await caller.raw({ method: 'PUT', path, body: JSON.stringify(body) })).status, 200);
}

/** Name, section, weight, p_init, source of the parameters, ETag. */
async function read(caller: Caller, skillId: string): Promise<unknown[]> {
  const { json, headers } = await caller.get(`/api/v1/skills/${skillId}`);
  const { name, section, weight, parameters } = json.data;
  return [name, section, weight, parameters.p_init, parameters.source, headers.etag];
}

test('SKILLS_FILE overwrites at each start the fields that it names, and keeps all others', async (t) => {
  const csv = 'skill_id,name,section,weight,tenant\na,Alpha,math,2,\nb,Beta,,,\nc,Gamma,rw,3,other\n';
  const service = await startService(t, { skillsFile: await writeSkillsFile(t, csv) });
  const caller = callerOf(service, service.key);
  const startWith = async (content: string): Promise<Service> => {
    const skillsFile = await writeSkillsFile(t, content);
    return startService(t, { dataDir: service.dataDir, role: 'api', skillsFile });
  };
  assert.deepEqual(await read(caller, 'a'), ['Alpha', 'math', 2, 0.3, 'default', '"1"']);
  assert.deepEqual(await read(caller, 'b'), ['Beta', null, 1, 0.3, 'default', '"2"']);
  assert.equal((await caller.get('/api/v1/skills/c')).status, 404);
  const other = callerOf(service, await (await keysOf(t, service)).add({ tenant: 'other' }));
  assert.deepEqual(await read(other, 'c'), ['Gamma', 'rw', 3, 0.3, 'default', '"1"']);

  await put(caller, 'a', { name: 'Changed', section: 'rw', weight: 7, parameters });
  await put(caller, 'z', { name: 'Zeta', parameters });
  await startWith('skill_id,weight\nb,\nz,4\n');
  assert.deepEqual(await read(caller, 'b'), ['Beta', null, 1, 0.3, 'default', '"2"'], 'unchanged');
  assert.deepEqual(await read(caller, 'z'), ['Zeta', null, 4, 0.5, 'manual', '"5"']);

  const many = Array.from({ length: 5000 }, (_, i) => ({ skill_id: `many-${i}`, section: 'math' }));
  const changed = [
    { skill_id: 'a', weight: 3 },
    { skill_id: 'n', ...parameters, p_init: 0.6 },
  ];
  const second = await startWith(JSON.stringify({ skills: [...changed, ...many] }));
  assert.deepEqual(await read(caller, 'a'), ['Changed', 'rw', 3, 0.5, 'manual', '"6"']);
  assert.deepEqual(await read(caller, 'n'), [null, null, 1, 0.6, 'manual', '"7"']);
  assert.deepEqual(await read(caller, 'many-4999'), [null, 'math', 1, 0.3, 'default', '"5007"']);
  const { json } = await callerOf(second, second.key).track(event({ skill_id: 'n' }));
  assert.equal(json.data.mastery_before, 0.6);

  const rows = (await caller.get('/api/v1/skills')).json.data;
  await startWith(JSON.stringify(rows));
  const after = (await caller.get('/api/v1/skills')).json.data;
  assert.deepEqual(after, rows, 'the output of the API changes nothing');

  await startWith(csv);
  // The file has no columns for parameters.
  assert.deepEqual(await read(caller, 'a'), ['Alpha', 'math', 2, 0.5, 'manual', '"5008"']);
  assert.deepEqual(await read(caller, 'b'), ['Beta', null, 1, 0.3, 'default', '"2"']);
});

test('A wrong SKILLS_FILE stops the start before anything is created', async (t) => {
  const skillsFile = await writeSkillsFile(t, 'skill_id,section,weight\na,math,1\nb,maths,none\n');
  const dataDir = join(await tempDir(t), 'data');
  await assert.rejects(startService(t, { dataDir, skillsFile }), {
    name: 'StartError',
    message: `SKILLS_FILE: ${skillsFile}, line 3: section "maths" is not allowed (must be one of math, rw); allowed: math, rw or empty
SKILLS_FILE: ${skillsFile}, line 3: weight "none" is not allowed (must be number); allowed: empty, or a number from 0.000001 to 1000`,
  });
  assert.equal(existsSync(dataDir), false);
});
