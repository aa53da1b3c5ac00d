import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeAttemptRow, encodeAttemptRow } from '../../src/contracts/answers/attempt-row.js';
import { mapNonEmpty } from '../../src/domain/base/common.js';
import { unfittedModel } from '../../src/domain/catalogue/tenant-model.js';
import { setDueBaseline, startReplay } from '../../src/domain/history/replay.js';
import { encodeLearner } from '../../src/store/learners/learner-codec.js';
import { encodeSkill } from '../../src/store/learners/skill-codec.js';
import { anyId, anyParameters, between, listOf } from '../support/builders/arbitraries.js';
import { attemptRow, encoded as encodedRow, rowParts } from '../support/builders/attempt-rows.js';
import { fc, forAll } from '../support/builders/properties.js';

/** A row of ClickHouse in which every optional column is empty. */
const sparse = (seq: number): string =>
  `default\tada\ts\\\\1\t\te${seq}\t${seq % 2}\t30\t\\N\t0.5\t1768478400.250\t1768478401.000\t${seq}\t0.3\t0.69\t0.41\t0\t0.3\t0.1\t0.2\t0.1\t0\t0\t1\tdefault\t0\t0\t0\t0\t0\t0\t0.75\t0\t\\N\t\t\t1\t\\N\t\\N\t0\t0\t[]\t2026-01-15\tEurope/Paris`;

const encoded = (seq: number, learnerVersion: number, baselineTotal: number | null = null): string => {
  const figures = { learnerSeq: seq, learnerVersion, baselineTotal };
  const row = attemptRow(0, { ...figures, itemId: `item-${seq % 3}` });
  return encodedRow(row);
};

test('decodeAttemptRow returns null for missing values', () => {
  const { event, figures, conditions } = decodeAttemptRow(sparse(1));
  assert.deepEqual(event.skillIds, ['s\\1']);
  assert.deepEqual([event.itemId, event.confidenceScore, event.isCorrect], [null, null, true]);
  assert.deepEqual([event.occurredAt, event.receivedAt], [1_768_478_400_250, 1_768_478_401_000]);
  assert.deepEqual([figures.eventFingerprint, figures.learnerVersion, figures.baselineTotal], [0, 0, null]);
  assert.deepEqual(
    [conditions.skills[0].source, conditions.section, conditions.weight],
    ['default', null, 1],
  );
  assert.deepEqual([conditions.localDay, conditions.timeZone], [20_468, 'Europe/Paris']);
});

const addRows = (replay: ReturnType<typeof startReplay>, from: number, to: number): void => {
  for (let seq = from; seq <= to; seq++) replay.add(decodeAttemptRow(encoded(seq, seq)));
};

test('A replay counts missing rows and does not reuse their numbers', () => {
  const replay = startReplay();
  for (const seq of [1, 2, 5]) replay.add(decodeAttemptRow(encoded(seq, seq)));
  assert.equal(replay.missing(), 2);
  assert.equal(replay.states().learner.attempts, 5);
});

test('A replay that starts from states equals one from the first row', () => {
  const whole = startReplay();
  const first = startReplay();
  addRows(whole, 1, 30);
  addRows(first, 1, 12);
  const second = startReplay(first.states());
  addRows(second, 13, 30);
  const [one, two] = [whole.states(), second.states()];
  assert.deepEqual(encodeLearner(two.learner), encodeLearner(one.learner));
  assert.deepEqual([...two.skills.values()].map(encodeSkill), [...one.skills.values()].map(encodeSkill));
  assert.deepEqual(two.items, one.items);
});

test('A replay takes the baseline of the rows, or sets a due one once', () => {
  const replay = startReplay();
  const baseline = (): number | null => replay.learner().baselineTotal;
  const context = { model: unfittedModel, registeredSkills: 1 };
  addRows(replay, 1, 19);
  setDueBaseline(replay, Date.UTC(2026, 0, 15), context);
  assert.equal(baseline(), null);
  replay.add(decodeAttemptRow(encoded(20, 20)));
  setDueBaseline(replay, Date.UTC(2026, 0, 15), context);
  const total = baseline();
  assert.ok(total !== null && total >= 400 && total < 1600, `${total}`);
  setDueBaseline(replay, Date.UTC(2027, 0, 15), { ...context, registeredSkills: 100 });
  assert.equal(baseline(), total, 'the baseline was set again');
  replay.add(decodeAttemptRow(encoded(21, 21, 1200)));
  assert.equal(baseline(), 1200);
});

test('decodeAttemptRow rejects a row with a wrong field or number of fields', () => {
  assert.throws(() => decodeAttemptRow('a\tb'), /2 fields/);
  assert.throws(() => decodeAttemptRow(`${encoded(1, 1)}\t1`), /fields/);
  assert.throws(() => decodeAttemptRow(encoded(1, 1).replace('[]', "[('a',0.3)]")), /2 values/);
  assert.throws(() => decodeAttemptRow(sparse(1).replace('0.69', 'x')), /mastery_after/);
  assert.throws(() => decodeAttemptRow(sparse(1).replace('2026-01-15', 'today')), /local_date/);
});

const oddIds = [
  "it's",
  '\\',
  "\\'",
  "'",
  '),(',
  "'),('",
  '[',
  ']',
  ',',
  "','",
  '\u2028',
  '🙂',
  '\\N',
  'NULL',
  '""',
];

test('An attempt row returns the encoded skills, with any characters in their ids', () => {
  const id = fc.oneof(anyId, fc.constantFrom(...oddIds));
  const ids = fc.uniqueArray(id, { minLength: 1, maxLength: 10 });
  const figures = fc
    .tuple(between(0, 1), fc.constantFrom(0.999, 1e-7, 5e-324, 1 / 3), fc.boolean())
    .map(([masteryBefore, masteryAfter, plateauDetected]) => ({
      masteryBefore,
      masteryAfter,
      plateauDetected,
    }));
  const conditions = fc
    .tuple(anyParameters, fc.nat(), fc.constantFrom('default', 'prior', 'fitted', 'manual'))
    .map(([parameters, version, source]) => ({ parameters: { ...parameters }, version, source }));
  const skill = fc.tuple(figures, conditions);
  forAll(ids, listOf(skill, 10, 10), ([first = 'first', ...others], drawn) => {
    const { event, ...parts } = rowParts(attemptRow(1));
    const skills = drawn.slice(0, others.length + 1) as [(typeof drawn)[0], ...(typeof drawn)[0][]];
    const row = {
      event: { ...event, skillIds: [first, ...others] as const },
      figures: { ...parts.figures, skills: mapNonEmpty(skills, ([own]) => own) },
      conditions: { ...parts.conditions, skills: mapNonEmpty(skills, ([, own]) => own) },
    };
    const line = encodeAttemptRow(row.event, row.figures, row.conditions);
    const decoded = decodeAttemptRow(line);
    assert.deepEqual(decoded.event.skillIds, row.event.skillIds);
    assert.deepEqual(decoded.figures.skills, row.figures.skills);
    assert.deepEqual(decoded.conditions.skills, row.conditions.skills);
    assert.equal(encodeAttemptRow(decoded.event, decoded.figures, decoded.conditions), line);
  });
});
