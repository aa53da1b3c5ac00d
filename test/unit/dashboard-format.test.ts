/** Figures of the dashboard as text. */
import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { masteryThresholds } from '../../src/domain/base/bkt-parameters.js';
import { formatCountTick, formatShareTick } from '../../src/lab/report/marks.js';
import {
  formatChance,
  formatClock,
  formatDay,
  formatDaysAgo,
  formatDayTime,
  formatFinePoints,
  formatMastery,
  formatPercent,
  formatPercentRange,
  formatSkillAccuracy,
} from '../../src/pages/dashboard/base/format.js';
import {
  computeToday,
  formatLocalTime,
  getTimeZone,
  setTimeZone,
} from '../../src/pages/dashboard/base/school-days.js';
import { fc, forAll } from '../support/builders/properties.js';

afterEach(() => setTimeZone('UTC'));

test('formatPercent shows 0 % and 100 % only for exact values', () => {
  const texts = [0, 0.0001, 0.0049, 0.005, 0.5, 0.994, 0.995, 0.9999, 1, null].map(formatPercent);
  assert.deepEqual(texts, ['0 %', '<1 %', '<1 %', '1 %', '50 %', '99 %', '>99 %', '>99 %', '100 %', '–']);
  assert.equal(formatPercentRange(0.001, 0.999), '<1 to >99 %');
  assert.equal(formatPercentRange(0.3, null), '–');
});

test('formatMastery and formatSkillAccuracy never round a share up to the threshold of a mastered skill', () => {
  const { mastery, accuracy } = masteryThresholds;
  assert.deepEqual([0.9499, 0.946, 0.95, 0.3].map(formatMastery), ['94 %', '94 %', '95 %', '30 %']);
  assert.deepEqual([0.7499, 0.75, 0.751].map(formatSkillAccuracy), ['74 %', '75 %', '75 %']);
  assert.deepEqual([0.3, 0.599, 0.6].map(formatSkillAccuracy), ['30 %', '59 %', '60 %']);
  const readPercent = (text: string): number => Number(/\d+/.exec(text)?.[0]);
  const shares = fc.double({ min: 0, max: 1, noNaN: true });
  forAll(shares, (share) => {
    assert.equal(readPercent(formatMastery(share)) >= 100 * mastery, share >= mastery);
    assert.equal(readPercent(formatSkillAccuracy(share)) >= 100 * accuracy, share >= accuracy);
    assert.ok(Math.abs(readPercent(formatMastery(share)) - 100 * share) <= 1);
  });
});

test('formatChance rounds down and never claims certainty', () => {
  const texts = [0, 0.126, 0.29, 0.4999, 0.99, 1, null].map(formatChance);
  assert.deepEqual(texts, ['<1 %', '12 %', '29 %', '49 %', '99 %', '>99 %', '–']);
});

test('formatFinePoints shows small differences', () => {
  assert.deepEqual([-0.0023, 0.0004, 0.1].map(formatFinePoints), ['−0.2', '0', '+10']);
});

test('formatDaysAgo counts days of the time zone', (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: Date.parse('2026-06-30T00:30:00Z') });
  const times = ['2026-06-30T00:10:00Z', '2026-06-29T23:50:00Z', '2026-06-28T01:00:00Z'];
  assert.deepEqual(times.map(formatDaysAgo), ['today', 'yesterday', '2 days ago']);
  setTimeZone('America/Los_Angeles');
  assert.deepEqual(times.map(formatDaysAgo), ['today', 'today', '2 days ago']);
});

test('Times show the local time of the time zone, also at a change of the offset', () => {
  const cases = [
    ['America/Los_Angeles', '2026-03-08T09:59:59Z', '8 Mar 2026, 01:59', '01:59:59', '01:59:59-08:00'],
    ['America/Los_Angeles', '2026-03-08T10:00:00Z', '8 Mar 2026, 03:00', '03:00:00', '03:00:00-07:00'],
    ['America/Los_Angeles', '2026-11-01T08:30:00Z', '1 Nov 2026, 01:30', '01:30:00', '01:30:00-07:00'],
    ['America/Los_Angeles', '2026-11-01T09:30:00Z', '1 Nov 2026, 01:30', '01:30:00', '01:30:00-08:00'],
    ['Australia/Lord_Howe', '2026-04-04T15:00:00Z', '5 Apr 2026, 01:30', '01:30:00', '01:30:00+10:30'],
    ['Asia/Kathmandu', '2026-06-30T18:15:00Z', '1 Jul 2026, 00:00', '00:00:00', '00:00:00+05:45'],
    ['UTC', '2026-06-30T23:59:00Z', '30 Jun 2026, 23:59', '23:59:00', '23:59:00+00:00'],
  ] as const;
  for (const [zone, time, dayTime, clock, localTime] of cases) {
    setTimeZone(zone);
    assert.deepEqual([formatDayTime(time), formatClock(time)], [dayTime, clock], `${zone} ${time}`);
    assert.equal(formatDay(time), dayTime.split(',')[0]);
    assert.equal(formatLocalTime(time).slice(11), localTime);
    assert.equal(Date.parse(formatLocalTime(time)), Date.parse(time));
  }
});

test('A plain day stays the same in every time zone', () => {
  for (const zone of Intl.supportedValuesOf('timeZone')) {
    setTimeZone(zone);
    assert.equal(formatDay('2026-11-01'), '1 Nov 2026', zone);
  }
});

test('An unknown time zone shows UTC', () => {
  setTimeZone('Mars/Olympus_Mons');
  assert.equal(getTimeZone(), 'UTC');
  assert.equal(formatDayTime('2026-06-30T23:59:00Z'), '30 Jun 2026, 23:59');
  assert.equal(computeToday(), Math.floor(Date.now() / 86_400_000));
});

test('Labels of an axis do not repeat', () => {
  const fractions = [0, 0.005, 0.01, 0.015, 0.3];
  assert.deepEqual(fractions.map(formatShareTick), ['0%', '0.5%', '1%', '1.5%', '30%']);
  assert.deepEqual([1, 1.5, 2, 2.5].map(formatCountTick), ['1', '', '2', '']);
});
