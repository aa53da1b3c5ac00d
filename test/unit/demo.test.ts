/** The demo's school: the same for a seed, and one that a teacher would take for a school. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { generateDemo } from '../../src/lab/demo/generate-demo.js';
import { namedLearnerIds } from '../../src/lab/demo/school.js';

const options = { until: '2026-06-30', seed: 1, learners: 50 };
const demo = generateDemo(options);
const answers = demo.weeks.flatMap((week) => week.answers);
type Answers = typeof answers;

const shareOf = (some: Answers): number => some.filter(({ isCorrect }) => isCorrect).length / some.length;
const isWithin = (value: number, low: number, high: number, what: string): void =>
  assert.ok(value >= low && value <= high, `${what}: ${value}`);

test('the same seed gives the same school, another seed another one', () => {
  const few = { ...options, learners: 5 };
  const made = JSON.stringify(generateDemo(few));
  assert.equal(JSON.stringify(generateDemo(few)), made);
  assert.notEqual(JSON.stringify(generateDemo({ ...few, seed: 2 })), made);
});

test('a learner does not depend on how many there are', () => {
  const few = generateDemo({ ...options, learners: 5 }).weeks.flatMap((week) => week.answers);
  const first = new Set(few.map(({ userId }) => userId));
  assert.equal(first.size, 5 + namedLearnerIds.length);
  assert.deepEqual(
    few,
    answers.filter(({ userId }) => first.has(userId)),
  );
});

test('it has the size of a school, and ends on its day', () => {
  assert.deepEqual(
    [demo.skills.length, new Set(answers.map(({ userId }) => userId)).size],
    [40, 50 + namedLearnerIds.length],
  );
  assert.equal(new Set(demo.skills.flatMap(({ items }) => items.map(({ id }) => id))).size, 600);
  isWithin(answers.length / 50, 200, 500, 'answers of a learner');
  isWithin(Date.parse('2026-07-01') - (answers.at(-1)?.sentAt ?? 0), 0, 3 * 86_400_000, 'the last answer');
  const byWeek = demo.weeks.every(({ end }, i) => end > (demo.weeks[i - 1]?.end ?? 0));
  const sent = demo.weeks.every((week) => week.answers.every(({ sentAt }) => sentAt < week.end));
  assert.deepEqual([byWeek, sent], [true, true]);
});

test('practice helps, guesses are guesses, who feels sure is right more often', () => {
  isWithin(shareOf(answers), 0.5, 0.85, 'right answers');
  const attempts = new Map<string, number>();
  const byAttempt: Answers[] = [];
  for (const answer of answers) {
    const key = `${answer.userId} ${answer.skillId}`;
    const place = attempts.get(key) ?? 0;
    attempts.set(key, place + 1);
    byAttempt[place] = [...(byAttempt[place] ?? []), answer];
  }
  isWithin(
    shareOf(byAttempt[8] ?? []) - shareOf(byAttempt[0] ?? []),
    0.08,
    0.4,
    'gain from the first answer to the ninth',
  );
  const rapid = answers.filter(({ timeSpentSeconds }) => timeSpentSeconds !== null && timeSpentSeconds < 3);
  isWithin(rapid.length / answers.length, 0.01, 0.08, 'rapid answers');
  isWithin(shareOf(rapid), 0.15, 0.35, 'right ones of them');
  const sure = (score: number): number =>
    shareOf(answers.filter(({ confidenceScore }) => confidenceScore === score));
  isWithin(sure(5) - sure(1), 0.2, 0.8, 'right answers of the sure and the unsure');
});

test('learners with a name are what it says, whatever the day', () => {
  for (const until of ['2026-06-30', '2026-09-14']) {
    const { weeks } = generateDemo({ ...options, until, learners: 1 });
    const end = Date.parse(until) + 86_400_000;
    const of = (name: string): Answers =>
      weeks.flatMap((week) => week.answers).filter(({ userId }) => userId === `demo-${name}`);
    const idleDays = (name: string): number => (end - (of(name).at(-1)?.occurredAt ?? 0)) / 86_400_000;
    assert.equal(of('four-answers').length, 4);
    isWithin(idleDays('four-answers'), 0, 7, 'days since the newest');
    isWithin(idleDays('idle'), 45, 80, 'days since the idle one');
    isWithin(shareOf(of('guesser')), 0.15, 0.35, 'right answers of the guesser');
    isWithin(shareOf(of('on-track')) - shareOf(of('at-risk')), 0.1, 0.6, 'what parts them');
    for (const name of ['ليلى', '<script>alert(1)</script>']) assert.ok(of(name).length > 100, name);
    const goals = weeks.flatMap((week) => week.goals).filter(({ userId }) => userId === 'demo-goal-given-up');
    assert.deepEqual(
      goals.map(({ setting }) => setting?.targetScore),
      [1300, undefined],
    );
  }
});
