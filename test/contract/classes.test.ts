import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { splitIntoParts } from '../../src/lists.js';
import { awayFromMidnight } from '../support/builders/day.js';
import { habits, makeAnswers } from '../support/builders/school-class.js';
import { callerOf } from '../support/http/http.js';
import { sharedService } from '../support/servers/service.js';
import { waitUntilStored } from '../support/wait.js';

const service = await sharedService();
const caller = callerOf(service, service.key);
const answers = makeAnswers(Date.now());

test('prints', async () => {
  for (const part of splitIntoParts(answers, 1000)) assert.equal((await caller.trackAll(part)).status, 200);
  for (const [user_id, target_score, target_date] of [
    ['strong', 1100, null],
    ['declines', 1300, '2026-12-20'],
    ['beginner', 1200, '2027-01-15'],
    ['guesses', 1200, '2026-12-10'],
  ] as const)
    assert.equal(
      (await caller.send('PUT', `/api/v1/goals/${user_id}`, { target_score, target_date })).status,
      200,
    );
  assert.equal(
    (
      await caller.send('PUT', '/api/v1/groups/c', {
        name: 'Class C',
        user_ids: [...Object.keys(habits), 'absent'],
      })
    ).status,
    200,
  );
  await waitUntilStored(caller);
  const a = await caller.get('/api/v1/groups/c/skills');
  console.log(a.status, JSON.stringify(a.json, null, 1));
  const b = await caller.get('/api/v1/groups/c/summary');
  console.log(b.status, JSON.stringify(b.json, null, 1));
  for (const u of Object.keys(habits)) {
    const p = (await caller.get('/api/v1/predictions/' + u)).json.data;
    const m = (await caller.get('/api/v1/mastery/' + u)).json.data;
    console.log(
      u,
      p.goal_tracking.status,
      p.goal_tracking.goal_probability,
      p.recommendation_codes.map((x: any) => x.code + ':' + x.skill_id).join(' '),
      m.skills
        .map((s: any) => `${s.skill_id} ${s.expected_accuracy} ${s.plateau_detected} ${s.mastered}`)
        .join('; '),
    );
  }
});
