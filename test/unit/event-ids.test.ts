/** How long the event ids of a learner are retained, and how many are accepted. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mapNonEmpty } from '../../src/domain/base/common.js';
import { indices } from '../../src/lists.js';
import {
  encodeFirstResult,
  entryBytes,
  hashEventId,
  type IdLedger,
  idWindowSeconds,
  listIdFields,
  maxWindowIds,
  minIdWindowSeconds,
  openIds,
  openLedger,
  resultBytes,
  toStoredIds,
} from '../../src/store/learners/event-ids.js';
import { fc, forRuns } from '../support/builders/properties.js';
import { roundsOf } from '../support/runner/long-form.js';

const noon = 1_700_481_600;
const hour = 3600;
const [newest, perMark] = [1000, 250];

let created = 0;
const freshIds = (count: number): Buffer[] =>
  Array.from({ length: count }, () => {
    created += 1;
    return hashEventId(`event ${created}`);
  });

const skill = { masteryBefore: 1, masteryAfter: 1, attempts: 1, correct: 1, plateauDetected: true };

/** A record that contains its id behind the second, which `add` writes. */
function recordOf(id: Buffer, skills: number): Buffer {
  const skillIds = indices(skills).map((i) => `skill ${i}`) as [string, ...string[]];
  const figures = { skillIds, skills: mapNonEmpty(skillIds, () => skill), advice: null };
  const record = encodeFirstResult(figures, Buffer.alloc(6, 0xff), 0);
  id.copy(record, 8);
  return record;
}

/** The id fields of one learner, as Redis stores them. @param skillsOf number of skills of an id's answer */
function createLearner(skillsOf: (id: Buffer) => number = () => 1) {
  const fields = new Map<string, Buffer>();
  const open = (ids: readonly Buffer[]) => {
    const names = listIdFields(ids);
    return openIds(
      toStoredIds(
        names,
        names.map((name) => fields.get(name) ?? null),
      ),
    );
  };
  const countFound = (ids: readonly Buffer[], second: number): number => {
    const opened = open(ids);
    const records = ids.map((id) => opened.find(id, second));
    for (const [i, record] of records.entries())
      if (record !== null) {
        assert.deepEqual(record.subarray(8, 16), ids[i], 'the record of another id');
        assert.equal(record.length, resultBytes + (skillsOf(ids[i] as Buffer) - 1) * entryBytes);
      }
    return records.filter((record) => record !== null).length;
  };
  return {
    fields,
    open,
    countFound,
    isFull: (second: number): boolean => open(freshIds(1)).isFull(second),
    /** Adds the ids of one request. */
    add: (ids: readonly Buffer[], second: number): void => {
      const opened = open(ids);
      for (const id of ids) {
        assert.equal(opened.isFull(second), false);
        opened.add(id, recordOf(id, skillsOf(id)), second);
      }
      for (const [name, value] of opened.changes()) fields.set(name, Buffer.from(value));
    },
  };
}

/** Adds new ids in requests of 1,000. */
function addMany(learner: ReturnType<typeof createLearner>, count: number, second: number): Buffer[] {
  const ids = freshIds(count);
  for (let i = 0; i < count; i += 1000) learner.add(ids.slice(i, i + 1000), second);
  return ids;
}

test('An event id is found immediately and for 24 hours, then it names a new answer', () => {
  const learner = createLearner();
  const [id, other] = freshIds(2) as [Buffer, Buffer];
  const opened = learner.open([id, other]);
  opened.add(id, recordOf(id, 1), noon);
  assert.equal(opened.find(id, noon)?.readUInt32LE(0), noon, 'before it is stored');
  assert.equal(opened.find(other, noon), null);
  learner.add([id], noon);
  const later = [0, 600, 86_399, 86_399.9, 86_400, 86_401, 1e6];
  const found = later.map((seconds) => learner.countFound([id], noon + seconds));
  assert.deepEqual(found, [1, 1, 1, 1, 0, 0, 0]);
  const again = noon + idWindowSeconds;
  learner.add([id], again);
  assert.equal(learner.open([id]).find(id, again)?.readUInt32LE(0), again);
  assert.equal(learner.countFound([id], again + idWindowSeconds - 1), 1);
  const lengths = [...learner.fields.values()].map(({ length }) => length);
  assert.deepEqual(lengths, [4, 32], 'the expired entry is removed');
});

test('The expired id of an answer with several skills is removed completely', () => {
  const learner = createLearner((id) => 1 + ((id[7] as number) % 10));
  const old = freshIds(500);
  learner.add(old, noon);
  assert.equal(learner.countFound(old, noon), 500);
  const later = noon + idWindowSeconds;
  assert.equal(learner.countFound(old, later), 0);
  const ids = freshIds(1000);
  learner.add(ids, later);
  assert.equal(learner.countFound(ids, later), 1000);
  const bytes = [...learner.fields].reduce(
    (sum, [name, value]) => sum + (name === 'n' ? 0 : value.length),
    0,
  );
  const entries = ids.reduce((sum, id) => sum + 1 + ((id[7] as number) % 10), 0);
  assert.equal(bytes, entries * entryBytes);
});

test('A learner accepts 20,000 event ids within 10 minutes, and more when these are older', () => {
  const learner = createLearner();
  const ids = addMany(learner, maxWindowIds, noon);
  for (const later of [0, 1, 599]) assert.ok(learner.isFull(noon + later), `${later} s later`);
  assert.equal(learner.countFound(ids, noon + 599), maxWindowIds);
  assert.equal(learner.isFull(noon + 600), false);
  const more = addMany(learner, maxWindowIds, noon + 600);
  assert.ok(learner.isFull(noon + 1199));
  assert.equal(learner.countFound(more, noon + 1199), maxWindowIds);
  assert.equal(learner.isFull(noon + 1200), false);
  assert.deepEqual([maxWindowIds, idWindowSeconds, minIdWindowSeconds], [20_000, 86_400, 600]);
});

test('A learner who answers every second day does not accumulate expired event ids', () => {
  const learner = createLearner();
  for (let day = 0; day < 5; day++)
    for (let i = 0; i < 20; i++) learner.add(freshIds(50), noon + 2 * day * idWindowSeconds + 60 * i);
  const bytes = [...learner.fields.values()].reduce((sum, { length }) => sum + length, 0);
  assert.ok(bytes <= 1.2 * 32 * 1000, `${bytes} bytes`);
  assert.ok((learner.fields.get('n')?.length ?? 0) <= 4 + 4 * 6);
});

test('A clock that steps back an hour removes no event id early', () => {
  for (const [before, after] of [
    [1, 1],
    [250, 250],
    [2000, 2000],
    [2000, 20],
    [1500, 300],
  ] as const) {
    const learner = createLearner();
    const all = freshIds(before + after);
    learner.add(all.slice(0, before), noon);
    assert.equal(learner.countFound(all.slice(0, before), noon - hour), before);
    learner.add(all.slice(before), noon - hour);
    for (const second of [noon - hour, noon - 1, noon + 599 - hour])
      assert.equal(learner.countFound(all, second), all.length, `${before} + ${after} at ${second - noon}`);
    const kept = all.slice(-newest);
    assert.equal(learner.countFound(kept, noon - hour + idWindowSeconds - 1), kept.length);
    assert.equal(learner.countFound(all, noon + idWindowSeconds), 0);
  }
});

test('A clock that steps back an hour makes no learner full', () => {
  const ledger = openLedger(null);
  for (const [from, until] of [
    [noon - 30_000, noon],
    [noon - hour, noon + hour],
  ] as const)
    for (let second = from; second < until; second++) {
      assert.equal(ledger.isFull(second), false, `at ${second - noon}`);
      ledger.add(second);
    }
  assert.ok(ledger.encode().length <= 4 + 4 * 20, 'the list of marks stays short');
});

/** The promises for all ids of a learner, added at seconds that never decrease. */
function promisesOf(seconds: readonly number[], now: number) {
  const last = seconds.length - 1;
  const age = (i: number): number => now - (seconds[i] as number);
  const isYoung = (i: number): boolean => age(i) < minIdWindowSeconds;
  // Only every 250th id has a mark. If 249 ids follow the last mark, the oldest retained second is that of the id
  // 1,249 places before the last; all ids of one second are retained together.
  const oldest = seconds[last - newest - perMark + 1] ?? 0;
  return {
    isKept: (i: number): boolean => isYoung(i) || (age(i) < idWindowSeconds && i > last - newest),
    isExpired: (i: number): boolean =>
      !isYoung(i) && (age(i) >= idWindowSeconds || (seconds[i] as number) < oldest),
    countYoung: () => seconds.filter((_, i) => isYoung(i)).length,
  };
}

const gaps = [0, 1, 30, 599, 600, 601, hour, idWindowSeconds - 1, idWindowSeconds];
/** `spread`: seconds between two requests. */
const stepsOf = (maxCount: number, maxLength: number) =>
  fc.array(
    fc.record({
      gap: fc.constantFrom(...gaps),
      count: fc.oneof(fc.nat(3), fc.nat(maxCount), fc.constant(maxCount)),
      spread: fc.nat(2),
    }),
    { minLength: 1, maxLength },
  );

/** 249 ids follow the last mark, and the mark 1,249 ids before the last starts a new second. */
const fullMark = [
  { gap: 0, count: 300, spread: 0 },
  { gap: 0, count: 206, spread: 1 },
  { gap: 0, count: 1178, spread: 0 },
  { gap: 601, count: 65, spread: 0 },
];

test('Event ids are retained as promised in any sequence of requests', () => {
  fc.assert(
    fc.property(stepsOf(300, 12), fc.nat(), (steps, seed) => {
      const learner = createLearner((id) => 1 + ((id[7] as number) % 4));
      const [ids, seconds] = [[] as Buffer[], [] as number[]];
      let now = noon;
      for (const { gap, count, spread } of steps) {
        now += gap;
        for (let left = count; left > 0; left -= 40, now += spread) {
          const added = freshIds(Math.min(left, 40));
          learner.add(added, now);
          ids.push(...added);
          seconds.push(...added.map(() => now));
        }
        const { isKept, isExpired } = promisesOf(seconds, now);
        for (let i = seed % 3; i < ids.length; i += 3) {
          const isFound = learner.countFound([ids[i] as Buffer], now) === 1;
          assert.ok(isFound ? !isExpired(i) : !isKept(i), `id ${i} of ${ids.length}, found: ${isFound}`);
        }
      }
    }),
    {
      numRuns: roundsOf(30, 100),
      examples: [[fullMark, 0]],
    },
  );
});

const reopen = (ledger: IdLedger): IdLedger => openLedger(Buffer.from(ledger.encode()));

test('A learner is full at 20,000 event ids in 10 minutes, and not below 19,751', () => {
  let fullCount = 0;
  forRuns(roundsOf(30, 100), stepsOf(15_000, 8), (steps) => {
    let ledger = openLedger(null);
    const seconds: number[] = [];
    let now = noon;
    for (const { gap, count, spread } of steps) {
      now += gap;
      ledger = reopen(ledger);
      for (let i = 0; i < count; i++) {
        if (i % 500 === 499) now += spread;
        if (ledger.isFull(now)) break;
        assert.equal(ledger.add(now), now);
        seconds.push(now);
      }
      const young = promisesOf(seconds, now).countYoung();
      assert.ok(ledger.encode().length <= 4 * (1 + maxWindowIds / perMark + 2), 'the ledger has few marks');
      assert.ok(young <= maxWindowIds, `${young} ids are accepted`);
      if (!ledger.isFull(now)) continue;
      fullCount += 1;
      assert.ok(young > maxWindowIds - perMark, `full with ${young} ids`);
    }
  });
  assert.ok(fullCount > 0);
});
