/** Recommendations of a prediction: rules, order and limits. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { computePracticeGain, computeReviewGain } from '../../src/domain/advice/practice-gain.js';
import {
  buildStudyAdvice,
  type StudyAdvice,
  type StudyContext,
} from '../../src/domain/advice/study-advice.js';
import { dayMs } from '../../src/domain/base/common.js';
import { findPlacement } from '../../src/domain/catalogue/catalogue.js';
import { buildUnseenView } from '../../src/domain/learner/skill-view.js';
import { goalStatuses } from '../../src/domain/score/goal.js';
import { newLearner, type SkillState } from '../../src/domain/tracing/learner-states.js';
import { between } from '../support/builders/arbitraries.js';
import { fc, forAll } from '../support/builders/properties.js';
import {
  allIn,
  mastered,
  modelWith,
  noGoal,
  now,
  over,
  practised,
  rapid,
  studyContext,
  under,
  viewsOf,
} from '../support/builders/study.js';

type States = Record<string, Partial<SkillState>>;
type Entries = Parameters<typeof modelWith>[0];
type Part = Partial<Omit<Parameters<typeof studyContext>[0], 'views'>>;

const plateau = { plateau: { attempts: 30, sum: 3, timeSum: 0, squareSum: 1, run: 3 } };
const faded = { mastery: 0.9, lastAttemptAt: now - 60 * dayMs };
const slow = { pace: { timed: 10, timedCorrect: 8, seconds: 2000, slowness: 1, accuracy: 0.6 } };
const weak = { mastery: 0.4 };

const advise = (states: States, part: Part = {}) =>
  buildStudyAdvice(studyContext({ views: viewsOf(states, part.model), ...part }));

const textsOf = (states: States, entries: Entries, part: Part = {}): string[] =>
  advise(states, { model: modelWith(entries), ...part }).map(({ text }) => text);

/** Advice on a math skill `a`, next to a reading skill that needs none. */
const adviseOne = (state: Partial<SkillState>, part: Part = {}) => {
  const model = modelWith({ a: { section: 'math' }, other: { section: 'rw' } });
  return advise({ a: state, other: {} }, { model, ...part });
};

const codesOf = (advice: readonly StudyAdvice[]): string[] =>
  advice.map(({ code, skillId }) => (skillId === null ? code : `${code} ${skillId}`));

test('buildStudyAdvice returns the sentence of each rule, and nothing for a skill without a problem', () => {
  const rules: readonly [state: Partial<SkillState>, code: string, text: string][] = [
    [
      plateau,
      'PLATEAU',
      'Change approach on a: 20 recent attempts brought little progress. Study a worked example, then try easier questions.',
    ],
    [
      over,
      'OVERCONFIDENT',
      'Slow down on a: your confidence is 46 percentage points ahead of your accuracy.',
    ],
    [rapid, 'RAPID', 'Take more time on a: many answers took less than 3 s.'],
    [faded, 'REVIEW_DUE', 'Review a: it was strong but has not been practised for 60 days.'],
    [slow, 'SLOW', 'Practise a with a time limit: answers are correct but slower than typical.'],
    [weak, 'WEAK_SKILL', 'Focus on a (Math): highest expected gain, about 2 points per hour.'],
    [under, 'UNDERCONFIDENT', 'Trust your work on a: accuracy exceeds your confidence.'],
  ];
  for (const [state, code, text] of rules) assert.deepEqual(adviseOne(state), [{ code, skillId: 'a', text }]);
  assert.deepEqual(adviseOne({}), []);
  assert.deepEqual(advise({}), []);
  const model = modelWith({ a: { section: 'math', name: 'Linear equations' }, other: { section: 'rw' } });
  assert.match(adviseOne(rapid, { model })[0]?.text ?? '', /^Take more time on Linear equations:/);
});

test('buildStudyAdvice returns nothing just below the limit of each rule', () => {
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
  assert.equal(adviseOne({ ...weak, attempts: 5 })[0]?.code, 'WEAK_SKILL');
});

test('buildStudyAdvice returns the most urgent of several rules for a skill', () => {
  const codes = [plateau, over, rapid, faded, weak].map((_, i, all) => {
    const [first] = adviseOne(Object.assign({}, ...[...all.slice(i)].reverse()));
    return first?.code;
  });
  assert.deepEqual(codes, ['PLATEAU', 'OVERCONFIDENT', 'RAPID', 'REVIEW_DUE', 'WEAK_SKILL']);
  assert.equal(adviseOne({ ...weak, ...under })[0]?.code, 'WEAK_SKILL');
  assert.equal(adviseOne({ ...slow, ...under })[0]?.code, 'SLOW');
});

test('A weak skill has its section and points only if they are known and there are 20 answers', () => {
  const text = (part: Part) => adviseOne(weak, part)[0]?.text ?? '';
  const unmapped = modelWith({ other: { section: 'rw' } });
  const withPoints = /^Focus on a: highest expected gain, about \d+ points? per hour\.$/;
  assert.match(text({ model: unmapped }), withPoints);
  assert.equal(text({ answers: { math: 19.5, rw: 100 } }), 'Focus on a (Math): highest expected gain.');
  const few = { math: 100, rw: 19.5 };
  assert.match(text({ answers: few }), /point/);
  assert.equal(text({ answers: few, model: unmapped }), 'Focus on a: highest expected gain.');
  const light = { ...allIn('math', 'a', 'b'), b: { section: 'math', weight: 1000 } } as const;
  const gainless = textsOf({ a: weak, b: {} }, light).at(-1);
  assert.equal(gainless, 'Focus on a (Math): mastery is still low.', 'less than one point');
});

test('Only the weak skill with the most to gain has the highest expected gain', () => {
  const focusTexts = (more: States) => {
    const states = { a: weak, b: { mastery: 0.2 }, c: { mastery: 0.5 }, ...more };
    return textsOf(states, allIn('math', 'a', 'b', 'c', 'd')).filter((text) => text.startsWith('Focus'));
  };
  const [first, ...others] = focusTexts({ d: faded });
  assert.match(first ?? '', /^Focus on b \(Math\): highest expected gain, about \d+ points? per hour\.$/);
  assert.equal(others.length, 2);
  for (const other of others)
    assert.match(other, /\(Math\): mastery is still low, expected gain about \d+ points? per hour\.$/);
  // Skill d has more to gain, but too few attempts to be called weak.
  const unsure = focusTexts({ d: { mastery: 0.1, attempts: 4 } });
  assert.ok(unsure.every((text) => !text.includes('highest')));
});

test('IDLE replaces DECLINE from the fourteenth day without an answer', () => {
  const learner = { ...newLearner, trend: { ...newLearner.trend, change: -0.2 } };
  const firstAfter = (days: number) => adviseOne({}, { learner, now: now + days * dayMs })[0];
  assert.equal(firstAfter(13)?.code, 'DECLINE');
  assert.deepEqual(firstAfter(45), {
    code: 'IDLE',
    skillId: null,
    text: 'No answers for 45 days: skills fade without practice, and forecasts fall slowly. Start with a short review.',
  });
});

test('A section without answers and a goal out of reach come first', () => {
  const goal = { ...noGoal, targetScore: 1400, targetDate: '2025-06-01', neededRate: 20, isSet: true };
  const model = modelWith(allIn('math', 'a'));
  const advice = advise({ a: weak }, { answers: { math: 30, rw: 0 }, goal, model });
  assert.deepEqual(codesOf(advice), ['NO_SECTION', 'GOAL_GAP', 'WEAK_SKILL a']);
  assert.deepEqual(
    advice.slice(0, 2).map(({ text }) => text),
    [
      'Answer some Reading and Writing questions: this score is currently estimated from Math.',
      'At the current pace 1400 is not reached by 2025-06-01: aim for about 20 questions every day in each section.',
    ],
  );
  assert.deepEqual(adviseOne({}, { answers: { math: 0, rw: 0 } }), [], 'both are estimated');
  // The catalogue moved all skills to the other section after the answers.
  const moved = modelWith(allIn('rw', 'a', 'other'));
  assert.deepEqual(codesOf(adviseOne({}, { model: moved })), ['NO_SECTION']);
});

test('GOAL_GAP depends on the target date, the needed rate, and whether the goal is set and on track', () => {
  const set = { ...noGoal, targetScore: 1400, isSet: true };
  const withinYear = /^At the current pace 1400 is not reached within a year\.$/;
  const cases: readonly [goal: Partial<typeof set>, text: RegExp | null][] = [
    [{}, withinYear],
    [{ neededRate: 1 }, / about 1 question every day /],
    [{ targetDate: '2026-06-01' }, withinYear],
    [
      { targetDate: '2024-10-03', status: 'expired' },
      /^The goal date 2024-10-03 has passed, 170 points below 1400: set a new goal\.$/,
    ],
    [{ targetDate: '2024-10-04' }, /2024-10-04/],
    [
      { isLost: true },
      /^At the current pace the score reaches 1400 but falls below it again within a year\.$/,
    ],
    [{ onTrack: true }, null],
    [{ status: 'on_track' }, null],
    [{ isSet: false }, null],
  ];
  for (const [change, text] of cases) {
    const [found] = adviseOne({}, { goal: { ...set, ...change } });
    if (text === null) assert.equal(found, undefined, JSON.stringify(change));
    else assert.match(found?.text ?? '', text);
  }
});

test('EXPLORE names the most valuable unanswered skill of a section that is less than half covered', () => {
  const entries = { ...allIn('math', 'a', 'c', 'b'), ...allIn('rw', 'other') };
  const explore = (more: Entries, knownSkills = 4) =>
    adviseOne({}, { model: modelWith({ ...entries, ...more }), knownSkills });
  assert.deepEqual(explore({ c: { section: 'math', weight: 2 } }), [
    { code: 'EXPLORE', skillId: 'c', text: 'Try c: no answers yet, so the Math forecast is uncertain.' },
  ]);
  assert.deepEqual(codesOf(explore({})), ['EXPLORE b'], 'ties go by id');
  assert.deepEqual(explore({ a: { section: 'math', weight: 2 } }), [], 'half covered');
  // Skills that are not in the catalogue count half in each section.
  assert.deepEqual(codesOf(explore({ a: { section: 'math', weight: 2.3 } }, 5)), ['EXPLORE b']);
  const model = modelWith({ a: { section: 'math' }, b: { section: 'math', weight: 3.5 } });
  assert.deepEqual(codesOf(advise({ a: {}, c: {}, d: {}, e: {} }, { model, knownSkills: 5 })), ['EXPLORE b']);
});

test('READY leads from a mastered skill to the most valuable unmastered skill of its section', () => {
  const states = { a: mastered, b: { mastery: 0.8 }, c: { mastery: 0.65 }, other: {} };
  const all = { ...allIn('math', 'a', 'b', 'c'), ...allIn('rw', 'other') };
  const texts = (more: Entries, skills: States = states) =>
    textsOf(skills, { ...all, ...more }, { knownSkills: 4 });
  assert.deepEqual(texts({}), ['a is mastered: move on to c.']);
  assert.deepEqual(texts({ d: { section: 'math', name: 'Ratios' } }), ['a is mastered: move on to Ratios.']);
  const { c, ...answered } = states;
  assert.deepEqual(texts({}, answered), ['a is mastered: move on to c.'], 'an unanswered skill');
  assert.deepEqual(texts({}, { a: mastered, b: mastered, c: mastered, other: {} }), []);
});

test('READY is given for the last mastered skill that has a next one', () => {
  const all = { ...allIn('math', 'a', 'b'), ...allIn('rw', 'c', 'd') };
  const before = { ...mastered, lastAttemptAt: now - 3_600_000 };
  const textsWith = (more: States) => textsOf({ a: before, b: {}, c: mastered, d: {}, ...more }, all);
  assert.deepEqual(textsWith({}), ['c is mastered: move on to d.']);
  for (const more of [{ d: mastered }, { a: mastered }])
    assert.deepEqual(textsWith(more), ['a is mastered: move on to b.']);
});

test('buildStudyAdvice advises a learner with one answer, and one without a catalogue', () => {
  const model = modelWith(allIn('math', 'a', 'b', 'c'));
  const one = { answers: { math: 1, rw: 0 }, model, knownSkills: 3 };
  assert.deepEqual(codesOf(advise({ a: { mastery: 0.2, attempts: 1 } }, one)), ['NO_SECTION', 'EXPLORE b']);
  const answers = { math: 30, rw: 30 };
  const unset = advise({ a: mastered, b: weak, c: { mastery: 0.3 } }, { answers, knownSkills: 10 });
  assert.deepEqual(codesOf(unset), ['WEAK_SKILL c', 'WEAK_SKILL b', 'READY a']);
  assert.equal(unset[2]?.text, 'a is mastered: move on to c.');
});

/** Few ids, so that learners and catalogues share some. */
const anyId = fc.oneof(
  fc.integer({ min: 0, max: 30 }).map((n) => `skill-${n}`),
  fc.string({ unit: 'binary', minLength: 1, maxLength: 128, size: 'max' }),
);

const traits: readonly Partial<SkillState>[] = [mastered, plateau, over, under, rapid, faded, slow, weak];

const troubledState: fc.Arbitrary<SkillState> = fc
  .record({
    own: fc.subarray([...traits]),
    attempts: fc.integer({ min: 1, max: 30 }),
    idleDays: fc.oneof(fc.constant(0), between(-1, 400)),
  })
  .map(({ own, attempts, idleDays }) => {
    const idle = { ...practised, lastAttemptAt: now - idleDays * dayMs };
    return { ...Object.assign(idle, ...own), attempts };
  });

/** Up to 1, 4 or 40 skills. Long lists would hide advice of low rank. */
const bySkill = <T>(one: fc.Arbitrary<T>): fc.Arbitrary<Record<string, T>> =>
  fc
    .constantFrom(1, 4, 40)
    .chain((maxKeys) => fc.dictionary(anyId, one, { maxKeys, size: 'max', noNullPrototype: true }));

const anyContext: fc.Arbitrary<StudyContext> = fc
  .record({
    states: fc
      .boolean()
      .chain((isCalm) => bySkill(isCalm ? fc.constantFrom(practised, mastered) : troubledState)),
    entries: bySkill(
      fc.record({
        name: fc.option(fc.string({ unit: 'binary', minLength: 1, maxLength: 300, size: 'max' })),
        section: fc.constantFrom('math', 'rw', null),
        weight: fc.oneof(fc.constant(1), between(0.1, 10)),
      }),
    ),
    others: fc.nat({ max: 20 }),
    answers: fc.record({ math: fc.nat({ max: 60 }), rw: fc.nat({ max: 60 }) }),
    goal: fc.record({
      targetScore: fc.integer({ min: 40, max: 160 }).map((tens) => 10 * tens),
      targetDate: fc.option(fc.constant('2026-06-01')),
      neededRate: fc.option(fc.constantFrom(1, 2, 5, 10, 20, 40)),
      isSet: fc.boolean(),
      onTrack: fc.boolean(),
      isLost: fc.boolean(),
      status: fc.constantFrom(...goalStatuses),
      gap: fc.integer({ min: 0, max: 120 }).map((tens) => 10 * tens),
    }),
  })
  .map(({ states, entries, others, answers, goal }) => {
    const model = modelWith(entries);
    const knownSkills = new Set([...Object.keys(states), ...Object.keys(entries)]).size + others;
    return studyContext({ views: viewsOf(states, model), model, knownSkills, answers, goal });
  });

/** Points per hour of an advice, computed again from the states. */
function gainOf({ views, model, measures }: StudyContext, { code, skillId }: StudyAdvice): number {
  if (skillId === null) return Number.POSITIVE_INFINITY;
  const view = views.find((one) => one.skillId === skillId);
  if (view === undefined) {
    assert.equal(code, 'EXPLORE');
    return computePracticeGain(buildUnseenView(skillId, model, now), measures);
  }
  return code === 'REVIEW_DUE' ? computeReviewGain(view, measures) : computePracticeGain(view, measures);
}

test('buildStudyAdvice returns at most five well-formed sentences by gain, in any order of the skills', () => {
  forAll(anyContext, (context) => {
    const advice = buildStudyAdvice(context);
    assert.ok(advice.length <= 5);
    const skills = advice.flatMap(({ skillId }) => skillId ?? []);
    assert.equal(new Set(skills).size, skills.length, 'one advice for each skill');
    for (const { code, text } of advice) {
      assert.ok(text.length <= 200 && text.isWellFormed() && text.endsWith('.'), text);
      if (!/ points? per hour/.test(text)) continue;
      assert.equal(code, 'WEAK_SKILL');
      assert.match(text, /about ([2-9]|[1-9]\d+) points |about 1 point /);
    }
    const codes = advice.map(({ code }) => code);
    for (const [i, next] of advice.slice(1).entries()) {
      const last = advice[i] as StudyAdvice;
      const fall = gainOf(context, last) - gainOf(context, next);
      assert.ok(fall > 0 || (next.skillId ?? '') > (last.skillId ?? '') || last.skillId === null);
    }
    const general = codes.filter((_, i) => advice[i]?.skillId === null);
    const order: readonly string[] = ['IDLE', 'DECLINE', 'NO_SECTION', 'GOAL_GAP'];
    assert.deepEqual(
      general,
      [...general].sort((a, b) => order.indexOf(a) - order.indexOf(b)),
    );
    assert.deepEqual(codes.slice(0, general.length), general);
    assert.ok(codes.filter((code) => code === 'READY').length <= 1);
    const explored = advice.flatMap(({ code, skillId }) =>
      code === 'EXPLORE' && skillId !== null ? findPlacement(context.model.catalogue, skillId).section : [],
    );
    assert.ok(!explored.includes(null) && new Set(explored).size === explored.length);
    const views = context.views.toReversed();
    assert.deepEqual(buildStudyAdvice({ ...context, views }), advice);
  });
});
