import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeAttemptRow } from '../../src/contracts/attempt-row.js';
import { decodeAttemptRow } from '../../src/contracts/attempt-row-reader.js';
import { unfittedModel } from '../../src/domain/catalogue/tenant-model.js';
import { takeBaseline } from '../../src/domain/history/baseline.js';
import { type Replay, type ReplayedStates, startReplay } from '../../src/domain/history/replay.js';
import { totalsSince } from '../../src/domain/score/goal.js';
import { encodeLearner, encodeSkill } from '../../src/store/learners/learner-codec.js';
import { attemptRow } from '../support/attempt-rows.js';

/** As ClickHouse gives rows of version 1 of the service: behind the version of the model, what the columns start with. */
const firstVersion = (seq: number): string =>
  `default\tada\ts\\\\1\t\te${seq}\t${seq % 2}\t30\t\\N\t0.5\t1768478400.250\t1768478401.000\t${seq}\t0.3\t0.69\t0.41\t0\t0.3\t0.1\t0.2\t0.1\t0\t1\tdefault\t0\t0\t0\t0\t0\t0\t0\t\\N\t\t\t1\t\\N\t\\N\t0\t0`;

const encoded = (
  seq: number,
  learnerVersion: number,
  told: { readonly modelVersion?: number; readonly baselineTotal?: number } = {},
): string => {
  const row = attemptRow(0, { learnerSeq: seq, learnerVersion, itemId: `item-${seq % 3}`, ...told });
  return encodeAttemptRow(row, row, row);
};

test('a row of the first version is read with what the columns start with', () => {
  const { event, figures, conditions } = decodeAttemptRow(firstVersion(1));
  assert.equal(event.skillId, 's\\1');
  assert.deepEqual([event.itemId, event.confidenceScore, event.isCorrect], [null, null, true]);
  assert.deepEqual([event.occurredAt, event.receivedAt], [1_768_478_400_250, 1_768_478_401_000]);
  assert.deepEqual([figures.eventFingerprint, figures.learnerVersion, figures.baselineTotal], [0, 0, null]);
  assert.deepEqual([conditions.source, conditions.section, conditions.weight], ['default', null, 1]);
});

test('rows of the first version replay with what holds without measured times', () => {
  const replay = startReplay();
  for (let seq = 1; seq <= 20; seq++) replay.add(decodeAttemptRow(firstVersion(seq)));
  const { learner, skills } = replay.states();
  const skill = skills.get('s\\1');
  assert.deepEqual([learner.attempts, learner.version, replay.missing()], [20, 20, 0]);
  assert.ok(skill);
  assert.ok(Number.isFinite(skill.pace.efficiency), `${skill.pace.efficiency}`);
  assert.equal(skill.pace.timed, 20);
});

test('a missing row is told, and its number is not given again', () => {
  const replay = startReplay();
  for (const seq of [1, 2, 5]) replay.add(decodeAttemptRow(encoded(seq, seq)));
  assert.equal(replay.missing(), 2);
  assert.equal(replay.states().learner.attempts, 5);
});

test('a replay goes on from states as if it had never stopped', () => {
  const whole = startReplay();
  const first = startReplay();
  for (let seq = 1; seq <= 30; seq++) whole.add(decodeAttemptRow(encoded(seq, seq)));
  for (let seq = 1; seq <= 12; seq++) first.add(decodeAttemptRow(encoded(seq, seq)));
  const second = startReplay(first.states());
  for (let seq = 13; seq <= 30; seq++) second.add(decodeAttemptRow(encoded(seq, seq)));
  const [one, two] = [whole.states(), second.states()];
  assert.deepEqual(encodeLearner(two.learner), encodeLearner(one.learner));
  assert.deepEqual([...two.skills.values()].map(encodeSkill), [...one.skills.values()].map(encodeSkill));
  assert.deepEqual(two.items, one.items);
});

test('a baseline of earlier formulas does not count; the one that was taken since does when it is due', () => {
  const older = { modelVersion: totalsSince - 1, baselineTotal: 1600 };
  const replayed = (rows: number, taken: number | null, from: ReplayedStates | null = null) => {
    const replay = startReplay(from, taken);
    const first = replay.learner().attempts;
    for (let seq = first + 1; seq <= first + rows; seq++)
      replay.add(decodeAttemptRow(encoded(seq, seq, older)));
    return replay;
  };
  const baselineOf = ({ learner }: Replay): number | null => learner().baselineTotal;
  assert.deepEqual(
    [19, 20, 25].map((rows) => baselineOf(replayed(rows, 1010))),
    [null, 1010, 1010],
  );
  const untold = replayed(25, null);
  assert.equal(baselineOf(untold), null);
  assert.equal(baselineOf(startReplay(untold.states(), 1010)), 1010, 'a snapshot of them');
  const context = { model: unfittedModel, knownSkills: 1 };
  const total = takeBaseline(untold, Date.UTC(2026, 0, 15), context);
  assert.ok(total !== null && total >= 400 && total < 1600, `${total}`);
  assert.equal(takeBaseline(untold, Date.UTC(2026, 0, 15), context), null, 'once');
  assert.equal(baselineOf(replayed(5, 990, untold.states())), total, 'it stays');
  untold.add(decodeAttemptRow(encoded(26, 26, { modelVersion: totalsSince, baselineTotal: 1200 })));
  assert.equal(baselineOf(untold), 1200, 'a row of today tells it');
});

test('what is no row is refused', () => {
  assert.throws(() => decodeAttemptRow('a\tb'), /2 fields/);
  assert.throws(() => decodeAttemptRow(`${encoded(1, 1)}\t1`), /fields/);
  assert.throws(() => decodeAttemptRow(firstVersion(1).replace('0.69', 'x')), /mastery_after/);
});
