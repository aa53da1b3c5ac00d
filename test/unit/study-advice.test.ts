import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildStudyAdvice } from '../../src/domain/advice/study-advice.js';
import { dayMs } from '../../src/domain/base/common.js';
import type { SkillState } from '../../src/domain/tracing/learner-states.js';
import { allIn, mastered, modelWith, now, studyContext, viewsOf } from '../support/builders/study.js';

const plateau = { plateau: { attempts: 30, sum: 3, timeSum: 0, squareSum: 1, run: 3 } };
const over = { calibration: { answers: 10, biasTenths: 46, squaredHundredths: 300 } };
const under = { calibration: { answers: 10, biasTenths: -46, squaredHundredths: 300 } };
const rapid = { rapid: { answers: 9, recent: 0b11_1111, recentTimed: 20 } };
const faded = { mastery: 0.9, lastAttemptAt: now - 60 * dayMs };
const slow = { pace: { timed: 10, timedCorrect: 8, seconds: 2000, slowness: 1, accuracy: 0.6 } };
const weak = { mastery: 0.4 };

type Part = Partial<Omit<Parameters<typeof studyContext>[0], 'views'>>;

const advise = (states: Record<string, Partial<SkillState>>, part: Part = {}) =>
  buildStudyAdvice(studyContext({ views: viewsOf(states, part.model), ...part }));

/** All that is said of one skill `a` beside a plain one of the other section. */
const adviseOne = (state: Partial<SkillState>, part: Part = {}) => {
  const model = modelWith({ a: { section: 'math' }, other: { section: 'rw' } });
  return advise({ a: state, other: {} }, { model, ...part });
};

const rules: readonly [state: Partial<SkillState>, code: string, text: string][] = [
  [
    plateau,
    'PLATEAU',
    'Change approach on a: 20 recent attempts brought little progress. Study a worked example, then try easier questions.',
  ],
  [over, 'OVERCONFIDENT', 'Slow down on a: your confidence is 46 percentage points ahead of your accuracy.'],
  [rapid, 'RAPID', 'Take more time on a: many answers came in under 3 s.'],
  [faded, 'REVIEW_DUE', 'Review a: it was strong but has not been practised for 60 days.'],
  [slow, 'SLOW', 'Practise a against the clock: accurate, but slower than typical.'],
  [weak, 'WEAK_SKILL', 'Focus on a (Math): highest expected gain, about 2 points per hour.'],
  [under, 'UNDERCONFIDENT', 'Trust your work on a: accuracy exceeds your confidence.'],
];

for (const [state, code, text] of rules) {
  test(`advice on one skill: ${code}`, () => {
    assert.deepEqual(adviseOne(state), [{ code, skillId: 'a', text }]);
  });
}

test('a skill without any of it gets no advice', () => {
  assert.deepEqual(adviseOne({}), []);
  assert.deepEqual(advise({}), []);
});

test('conditions end where they should', () => {
  const almost: readonly Partial<SkillState>[] = [
    { plateau: { ...plateau.plateau, run: 2 } },
    { calibration: { ...over.calibration, answers: 9 } },
    { rapid: { ...rapid.rapid, recent: 0b1_1111 } },
    { mastery: 0.79, lastAttemptAt: now - 60 * dayMs, attempts: 4 },
    { pace: { ...slow.pace, timed: 9 } },
    { pace: { ...slow.pace, slowness: 0.99 } },
    { pace: { ...slow.pace, accuracy: 0.59 } },
    { ...slow, mastery: 0.69 },
    { mastery: 0.6 },
    { ...weak, attempts: 4 },
  ];
  for (const state of almost) assert.deepEqual(adviseOne(state), [], JSON.stringify(state));
});

test('five attempts are enough to call a skill weak', () => {
  assert.equal(adviseOne({ ...weak, attempts: 5 })[0]?.code, 'WEAK_SKILL');
});

test('of several on one skill the most urgent', () => {
  const told = [plateau, over, rapid, faded, weak].map((_, i, all) => {
    const [first] = adviseOne(Object.assign({}, ...[...all.slice(i)].reverse()));
    return first?.code;
  });
  assert.deepEqual(told, ['PLATEAU', 'OVERCONFIDENT', 'RAPID', 'REVIEW_DUE', 'WEAK_SKILL']);
  assert.equal(adviseOne({ ...weak, ...under })[0]?.code, 'WEAK_SKILL');
  assert.equal(adviseOne({ ...slow, ...under })[0]?.code, 'SLOW');
});

test('of a skill without a section no section is told, and of few answers no points', () => {
  const text = (part: Part) => adviseOne(weak, part)[0]?.text;
  const unmapped = modelWith({ other: { section: 'rw' } });
  assert.match(
    text({ model: unmapped }) ?? '',
    /^Focus on a: highest expected gain, about \d+ points? per hour\.$/,
  );
  assert.equal(text({ answers: { math: 19.5, rw: 100 } }), 'Focus on a (Math): highest expected gain.');
  const few = { math: 100, rw: 19.5 };
  assert.match(text({ answers: few }) ?? '', /point/);
  assert.equal(text({ answers: few, model: unmapped }), 'Focus on a: highest expected gain.');
  const light = { ...allIn('math', 'a', 'b'), b: { section: 'math', weight: 1000 } } as const;
  assert.equal(
    advise({ a: weak, b: {} }, { model: modelWith(light) }).at(-1)?.text,
    'Focus on a (Math): mastery is still low.',
    'no whole point',
  );
});

test('of several weak skills one has the highest gain, and the others say their own', () => {
  const model = modelWith(allIn('math', 'a', 'b', 'c', 'd'));
  const told = (more: Record<string, Partial<SkillState>>) =>
    advise({ a: weak, b: { mastery: 0.2 }, c: { mastery: 0.5 }, ...more }, { model })
      .map(({ text }) => text)
      .filter((text) => text.startsWith('Focus'));
  const [first, ...others] = told({ d: faded });
  assert.match(first ?? '', /^Focus on b \(Math\): highest expected gain, about \d+ points? per hour\.$/);
  assert.equal(others.length, 2);
  for (const other of others) {
    assert.match(other, /\(Math\): mastery is still low, expected gain about \d+ points? per hour\.$/);
  }
  // Too few attempts to call it weak, but more would be gained there.
  const unsure = told({ d: { mastery: 0.1, attempts: 4 } });
  assert.ok(unsure.every((text) => !text.includes('highest')));
});

test('the name of a skill stands for its id', () => {
  const model = modelWith({ a: { section: 'math', name: 'Linear equations' }, other: { section: 'rw' } });
  assert.match(adviseOne(rapid, { model })[0]?.text ?? '', /^Take more time on Linear equations:/);
});

test('a section without answers comes first, then a goal out of reach', () => {
  const answers = { math: 30, rw: 0 };
  const goal = {
    targetScore: 1400,
    targetDate: '2025-06-01',
    neededRate: 20,
    isSet: true,
    onTrack: false,
    isLost: false,
  };
  const model = modelWith(allIn('math', 'a'));
  const advice = advise({ a: weak }, { answers, goal, model });
  assert.deepEqual(
    advice.map(({ code, skillId }) => [code, skillId]),
    [
      ['NO_SECTION', null],
      ['GOAL_GAP', null],
      ['WEAK_SKILL', 'a'],
    ],
  );
  assert.equal(
    advice[0]?.text,
    'Answer some Reading and Writing questions to replace the estimate borrowed from Math.',
  );
  assert.equal(
    advice[1]?.text,
    'At the current pace 1400 is not reached by 2025-06-01: aim for about 20 questions every day in each section.',
  );
});

test('a goal is spoken of where it was set and is out of reach, with as much as is known', () => {
  const goal = {
    targetScore: 1400,
    targetDate: null,
    neededRate: null,
    isSet: true,
    onTrack: false,
    isLost: false,
  };
  assert.equal(adviseOne({}, { goal })[0]?.text, 'At the current pace 1400 is not reached within a year.');
  assert.match(
    adviseOne({}, { goal: { ...goal, neededRate: 1 } })[0]?.text ?? '',
    / about 1 question every day /,
  );
  const far = adviseOne({}, { goal: { ...goal, targetDate: '2026-06-01' } });
  assert.equal(far[0]?.text, 'At the current pace 1400 is not reached within a year.');
  assert.deepEqual(adviseOne({}, { goal: { ...goal, targetDate: '2024-10-03' } }), [], 'it has passed');
  assert.match(adviseOne({}, { goal: { ...goal, targetDate: '2024-10-04' } })[0]?.text ?? '', /2024-10-04/);
  assert.equal(
    adviseOne({}, { goal: { ...goal, isLost: true } })[0]?.text,
    'At the current pace 1400 is reached and lost again within a year.',
  );
  assert.deepEqual(adviseOne({}, { goal: { ...goal, onTrack: true } }), []);
  assert.deepEqual(adviseOne({}, { goal: { ...goal, isSet: false } }), []);
});

test('a section is missing only where it is estimated from the other one', () => {
  const none = { math: 0, rw: 0 };
  assert.deepEqual(adviseOne({}, { answers: none }), []);
  // All its skills were moved to the other section since they were answered.
  const model = modelWith(allIn('rw', 'a', 'other'));
  assert.deepEqual(
    adviseOne({}, { model }).map(({ code }) => code),
    ['NO_SECTION'],
  );
});

test('a section of which less than half is covered: its most valuable skill without an answer', () => {
  const entries = { ...allIn('math', 'a', 'c', 'b'), ...allIn('rw', 'other') };
  const explored = (more: Parameters<typeof modelWith>[0], knownSkills = 4) =>
    adviseOne({}, { model: modelWith({ ...entries, ...more }), knownSkills });
  const ids = (...of: Parameters<typeof explored>) => explored(...of).map(({ skillId }) => skillId);
  assert.deepEqual(explored({ c: { section: 'math', weight: 2 } }), [
    { code: 'EXPLORE', skillId: 'c', text: 'Try c: no answers yet, so the Math forecast is uncertain.' },
  ]);
  assert.deepEqual(ids({}), ['b'], 'ties by id');
  assert.deepEqual(ids({ a: { section: 'math', weight: 2 } }), [], 'half is enough');
  // Others of the tenant were answered and never set: they count half in each, but nobody can be sent to them.
  assert.deepEqual(ids({ a: { section: 'math', weight: 2.3 } }, 5), ['b']);
  // So do the learner's own.
  const model = modelWith({ a: { section: 'math' }, b: { section: 'math', weight: 3.5 } });
  const told = advise({ a: {}, c: {}, d: {}, e: {} }, { model, knownSkills: 5 });
  assert.deepEqual(
    told.map(({ skillId }) => skillId),
    ['b'],
  );
});

test('a mastered skill leads to the most valuable one of its section that is not', () => {
  const states = { a: mastered, b: { mastery: 0.8 }, c: { mastery: 0.65 }, other: {} };
  const all = { ...allIn('math', 'a', 'b', 'c'), ...allIn('rw', 'other') };
  const text = (
    more: Parameters<typeof modelWith>[0],
    skills: Record<string, Partial<SkillState>> = states,
  ) => advise(skills, { model: modelWith({ ...all, ...more }), knownSkills: 4 }).map(({ text }) => text);
  assert.deepEqual(text({}), ['a is mastered: move on to c.']);
  assert.deepEqual(text({ d: { section: 'math', name: 'Ratios' } }), ['a is mastered: move on to Ratios.']);
  const { c, ...answered } = states;
  assert.deepEqual(text({}, answered), ['a is mastered: move on to c.'], 'never answered');
  assert.deepEqual(text({}, { a: mastered, b: mastered, c: mastered, other: {} }), [], 'nothing is left');
});

test('of several mastered skills the last one that leads on', () => {
  const all = { ...allIn('math', 'a', 'b'), ...allIn('rw', 'c', 'd') };
  const ready = (states: Record<string, Partial<SkillState>>) =>
    advise(states, { model: modelWith(all) }).map(({ text }) => text);
  const before = { ...mastered, lastAttemptAt: now - 3_600_000 };
  assert.deepEqual(ready({ a: before, b: {}, c: mastered, d: {} }), ['c is mastered: move on to d.']);
  assert.deepEqual(ready({ a: before, b: {}, c: mastered, d: mastered }), ['a is mastered: move on to b.']);
  assert.deepEqual(ready({ a: mastered, b: {}, c: mastered, d: {} }), ['a is mastered: move on to b.']);
  const three = modelWith(allIn('math', 'a', 'b', 'c'));
  const [told] = advise(
    { c: {}, b: mastered, a: mastered },
    { model: three, answers: { math: 100, rw: 0 } },
  ).filter(({ code }) => code === 'READY');
  assert.equal(told?.text, 'a is mastered: move on to c.');
});

test('a learner with one answer', () => {
  const answers = { math: 1, rw: 0 };
  const model = modelWith(allIn('math', 'a', 'b', 'c'));
  const advice = advise({ a: { mastery: 0.2, attempts: 1 } }, { answers, model, knownSkills: 3 });
  assert.deepEqual(
    advice.map(({ code }) => code),
    ['NO_SECTION', 'EXPLORE'],
  );
});

test('a learner with nothing but skills that were never set', () => {
  const answers = { math: 30, rw: 30 };
  const states = { a: mastered, b: weak, c: { mastery: 0.3 } };
  const advice = advise(states, { answers, knownSkills: 10 });
  assert.deepEqual(
    advice.map(({ code, skillId }) => [code, skillId]),
    [
      ['WEAK_SKILL', 'c'],
      ['WEAK_SKILL', 'b'],
      ['READY', 'a'],
    ],
  );
  assert.equal(advice[2]?.text, 'a is mastered: move on to c.');
});

test('a learner with 500 skills', () => {
  const ids = Array.from({ length: 500 }, (_, i) => `skill-${i}`);
  const model = modelWith({ ...allIn('math', ...ids.slice(0, 250)), ...allIn('rw', ...ids.slice(250)) });
  const kinds = [weak, plateau, over, rapid, faded, slow, under, mastered];
  const states = Object.fromEntries(ids.map((id, i) => [id, kinds[i % kinds.length] as Partial<SkillState>]));
  const advice = advise(states, { model });
  assert.deepEqual(new Set(advice.map(({ code }) => code)), new Set(['REVIEW_DUE']));
  // All of a section gain the same here: by id.
  assert.deepEqual(
    advice.map(({ skillId }) => skillId),
    ['skill-252', 'skill-260', 'skill-268', 'skill-276', 'skill-284'],
  );
});
