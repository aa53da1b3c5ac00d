/** A learner's events with several skills: outcomes, limits, repeats, rows and webhook events. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeAttemptRow } from '../../src/contracts/answers/attempt-row.js';
import type { TrackEvent } from '../../src/contracts/answers/track-task.js';
import { defaultParameters } from '../../src/domain/base/bkt-parameters.js';
import { unfittedModel } from '../../src/domain/catalogue/tenant-model.js';
import { newLearner, newSkill } from '../../src/domain/tracing/learner-states.js';
import { emptyIds } from '../../src/store/learners/event-ids.js';
import { type PlanContext, planLearner } from '../../workers/track/plan-learner.js';
import { groupByLearner } from '../../workers/track/read-events.js';
import { valuesOf } from '../support/values-of.js';

const eventOf = (skillIds: TrackEvent['skillIds'], part: Partial<TrackEvent> = {}): TrackEvent => ({
  ...{ tenant: 't', userId: 'ada', skillIds, listsSkills: skillIds.length > 1, itemId: null, eventId: null },
  ...{ isCorrect: true, timeSpentSeconds: null, confidenceScore: null, questionDifficulty: null },
  ...{ occurredAt: 1.7e12, occurredAtText: null, receivedAt: 1.7e12, importLine: null, ...part },
});

/** Skills in `known` have a state. */
function plan(events: readonly TrackEvent[], known: readonly string[] = [], part: Partial<PlanContext> = {}) {
  const [learner] = groupByLearner(
    events.map((event, replyIndex) => ({ replyIndex, event })),
    16,
  );
  assert.ok(learner !== undefined);
  const skills = learner.skillIds.map((id) =>
    known.includes(id) ? { ...newSkill(defaultParameters), attempts: 1 } : null,
  );
  const loaded = { learner: newLearner, hasGoal: false, skills, ids: emptyIds, items: [], importLine: 0 };
  const context = { model: unfittedModel, subscribedTypes: '', findItem: () => null };
  return planLearner(learner, loaded, {
    ...{ ...context, learnerSkills: undefined, skillAllowance: undefined, ...part },
  });
}

const allowance = (maxNewSkills: number, ...rejected: string[]) => ({
  skillAllowance: { maxNewSkills, rejectedSkills: new Set(rejected) },
});

test('planLearner rejects an answer with more new skills than the learner may have, and stores nothing of it', () => {
  const events = [
    eventOf(['known', 'a', 'b', 'c']),
    eventOf(['a', 'known', 'b']),
    eventOf(['a', 'b']),
    eventOf(['a', 'c']),
    eventOf(['c']),
  ];
  const { outcomes, commit, newSkills } = plan(events, ['known'], allowance(2));
  assert.deepEqual(valuesOf(outcomes, 'outcome'), ['beyond', 'counted', 'counted', 'beyond', 'beyond']);
  assert.deepEqual(valuesOf(newSkills, 'skillId'), ['a', 'b']);
  assert.deepEqual(
    commit?.skills.map(([skillId, { attempts }]) => [skillId, attempts]),
    [
      ['known', 2],
      ['a', 2],
      ['b', 2],
    ],
  );
  assert.equal(commit?.learner.attempts, 2);
  assert.equal(commit?.rows.length, 2);
});

test('planLearner rejects an answer if the tenant cannot have one of its new skills', () => {
  const events = [eventOf(['a', 'beyond']), eventOf(['a', 'known']), eventOf(['beyond', 'known'])];
  const { outcomes, commit } = plan(events, ['known'], allowance(9, 'beyond', 'known'));
  assert.deepEqual(valuesOf(outcomes, 'outcome'), ['beyond', 'counted', 'beyond']);
  assert.match(outcomes[0]?.data ?? '', /MAX_SKILLS_PER_TENANT/);
  assert.deepEqual(
    commit?.skills.map(([skillId]) => skillId),
    ['a', 'known'],
  );
});

test('planLearner replays the first result with its order of the skills, for any order and form', () => {
  const first = eventOf(['b', 'c', 'a'], { eventId: 'e' });
  const one = eventOf(['a'], { eventId: 'f', listsSkills: true });
  const events = [
    first,
    { ...first, skillIds: ['a', 'b', 'c'] as const },
    { ...first, skillIds: ['a', 'b'] as const },
    { ...first, skillIds: ['b'] as const },
    one,
    { ...one, listsSkills: false },
  ];
  const { outcomes, commit } = plan(events);
  assert.deepEqual(valuesOf(outcomes, 'outcome'), [
    ...['counted', 'replayed', 'reused', 'reused', 'counted', 'replayed'],
  ]);
  assert.equal(outcomes[1]?.data, outcomes[0]?.data);
  const listed = (i: number) => JSON.parse(outcomes[i]?.data ?? '').skills;
  assert.deepEqual(valuesOf(listed(0), 'skill_id'), ['b', 'c', 'a']);
  assert.deepEqual(valuesOf(listed(4), 'skill_id'), ['a']);
  assert.equal(listed(5), undefined);
  assert.equal(commit?.learner.attempts, 2);
});

test('planLearner writes one row for an answer with several skills', () => {
  const skillIds = ['b', "it's", 'a'] as const;
  const { commit } = plan([eventOf(skillIds), eventOf(['a'], { isCorrect: false })]);
  const [row, next] = (commit?.rows ?? []).map(decodeAttemptRow);
  assert.deepEqual(row?.event.skillIds, skillIds);
  assert.equal(row?.conditions.skills.length, 3);
  const { skills = [] } = row?.figures ?? {};
  assert.equal(next?.figures.skills[0].masteryBefore, skills[2]?.masteryAfter);
  assert.deepEqual([row?.figures.learnerSeq, next?.figures.learnerSeq], [1, 2]);
});

test('planLearner sends the webhook events of each skill of an answer', () => {
  const answers = Array.from({ length: 8 }, () => eventOf(['a', 'b']));
  const { commit } = plan(answers, [], { subscribedTypes: ' mastery.reached ' });
  const skillIds = commit?.webhookEvents.map((event) => JSON.stringify(event).match(/skill_id\W+(\w)/)?.[1]);
  assert.deepEqual(skillIds, ['a', 'b']);
});
