import assert from 'node:assert/strict';
import { test } from 'node:test';
import { adviceTexts, locales } from '../../src/domain/advice/advice-texts.js';

const largest = 65_534;

for (const locale of locales) {
  test(`texts leave room for names, and those without fit: ${locale}`, () => {
    const { answer, study } = adviceTexts[locale];
    const shared = [answer, study].flatMap((of) => [
      of.PLATEAU('', largest),
      of.OVERCONFIDENT('', largest),
      of.RAPID('', largest),
      of.REVIEW_DUE('', largest),
      of.UNDERCONFIDENT(''),
      of.READY('', ''),
    ]);
    const weak = [true, false].flatMap((isTop) =>
      [null, largest].map((points) => study.WEAK_SKILL('', { section: 'rw', isTop, points })),
    );
    for (const text of [...shared, ...weak, study.SLOW(''), study.EXPLORE('', 'rw')]) {
      assert.ok(text.length <= 140 && text.endsWith('.'), text);
    }
    const goal = { targetScore: 1600, targetDate: '2026-06-01', neededRate: largest, isLost: true };
    for (const text of [
      study.NO_SECTION('math', 'rw'),
      study.NO_SECTION('rw', 'math'),
      study.GOAL_GAP(goal),
    ]) {
      assert.ok(text.length <= 200 && text.endsWith('.'), text);
    }
  });
}
