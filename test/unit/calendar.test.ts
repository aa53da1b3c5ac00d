/** Days of time zones. Expected times are from Python's zoneinfo. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatDay, getCalendar, listOffsets, parseDay, utc } from '../../src/domain/base/calendar.js';
import { seeded } from '../support/builders/random.js';

const hourMs = 3_600_000;

/** Start and hours of a day. */
const days: readonly (readonly [timeZone: string, day: string, start: string, hours: number])[] = [
  ['UTC', '2026-03-08', '2026-03-08T00:00:00Z', 24],
  ['America/Los_Angeles', '2026-03-08', '2026-03-08T08:00:00Z', 23],
  ['America/Los_Angeles', '2026-11-01', '2026-11-01T07:00:00Z', 25],
  ['Europe/Berlin', '2026-03-29', '2026-03-28T23:00:00Z', 23],
  ['Europe/Berlin', '2026-10-25', '2026-10-24T22:00:00Z', 25],
  ['Australia/Lord_Howe', '2026-04-05', '2026-04-04T13:00:00Z', 24.5],
  ['Australia/Lord_Howe', '2026-10-04', '2026-10-03T13:30:00Z', 23.5],
  ['Asia/Kathmandu', '2026-03-08', '2026-03-07T18:15:00Z', 24],
  ['Asia/Kathmandu', '1986-01-01', '1985-12-31T18:30:00Z', 23.75],
  // 00:00 becomes 01:00.
  ['America/Havana', '2026-03-08', '2026-03-08T05:00:00Z', 23],
  ['Africa/Cairo', '2026-04-24', '2026-04-23T22:00:00Z', 23],
  ['Asia/Beirut', '2026-03-29', '2026-03-28T22:00:00Z', 23],
  // 01:00 becomes 00:00, 24:00 becomes 23:00, and 00:01 becomes 23:01.
  ['America/Havana', '2026-11-01', '2026-11-01T04:00:00Z', 25],
  ['Africa/Cairo', '2026-10-29', '2026-10-28T21:00:00Z', 25],
  ['Asia/Beirut', '2026-10-24', '2026-10-23T21:00:00Z', 25],
  ['America/St_Johns', '2006-10-29', '2006-10-29T02:30:00Z', 25],
  // The zone skips a day.
  ['Pacific/Apia', '2011-12-29', '2011-12-29T10:00:00Z', 24],
  ['Pacific/Apia', '2011-12-30', '2011-12-30T10:00:00Z', 0],
  ['Pacific/Apia', '2011-12-31', '2011-12-30T10:00:00Z', 24],
  ['Pacific/Kwajalein', '1993-08-21', '1993-08-21T12:00:00Z', 0],
  ['Pacific/Kiritimati', '2026-01-01', '2025-12-31T10:00:00Z', 24],
  // The offset has seconds.
  ['Africa/Monrovia', '1970-01-02', '1970-01-02T00:44:30Z', 24],
];

test('days start when the zone starts them, also at midnights that are missing or repeated', () => {
  for (const [timeZone, day, start, hours] of days) {
    const { startOfDay, toDay } = getCalendar(timeZone);
    const [from, to] = [startOfDay(parseDay(day)), startOfDay(parseDay(day) + 1)];
    const name = `${timeZone} ${day}`;
    assert.deepEqual(
      [new Date(from).toISOString(), (to - from) / hourMs],
      [start.replace('Z', '.000Z'), hours],
      name,
    );
    assert.equal(formatDay(toDay(from - 1)) < day, true, name);
    assert.equal(formatDay(toDay(from)), hours === 0 ? formatDay(parseDay(day) + 1) : day, name);
  }
});

test('local days are never negative', () => {
  for (const timeZone of [utc, 'America/Los_Angeles', 'Pacific/Pago_Pago', 'Asia/Tokyo']) {
    const { toDay, startOfDay } = getCalendar(timeZone);
    assert.deepEqual([toDay(0), toDay(12 * hourMs)], [0, 0], timeZone);
    assert.ok(toDay(startOfDay(0)) === 0 && toDay(startOfDay(1)) === 1, timeZone);
  }
});

test('getCalendar throws a RangeError for an unknown zone', () => {
  for (const name of ['Mars/Base', '', 'Factory']) assert.throws(() => getCalendar(name), RangeError, name);
});

const zones = [...Intl.supportedValuesOf('timeZone'), 'US/Pacific', 'Etc/GMT+12', utc];
const draw = (random: () => number, from: number, to: number): number =>
  Math.floor(from + random() * (to - from));

test('toDay, startOfDay and Intl dates agree at random times', () => {
  const random = seeded(20_261_101);
  for (const timeZone of zones) {
    const { toDay, startOfDay } = getCalendar(timeZone);
    const format = new Intl.DateTimeFormat('en-CA', { timeZone, dateStyle: 'short' });
    for (let i = 0; i < 12; i++) {
      const ms = draw(random, 48 * hourMs, Date.UTC(2060));
      const day = toDay(ms);
      const at = `${timeZone} ${new Date(ms).toISOString()}`;
      assert.equal(formatDay(day), format.format(ms), at);
      const start = startOfDay(day);
      assert.ok(start <= ms && toDay(start) === day && toDay(start - 1) < day, at);
    }
  }
});

test('listOffsets contains each change of an offset from 2000 to 2059', () => {
  const random = seeded(20_261_102);
  for (const timeZone of zones.filter((_, i) => i % 14 === 0)) {
    const { offsetAt } = getCalendar(timeZone);
    const offsets = listOffsets(getCalendar(timeZone));
    for (const [start, offset] of offsets.slice(1))
      assert.ok(
        offsetAt(start * 1000) === offset * 1000 && offsetAt(start * 1000 - 1) !== offset * 1000,
        timeZone,
      );
    for (let i = 0; i < 12; i++) {
      const ms = draw(random, Date.UTC(2000), Date.UTC(2060));
      const offset = offsets.findLast(([start]) => start * 1000 <= ms)?.[1];
      assert.equal((offset ?? Number.NaN) * 1000, offsetAt(ms), `${timeZone} ${new Date(ms).toISOString()}`);
    }
  }
});
