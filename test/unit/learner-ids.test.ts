/** Event ids of a learner: how long they are remembered, how many are taken, and that storing them loses nothing. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  hashEventId,
  type IdFields,
  type IdLedger,
  idWindowSeconds,
  type LearnerIds,
  listIdFields,
  maxWindowIds,
  minIdWindowSeconds,
  openIds,
  openLedger,
  resultBytes,
  toStoredIds,
} from '../../src/store/learners/event-ids.js';
import { fc } from '../support/builders/properties.js';

/** A Monday at noon, away from any boundary. */
const noon = 1_700_481_600;
const hour = 3600;
const [newest, perMark] = [1000, 250];

/** The fields of one learner, as Redis has them. */
function createFields() {
  const fields = new Map<string, Buffer>();
  return {
    fields,
    /** With what a batch of these ids asks for, and nothing else. */
    open: (ids: readonly Buffer[]): LearnerIds => {
      const asked = listIdFields(ids);
      return openIds(
        toStoredIds(
          asked,
          asked.map((field) => fields.get(field) ?? null),
        ),
      );
    },
    save: (changes: IdFields): void => {
      for (const [field, value] of changes) fields.set(field, Buffer.from(value));
    },
  };
}

type Fields = ReturnType<typeof createFields>;

/** A record that tells its id, and leads with a second that `take` sets. */
function answerOf(id: Buffer): Buffer {
  const answer = Buffer.alloc(resultBytes, 0xa5);
  id.copy(answer, 8);
  return answer;
}

let made = 0;
const freshIds = (count: number): Buffer[] =>
  Array.from({ length: count }, () => {
    made += 1;
    return hashEventId(`event ${made}`);
  });

/** Takes ids of one request. */
function takeAll(fields: Fields, ids: readonly Buffer[], second: number): void {
  const opened = fields.open(ids);
  for (const id of ids) {
    assert.equal(opened.isFull(second), false);
    opened.add(id, answerOf(id), second);
  }
  fields.save(opened.changes());
}

function isFound(fields: Fields, id: Buffer, second: number): boolean {
  const record = fields.open([id]).find(id, second);
  if (record === null) return false;
  assert.equal(record.length, resultBytes);
  assert.deepEqual(record.subarray(8, 16), id, 'it is the record of another');
  return true;
}

const countFound = (fields: Fields, ids: readonly Buffer[], second: number): number =>
  ids.filter((id) => isFound(fields, id, second)).length;

test('without ids nothing is asked for, and nothing is written', () => {
  const fields = createFields();
  assert.deepEqual(listIdFields([]), []);
  assert.deepEqual(fields.open([]).changes(), []);
  const [id] = freshIds(1) as [Buffer];
  const opened = fields.open([id]);
  assert.equal(opened.find(id, noon), null);
  assert.deepEqual(opened.changes(), [], 'looking is no change');
});

test('an id is found at once, from its second on for 24 hours, and not in the next second', () => {
  const fields = createFields();
  const [id, other] = freshIds(2) as [Buffer, Buffer];
  const opened = fields.open([id, other]);
  opened.add(id, answerOf(id), noon);
  assert.equal(opened.find(id, noon)?.readUInt32LE(0), noon, 'before it is stored');
  assert.equal(opened.find(other, noon), null);
  fields.save(opened.changes());
  const found = [0, 600, 86_399, 86_399.9, 86_400, 86_401, 1e6].map((later) =>
    isFound(fields, id, noon + later),
  );
  assert.deepEqual(found, [true, true, true, true, false, false, false]);
  assert.equal(idWindowSeconds, 86_400);
});

test('an id past its window names a new answer, which is found instead of the old one', () => {
  const fields = createFields();
  const [id] = freshIds(1) as [Buffer];
  takeAll(fields, [id], noon);
  const opened = fields.open([id]);
  const again = noon + idWindowSeconds;
  assert.equal(opened.find(id, again), null);
  opened.add(id, answerOf(id), again);
  assert.equal(opened.find(id, again)?.readUInt32LE(0), again);
  fields.save(opened.changes());
  assert.ok(isFound(fields, id, again + idWindowSeconds - 1));
  assert.equal(fields.fields.size, 2);
  assert.deepEqual(
    [...fields.fields.values()].map(({ length }) => length),
    [4, 32],
    'the entry that is over is gone',
  );
});

test('midnight means nothing', () => {
  const fields = createFields();
  const midnight = Date.UTC(2026, 0, 16) / 1000;
  const [before, after] = freshIds(2) as [Buffer, Buffer];
  takeAll(fields, [before], midnight - 1);
  takeAll(fields, [after], midnight);
  for (const second of [midnight, midnight + 1, midnight + idWindowSeconds - 2])
    assert.equal(countFound(fields, [before, after], second), 2);
  assert.equal(countFound(fields, [before, after], midnight + idWindowSeconds - 1), 1);
});

test('of very many the newest 1,000 are remembered, and all for 10 minutes', () => {
  const fields = createFields();
  const ids = freshIds(10 * newest);
  // Ten ids a second.
  for (let i = 0; i < ids.length; i += 10) takeAll(fields, ids.slice(i, i + 10), noon + i / 10);
  const last = noon + ids.length / 10 - 1;
  const young = 10 * (minIdWindowSeconds - 1);
  assert.equal(countFound(fields, ids.slice(-young), last), young, 'within 10 minutes');
  assert.equal(countFound(fields, ids.slice(0, -young - 10), last), 0, 'older, and not of the newest');
  for (const second of [last + 600, last + hour, last + idWindowSeconds - 100]) {
    assert.equal(countFound(fields, ids.slice(-newest), second), newest);
    assert.equal(countFound(fields, ids.slice(0, -newest - perMark - 10), second), 0);
  }
  assert.equal(countFound(fields, ids, last + idWindowSeconds), 0);
});

test('a learner of 1,000 ids a day or fewer keeps them for the whole day', () => {
  const fields = createFields();
  const ids = freshIds(3 * newest);
  const gap = Math.ceil(idWindowSeconds / newest);
  ids.forEach((id, i) => {
    takeAll(fields, [id], noon + gap * i);
  });
  const last = noon + gap * (ids.length - 1);
  const within = Math.floor((idWindowSeconds - 1) / gap) + 1;
  assert.equal(countFound(fields, ids.slice(-within), last), within);
  assert.equal(countFound(fields, ids, last), within);
});

test('20,000 ids are taken within 10 minutes, and there is room again when these are over', () => {
  const fields = createFields();
  const ids = freshIds(maxWindowIds);
  const isFull = (second: number): boolean => fields.open(freshIds(1)).isFull(second);
  const perRequest = 1000;
  for (let i = 0; i < maxWindowIds; i += perRequest) takeAll(fields, ids.slice(i, i + perRequest), noon);
  for (const later of [0, 1, 599]) assert.ok(isFull(noon + later), `${later} s later`);
  assert.equal(countFound(fields, ids, noon + 599), maxWindowIds, 'none is forgotten meanwhile');
  assert.equal(isFull(noon + 600), false);
  const more = freshIds(maxWindowIds);
  for (let i = 0; i < maxWindowIds; i += perRequest)
    takeAll(fields, more.slice(i, i + perRequest), noon + 600);
  assert.ok(isFull(noon + 1199));
  assert.equal(countFound(fields, more, noon + 1199), maxWindowIds);
  assert.equal(isFull(noon + 1200), false);
  assert.equal(maxWindowIds, 20_000);
});

test('what is over goes when its bucket is written, so that a learner who goes on takes no more and more', () => {
  const fields = createFields();
  for (let day = 0; day < 5; day++)
    for (let i = 0; i < 20; i++) takeAll(fields, freshIds(50), noon + 2 * day * idWindowSeconds + 60 * i);
  const bytes = [...fields.fields.values()].reduce((sum, { length }) => sum + length, 0);
  assert.ok(bytes <= 1.2 * 32 * 1000, `${bytes} bytes`);
  assert.ok((fields.fields.get('n')?.length ?? 0) <= 4 + 4 * 6);
});

test('a clock that steps back an hour makes nothing forgotten early', () => {
  const counts = [1, 249, 250, 2000].map((count) => [count, count]);
  for (const [before = 0, after = 0] of [...counts, [2000, 20], [1500, 300]]) {
    const fields = createFields();
    const ids = freshIds(before);
    takeAll(fields, ids, noon);
    assert.equal(countFound(fields, ids, noon - hour), before);
    const later = freshIds(after);
    takeAll(fields, later, noon - hour);
    const all = [...ids, ...later];
    for (const second of [noon - hour, noon - hour + 599, noon - 1, noon + 1, noon + 599 - hour])
      assert.equal(countFound(fields, all, second), all.length, `${before} and ${after} at ${second - noon}`);
    const kept = all.slice(-newest);
    assert.equal(countFound(fields, kept, noon - hour + idWindowSeconds - 1), kept.length);
    assert.equal(countFound(fields, all, noon + idWindowSeconds), 0, 'but over in the end');
  }
});

test('a clock that steps back an hour makes nobody full', () => {
  const ledger = openLedger(null);
  const counted = (seconds: number, from: number): void => {
    for (let i = 0; i < seconds; i++) {
      assert.equal(ledger.isFull(from + i), false, `after ${i} s`);
      ledger.add(from + i);
    }
  };
  counted(30_000, noon - 30_000);
  counted(2 * hour, noon - hour);
  assert.ok(ledger.encode().length <= 4 + 4 * 20, 'no long list of marks is left');
});

test('a clock that was an hour ahead fills nobody, and what came then is remembered', () => {
  const fields = createFields();
  const ahead = freshIds(500);
  takeAll(fields, ahead, noon + hour);
  const ids = freshIds(500);
  takeAll(fields, ids, noon);
  assert.equal(countFound(fields, [...ahead, ...ids], noon + idWindowSeconds - 1), 1000);
});

/** What is promised, by all ids of a learner in the order in which they came, at seconds that never step back. */
function promisesOf(seconds: readonly number[], now: number) {
  const last = seconds.length - 1;
  const age = (i: number): number => now - (seconds[i] as number);
  const isYoung = (i: number): boolean => age(i) < minIdWindowSeconds;
  // Ids of one second are remembered together. The time is noted at every 250th id only: with 249 ids after the last
  // such id, the oldest remembered second is that of the id 1,249 places before the last.
  const surely = seconds[last - newest - perMark + 1] ?? 0;
  return {
    isKept: (i: number): boolean => isYoung(i) || (age(i) < idWindowSeconds && i > last - newest),
    isForgotten: (i: number): boolean =>
      !isYoung(i) && (age(i) >= idWindowSeconds || (seconds[i] as number) < surely),
    within: seconds.filter((_, i) => isYoung(i)).length,
  };
}

const gaps = [0, 1, 30, 599, 600, 601, hour, idWindowSeconds - 1, idWindowSeconds];
const stepsOf = (most: number, maxLength: number) =>
  fc.array(
    fc.record({
      gap: fc.constantFrom(...gaps),
      count: fc.oneof(fc.nat(3), fc.nat(most), fc.constant(most)),
      /** Seconds between one request and the next. */
      spread: fc.nat(2),
    }),
    { minLength: 1, maxLength },
  );

test('whatever is taken whenever is remembered as promised, through every write', () => {
  fc.assert(
    fc.property(stepsOf(300, 12), fc.nat(), (steps, seed) => {
      const fields = createFields();
      const [ids, seconds] = [[] as Buffer[], [] as number[]];
      let now = noon;
      for (const { gap, count, spread } of steps) {
        now += gap;
        for (let left = count; left > 0; left -= 40, now += spread) {
          const taken = freshIds(Math.min(left, 40));
          takeAll(fields, taken, now);
          ids.push(...taken);
          seconds.push(...taken.map(() => now));
        }
        const { isKept, isForgotten } = promisesOf(seconds, now);
        for (let i = seed % 3; i < ids.length; i += 3) {
          const found = isFound(fields, ids[i] as Buffer, now);
          assert.ok(found ? !isForgotten(i) : !isKept(i), `id ${i} of ${ids.length}, found: ${found}`);
        }
      }
    }),
    {
      numRuns: 60,
      examples: [
        // 249 ids follow the last mark, and a new second begins right after the mark 1,249 ids before the last.
        [
          [
            { gap: 0, count: 300, spread: 0 },
            { gap: 0, count: 206, spread: 1 },
            { gap: 0, count: 1178, spread: 0 },
            { gap: 601, count: 65, spread: 0 },
          ],
          0,
        ],
      ],
    },
  );
});

/** As it is stored and read again. */
const reopened = (ledger: IdLedger): IdLedger => openLedger(Buffer.from(ledger.encode()));

test('a learner is full from 20,000 ids in 10 minutes on, and not before 19,751', () => {
  let full = 0;
  fc.assert(
    fc.property(stepsOf(15_000, 8), (steps) => {
      let ledger = openLedger(null);
      const seconds: number[] = [];
      let now = noon;
      for (const { gap, count, spread } of steps) {
        now += gap;
        ledger = reopened(ledger);
        for (let i = 0; i < count; i++) {
          if (i % 500 === 499) now += spread;
          if (ledger.isFull(now)) break;
          assert.equal(ledger.add(now), now);
          seconds.push(now);
        }
        const { within } = promisesOf(seconds, now);
        assert.ok(ledger.encode().length <= 4 * (1 + maxWindowIds / perMark + 2), 'few marks');
        assert.ok(within <= maxWindowIds, `${within} are taken`);
        if (!ledger.isFull(now)) continue;
        full += 1;
        assert.ok(within > maxWindowIds - perMark, `full with ${within}`);
      }
    }),
    { numRuns: 60 },
  );
  assert.ok(full > 0);
});
