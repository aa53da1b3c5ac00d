/** First results of event ids, and the fingerprint of an event. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TrackEvent } from '../../src/contracts/answers/track-task.js';
import { adviceCodes } from '../../src/domain/advice/answer-advice.js';
import { mapNonEmpty } from '../../src/domain/base/common.js';
import {
  computeFingerprint,
  decodeFirstResult,
  encodeFirstResult,
  entryBytes,
  fingerprintFromNumber,
  fingerprintToNumber,
  resultBytes,
} from '../../src/store/learners/event-ids.js';
import { hashText } from '../../src/store/redis/wire/binary.js';
import { anyId, listOf } from '../support/builders/arbitraries.js';
import { fc, forAll } from '../support/builders/properties.js';

const anyMastery = fc.nat(10_000).map((step) => step / 10_000);
const anyCount = fc.oneof(fc.nat(300), fc.nat(2 ** 24 - 1));
const anySkill = fc
  .tuple(anyMastery, anyMastery, anyCount, anyCount, fc.boolean())
  .map(([masteryBefore, masteryAfter, attempts, correct, plateauDetected]) => ({
    ...{ masteryBefore, masteryAfter, attempts, correct, plateauDetected },
  }));
const distinctIds = fc
  .uniqueArray(anyId, { minLength: 1, maxLength: 10 })
  .map((ids) => ids as [string, ...string[]]);

test('decodeFirstResult returns the first result in its order, for the skills in any order', () => {
  const anyAdvice = fc.option(
    fc.tuple(fc.nat(9), fc.constantFrom(...adviceCodes), fc.array(fc.nat(65_534), { maxLength: 1 })),
  );
  forAll(distinctIds, listOf(anySkill, 10, 10), anyAdvice, fc.nat(), (skillIds, drawn, advised, seed) => {
    const advice = advised && { skill: advised[0] % skillIds.length, code: advised[1], figures: advised[2] };
    const figures = { skillIds, skills: mapNonEmpty(skillIds, (_, i) => drawn[i] ?? drawn[0]), advice };
    const fingerprint = fingerprintFromNumber(seed);
    const record = encodeFirstResult(figures, fingerprint, 1_700_000_000_999);
    assert.equal(record.length, resultBytes + (skillIds.length - 1) * entryBytes);
    assert.equal(record.readUInt32LE(0), 1_700_000_000);
    for (const order of [skillIds, skillIds.toReversed(), skillIds.toSorted()])
      assert.deepEqual(decodeFirstResult(record, order as [string, ...string[]]), {
        ...figures,
        fingerprint,
      });
    assert.equal(fingerprintToNumber(fingerprint), seed);
  });
});

test('decodeFirstResult of another event with the id returns its fingerprint', () => {
  const skills = mapNonEmpty(['b', 'c', 'a'], () => ({
    ...{ masteryBefore: 0.3, masteryAfter: 0.4, attempts: 1, correct: 1, plateauDetected: false },
  }));
  const figures = { skillIds: ['b', 'c', 'a'] as const, skills, advice: null };
  const record = encodeFirstResult(figures, fingerprintFromNumber(7), 0);
  for (const ids of [['x'], ['x', 'y', 'z', 'w']] as [string, ...string[]][])
    assert.equal(fingerprintToNumber(decodeFirstResult(record, ids).fingerprint), 7);
});

const event: TrackEvent = {
  ...{ tenant: 't', userId: 'u', skillIds: ['a'], listsSkills: false, itemId: 'i', eventId: 'e' },
  ...{ isCorrect: true, timeSpentSeconds: 4, confidenceScore: null, questionDifficulty: 0.5 },
  ...{ occurredAt: 0, occurredAtText: null, receivedAt: 0, importLine: null },
};

test('computeFingerprint depends on the set of skills, not on their order or on the field that lists them', () => {
  const of = (...skillIds: [string, ...string[]]): string =>
    computeFingerprint({ ...event, skillIds }).toString('hex');
  assert.equal(of('a'), computeFingerprint({ ...event, listsSkills: true }).toString('hex'));
  // As in earlier versions.
  assert.equal(of('a'), hashText('true 4 null 0.5 null\0a\0i').toString('hex', 0, 6));
  const timed = computeFingerprint({ ...event, occurredAtText: '2020-01-01T00:00:00Z' });
  assert.equal(
    timed.toString('hex'),
    hashText('true 4 null 0.5 2020-01-01T00:00:00Z\0a\0i').toString('hex', 0, 6),
  );
  assert.equal(of('a', 'b', 'c'), of('c', 'a', 'b'));
  const different = [of('a'), of('b'), of('a', 'b'), of('ab'), of('a b'), of('a,b'), of('a', 'b', 'c')];
  assert.equal(new Set(different).size, different.length);
});
