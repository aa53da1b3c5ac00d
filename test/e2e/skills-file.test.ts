/** SKILLS_FILE: what a start makes of it, and of what the API set meanwhile. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { endOf } from '../support/commands/command.js';
import { type Caller, callerOf, event } from '../support/http/http.js';
import { dataFolder, keysOf, startService } from '../support/servers/service.js';
import { environment, serviceProgram } from '../support/servers/service-process.js';
import { tempDir } from '../support/temp.js';

async function put(caller: Caller, skillId: string, body: object): Promise<void> {
  const answer = await caller.raw({
    method: 'PUT',
    path: `/api/v1/skills/${skillId}`,
    body: JSON.stringify(body),
  });
  assert.equal(answer.status, 200, answer.text);
}

/** Name, section, weight, p_init and source, and the tag. */
async function shown(caller: Caller, skillId: string): Promise<unknown[]> {
  const { json, headers } = await caller.get(`/api/v1/skills/${skillId}`);
  const { name, section, weight, parameters } = json.data;
  return [name, section, weight, parameters.p_init, parameters.source, headers.etag];
}

const manual = { p_init: 0.5, p_learn: 0.1, p_guess: 0.2, p_slip: 0.1 };

test('CSV, then JSON, then CSV again: the file wins for what it names, all else stays', {
  timeout: 600_000,
}, async (t) => {
  const folder = await dataFolder();
  t.after(folder.remove);
  const files = await tempDir(t);
  const fileOf = (content: string): { skillsFile: string; dataDir: string } => {
    const skillsFile = join(files, 'skills');
    writeFileSync(skillsFile, content);
    return { skillsFile, dataDir: folder.path };
  };
  const csv = 'skill_id,name,section,weight,tenant\na,Alpha,math,2,\nb,Beta,,,\nc,Gamma,rw,3,other\n';

  const first = await startService(t, fileOf(csv));
  let caller = callerOf(first, first.key);
  assert.deepEqual(await shown(caller, 'a'), ['Alpha', 'math', 2, 0.3, 'default', '"1"']);
  assert.deepEqual(await shown(caller, 'b'), ['Beta', null, 1, 0.3, 'default', '"2"']);
  assert.equal((await caller.get('/api/v1/skills/c')).status, 404);
  const other = callerOf(first, await (await keysOf(t, first)).add({ tenant: 'other' }));
  assert.deepEqual(await shown(other, 'c'), ['Gamma', 'rw', 3, 0.3, 'default', '"1"']);
  await put(caller, 'a', { name: 'Changed', section: 'rw', weight: 7, parameters: manual });
  await put(caller, 'z', { name: 'Zeta', parameters: manual });
  // Another API of the deployment has a file of its own; what is as told stays untouched.
  const second = await startService(t, { ...fileOf('skill_id,weight\nb,\nz,4\n'), role: 'api' });
  assert.deepEqual(await shown(callerOf(second, second.key), 'b'), ['Beta', null, 1, 0.3, 'default', '"2"']);
  assert.deepEqual(await shown(caller, 'z'), ['Zeta', null, 4, 0.5, 'manual', '"5"']);
  await second.stop();
  assert.equal(await first.stop(), true);

  const json = {
    skills: [
      { skill_id: 'a', weight: 3 },
      { skill_id: 'n', ...manual, p_init: 0.6 },
    ],
  };
  const again = await startService(t, fileOf(JSON.stringify(json)));
  caller = callerOf(again, again.key);
  assert.deepEqual(await shown(caller, 'a'), ['Changed', 'rw', 3, 0.5, 'manual', '"6"']);
  assert.deepEqual(await shown(caller, 'n'), [null, null, 1, 0.6, 'manual', '"7"']);
  assert.deepEqual(await shown(caller, 'z'), ['Zeta', null, 4, 0.5, 'manual', '"5"']);
  const answer = await caller.track(event({ skill_id: 'n' }));
  assert.equal(answer.json.data.mastery_before, 0.6);
  // What the API shows is a file that changes nothing.
  const rows = (await caller.get('/api/v1/skills')).json.data;
  const third = await startService(t, { ...fileOf(JSON.stringify(rows)), role: 'api' });
  assert.deepEqual((await callerOf(third, third.key).get('/api/v1/skills')).json.data, rows);
  assert.deepEqual(await shown(caller, 'a'), ['Changed', 'rw', 3, 0.5, 'manual', '"6"']);
  await third.stop();
  assert.equal(await again.stop(), true);

  const last = await startService(t, fileOf(csv));
  caller = callerOf(last, last.key);
  // The file has no parameter columns, so those that the API set stay.
  assert.deepEqual(await shown(caller, 'a'), ['Alpha', 'math', 2, 0.5, 'manual', '"8"']);
  assert.deepEqual(await shown(caller, 'b'), ['Beta', null, 1, 0.3, 'default', '"2"']);
  const { skills } = (await caller.get('/api/v1/skills')).json.data;
  assert.deepEqual(
    skills.map(({ skill_id }: { skill_id: string }) => skill_id),
    ['a', 'b', 'n', 'z'],
  );
});

test('a file of thousands of skills', { timeout: 60_000 }, async (t) => {
  const skillsFile = join(await tempDir(t), 'skills.json');
  const skills = Array.from({ length: 5000 }, (_, i) => ({ skill_id: `skill-${i}`, section: 'math' }));
  writeFileSync(skillsFile, JSON.stringify(skills));
  const service = await startService(t, { skillsFile });
  const caller = callerOf(service, service.key);
  const { headers, json } = await caller.get('/api/v1/skills/skill-4999');
  assert.deepEqual([headers.etag, json.data.section], ['"5000"', 'math']);
  assert.equal((await caller.track(event({ skill_id: 'skill-1' }))).status, 200);
});

/** Starts the service as a user would, and waits for its end. */
async function endOfStart(t: TestContext, settings: Readonly<Record<string, string>>) {
  const child = spawn(process.execPath, ['-e', serviceProgram], {
    env: { ...environment(), PORT: '0', LOG_LEVEL: 'info', ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  t.after(() => child.kill('SIGKILL'));
  return endOf(child);
}

test('a bad file stops the start before anything is started', { timeout: 60_000 }, async (t) => {
  const dir = await tempDir(t);
  const SKILLS_FILE = join(dir, 'skills.csv');
  writeFileSync(SKILLS_FILE, 'skill_id,section,weight\na,math,1\nb,maths,none\n');
  const DATA_DIR = join(dir, 'data');
  const { code, out, err } = await endOfStart(t, { DATA_DIR, SKILLS_FILE });
  assert.deepEqual([code, out], [1, '']);
  assert.deepEqual(err.trim().split('\n'), [
    `SKILLS_FILE: ${SKILLS_FILE}, line 3: section "maths" is not allowed (must be one of math, rw); allowed: math, rw or nothing`,
    `SKILLS_FILE: ${SKILLS_FILE}, line 3: weight "none" is not allowed (must be number); allowed: a number from 0.000001 to 1000, or nothing`,
  ]);
  assert.equal(existsSync(DATA_DIR), false);
});
