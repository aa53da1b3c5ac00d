/** The dashboard's page on a class: who is on track, at risk, idle, or not to be judged yet; and lists of learners. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  joinIds,
  parseFileIds,
  parsePastedIds,
  splitIds,
} from '../../src/pages/dashboard/pages/class/learner-ids.js';
import {
  computeStatus,
  explainStatus,
  type StatusInput,
} from '../../src/pages/dashboard/pages/class/status.js';

const now = Date.parse('2026-06-30T00:30:00Z');

const standing: StatusInput = {
  ...{ answers: 20, lastAnswerAt: '2026-06-29T10:00:00Z', isOnTrack: false, currentTotal: 1080 },
  ...{ targetScore: 1220, targetDate: null, daysToGoal: null, answersPerDay: 1.5, plateaus: [] },
};
const statusWith = (changes: Partial<StatusInput>) => computeStatus({ ...standing, ...changes }, now);
const reasonWith = (changes: Partial<StatusInput>) => explainStatus({ ...standing, ...changes }, now);

test('who comes and has answers enough is judged by the forecast', () => {
  assert.equal(statusWith({}), 'risk');
  assert.equal(statusWith({ isOnTrack: true }), 'track');
  assert.equal(statusWith({ isOnTrack: true, answers: 19 }), 'few');
  assert.equal(statusWith({ answers: 0, lastAnswerAt: null }), 'few');
});

test('from the fourteenth UTC day without an answer a learner is idle, whatever else is known', () => {
  assert.equal(statusWith({ lastAnswerAt: '2026-06-16T23:59:59Z' }), 'idle');
  assert.equal(statusWith({ lastAnswerAt: '2026-06-17T00:00:00Z' }), 'risk');
  assert.equal(statusWith({ lastAnswerAt: '2026-06-16T23:59:59Z', isOnTrack: true, answers: 3 }), 'idle');
  // The clock of whoever sent it may be ahead.
  assert.equal(statusWith({ lastAnswerAt: '2026-06-30T00:34:00Z' }), 'risk');
});

test('the reason says what is missing, in a few words', () => {
  assert.equal(reasonWith({ isOnTrack: true }), null);
  assert.equal(reasonWith({ isOnTrack: true, targetDate: '2026-06-29' }), 'date passed, at the goal');
  assert.equal(reasonWith({}), '140 points to go; 1.5 answers a day');
  assert.equal(
    reasonWith({ plateaus: ['Commas', 'Circles'], answersPerDay: 0.05 }),
    '140 points to go; hardly any practice; stuck on Commas, 1 more',
  );
  assert.match(reasonWith({ currentTotal: 1220 }) ?? '', /^there now, forecast to fall below the goal;/);
  assert.match(reasonWith({ daysToGoal: 40 }) ?? '', /^at the goal in 40 days: too late, or not for long;/);
  assert.match(reasonWith({ targetDate: '2026-06-30' }) ?? '', /^140 points to go;/);
  assert.match(reasonWith({ targetDate: '2026-06-29' }) ?? '', /^date passed, 140 points short;/);
  assert.equal(reasonWith({ answers: 7 }), '7 of 20 answers');
  assert.equal(reasonWith({ lastAnswerAt: '2026-06-01T12:00:00Z' }), 'no answer for 29 days');
});

test('a list is pasted as people have it', () => {
  assert.deepEqual(parsePastedIds(' ada \r\nbob,cy\tdee\n\nada\n"a, b"'), [
    'ada',
    'bob',
    'cy',
    'dee',
    'a, b',
  ]);
  assert.deepEqual(parsePastedIds(' \n'), []);
  assert.deepEqual(splitIds(joinIds(['a,b', 'c d'])), ['a,b', 'c d']);
});

test('of a file the first column counts, without its head', () => {
  assert.deepEqual(parseFileIds('\uFEFFuser_id,name\nada,Ada\n"b,ob",Bob\n'), ['ada', 'b,ob']);
  assert.deepEqual(parseFileIds('Learner;Status\nada;On track\n'), ['ada']);
  assert.deepEqual(parseFileIds('ada\nbob\n'), ['ada', 'bob']);
});
