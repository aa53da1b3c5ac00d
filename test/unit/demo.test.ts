import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findPageOpener, formatDashboard } from '../../src/cli/demo/demo-dashboard.js';
import { buildDemoGroups, drawEnrolment } from '../../src/lab/demo/enrolment.js';
import { generateDemo } from '../../src/lab/demo/generate-demo.js';
import { createDraws, maxLearners, namedLearnerIds } from '../../src/lab/demo/school.js';
import { groupBy } from '../../src/lists.js';

const dayMs = 86_400_000;
const options = { until: '2026-06-30', seed: 1, learners: 50 };
const demo = generateDemo(options);
const answers = demo.weeks.flatMap((week) => week.answers);
type Answers = typeof answers;

const shareOf = (some: Answers): number => some.filter(({ isCorrect }) => isCorrect).length / some.length;
const assertWithin = (value: number, low: number, high: number, what: string): void =>
  assert.ok(value >= low && value <= high, `${what}: ${value}`);

test('generateDemo returns the same school for the same seed, with the same learners in any size', () => {
  const small = { ...options, learners: 5 };
  const made = generateDemo(small);
  assert.deepEqual(generateDemo(small), made);
  assert.notDeepEqual(generateDemo({ ...small, seed: 2 }), made);
  const few = made.weeks.flatMap((week) => week.answers);
  const first = new Set(few.map(({ userId }) => userId));
  assert.equal(first.size, 5 + namedLearnerIds.length);
  const expected = answers.filter(({ userId }) => first.has(userId));
  assert.deepEqual(few, expected);
});

test('generateDemo returns 40 skills, 600 items and eight months of weeks until the last day', () => {
  const items = new Set(demo.skills.flatMap((skill) => skill.items.map(({ id }) => id)));
  const learners = new Set(answers.map(({ userId }) => userId));
  assert.deepEqual([demo.skills.length, items.size], [40, 600]);
  assert.equal(learners.size, options.learners + namedLearnerIds.length);
  assertWithin(answers.length / options.learners, 200, 500, 'answers per learner');
  const end = Date.parse(options.until) + dayMs;
  assertWithin(end - (answers.at(-1)?.sentAt ?? 0), 0, 3 * dayMs, 'time after the last answer');
  for (const [i, week] of demo.weeks.entries()) {
    assert.ok(week.end > (demo.weeks[i - 1]?.end ?? 0), `week ${i}`);
    for (const { sentAt } of week.answers) assert.ok(sentAt < week.end, `week ${i}`);
  }
});

test('Learners of the demo improve with practice, guess when they are rapid, and know when they are sure', () => {
  assertWithin(shareOf(answers), 0.5, 0.85, 'correct answers');
  const counts = new Map<string, number>();
  const byAttempt: Answers[] = [];
  for (const answer of answers) {
    const key = `${answer.userId} ${answer.skillIds[0]}`;
    const attempt = counts.get(key) ?? 0;
    counts.set(key, attempt + 1);
    byAttempt[attempt] ??= [];
    byAttempt[attempt].push(answer);
  }
  const [first = [], ninth = []] = [byAttempt[0], byAttempt[8]];
  assertWithin(shareOf(ninth) - shareOf(first), 0.08, 0.4, 'gain from the first answer to the ninth');
  const rapid = answers.filter(({ timeSpentSeconds }) => timeSpentSeconds !== null && timeSpentSeconds < 3);
  assertWithin(rapid.length / answers.length, 0.01, 0.08, 'rapid answers');
  assertWithin(shareOf(rapid), 0.15, 0.35, 'correct rapid answers');
  const [unsure, sure] = [1, 5].map((score) =>
    shareOf(answers.filter(({ confidenceScore }) => confidenceScore === score)),
  ) as [number, number];
  assertWithin(sure - unsure, 0.2, 0.8, 'lead of sure answers in accuracy');
});

test('A tenth of the items needs a second skill of the section, and the weaker skill decides', () => {
  const sectionOf = new Map(demo.skills.map(({ id, section }) => [id, section]));
  const items = demo.skills.flatMap((skill) => skill.items.map((item) => ({ ...item, skill })));
  const double = items.filter(({ second }) => second !== null);
  assert.equal(double.length, items.length / 10);
  for (const { second, skill } of double) {
    assert.equal(sectionOf.get(`${second}`), skill.section);
    assert.notEqual(second, skill.id);
  }
  const secondOf = new Map(double.map(({ id, second }) => [id, second]));
  const several = answers.filter(({ skillIds }) => skillIds.length > 1);
  assertWithin(several.length / answers.length, 0.08, 0.12, 'answers with two skills');
  for (const { itemId, skillIds } of several)
    if (itemId !== null) assert.equal(secondOf.get(itemId), skillIds[1]);
  const single = answers.filter(({ skillIds }) => skillIds.length === 1);
  assertWithin(shareOf(single) - shareOf(several), 0.03, 0.3, 'lead of questions with one skill');
});

test('A named learner of the demo behaves as the name says, on any last day', () => {
  for (const until of ['2026-06-30', '2026-09-14']) {
    const { weeks } = generateDemo({ ...options, until, learners: 1 });
    const end = Date.parse(until) + dayMs;
    const answersOf = (name: string): Answers =>
      weeks.flatMap((week) => week.answers).filter(({ userId }) => userId === `demo-${name}`);
    const idleDays = (name: string): number => (end - (answersOf(name).at(-1)?.occurredAt ?? 0)) / dayMs;
    assert.equal(answersOf('four-answers').length, 4);
    assertWithin(idleDays('four-answers'), 0, 7, 'idle days of the newest learner');
    assertWithin(idleDays('idle'), 45, 80, 'idle days of the idle learner');
    assertWithin(shareOf(answersOf('guesser')), 0.15, 0.35, 'accuracy of the guesser');
    const lead = shareOf(answersOf('on-track')) - shareOf(answersOf('at-risk'));
    assertWithin(lead, 0.1, 0.6, 'lead of the learner on track in accuracy');
    for (const name of ['ليلى', '<script>alert(1)</script>']) assert.ok(answersOf(name).length > 100, name);
    const goals = weeks.flatMap((week) => week.goals).filter(({ userId }) => userId === 'demo-goal-given-up');
    const targets = goals.map(({ setting }) => setting?.targetScore);
    assert.deepEqual(targets, [1300, undefined]);
  }
});

const school = { until: '2026-11-28', seed: 1, learners: 300 };
const whole = generateDemo(school);
const wholeAnswers = whole.weeks.flatMap((week) => week.answers);
const schoolEnds = Date.parse(school.until) + dayMs;
const membersOf = (groupId: string): Set<string> =>
  new Set(whole.groups.find((group) => group.groupId === groupId)?.userIds);
/** Answers of a group, from `days` before the end until `until` days before it. */
const recentAnswers = (groupId: string, days: number, until = 0): Answers => {
  const members = membersOf(groupId);
  const [from, to] = [schoolEnds - days * dayMs, schoolEnds - until * dayMs];
  return wholeAnswers.filter(
    ({ userId, occurredAt }) => members.has(userId) && occurredAt >= from && occurredAt < to,
  );
};

test('Learners of the demo are in a school, a grade, a class and with a teacher, and have a name', () => {
  const kinds = groupBy(whole.groups, ({ kind }) => kind);
  const sizes = [...kinds].map(([kind, groups]) => [kind, groups.length]);
  assert.deepEqual(sizes.sort(), [
    ['class', 12],
    ['grade', 4],
    ['school', 1],
    ['teacher', 6],
  ]);
  const all = [...whole.profiles.map(({ userId }) => userId)].sort();
  assert.equal(all.length, 300 + namedLearnerIds.length);
  for (const groups of kinds.values()) assert.deepEqual(groups.flatMap(({ userIds }) => userIds).sort(), all);
  for (const { userIds, parentGroupId } of kinds.get('class') ?? []) {
    assertWithin(userIds.length, 24, 30, 'learners of a class');
    const parent = membersOf(`${parentGroupId}`);
    assert.ok(userIds.every((userId) => parent.has(userId)));
  }
  const names = new Map(whole.profiles.map(({ userId, displayName }) => [userId, displayName]));
  assert.equal(names.get('demo-ليلى'), 'ليلى حداد');
  assert.match(`${names.get('demo-<script>alert(1)</script>')}`, /<script>/);
  assert.ok(membersOf('class-11-A').has('demo-at-risk'));
  const hints = whole.profiles.filter(({ attributes }) => attributes.hints === 'on').length;
  assertWithin(hints / all.length, 0.4, 0.6, 'share of learners with hints');
  const last = { userId: 'demo-1000', ...drawEnrolment(createDraws(1), maxLearners) };
  const groupsOfLast = buildDemoGroups([last]).map(({ groupId }) => groupId);
  assert.deepEqual(groupsOfLast, ['school', 'grade-12', 'class-12-J', 'teacher-Reyes']);
});

test('One class of the demo improves after its lessons, one declines, and one grade forgets in the holidays', () => {
  const changeOf = (groupId: string, skills?: readonly string[]): number => {
    const parts = [recentAnswers(groupId, 28), recentAnswers(groupId, 56, 28)].map((some) =>
      some.filter(({ skillIds: [skillId] }) => skills === undefined || skills.includes(skillId)),
    );
    const [now = 0, before = 0] = parts.map(shareOf);
    return now - before;
  };
  const lessons = ['absolute-value', 'exponents-and-radicals'];
  assertWithin(
    changeOf('class-10-A', lessons),
    0.15,
    0.6,
    'change of the class in the skills of the lessons',
  );
  assertWithin(changeOf('class-10-A'), 0.03, 0.2, 'change of the class with lessons');
  assertWithin(changeOf('class-11-A'), -0.3, -0.08, 'change of the declining class');
  const changes = ['B', 'C'].flatMap((letter) =>
    [10, 11].map((grade) => changeOf(`class-${grade}-${letter}`)),
  );
  for (const change of changes) assertWithin(change, -0.07, 0.07, 'change of another class');
  const forgotten = ['polynomials', 'text-structure'];
  const [grade9, ...others] = [9, 10, 11, 12].map((grade) => changeOf(`grade-${grade}`, forgotten));
  assertWithin(grade9 ?? 0, -0.5, -0.15, 'change of grade 9 after the holidays');
  for (const change of others) assertWithin(change, -0.12, 0.12, 'change of another grade');
});

test('Learners of the demo with hints improve faster, and the classes of one teacher practise least', () => {
  const withHints = new Set(
    whole.profiles.flatMap(({ userId, attributes }) => (attributes.hints === 'on' ? [userId] : [])),
  );
  const computeGain = (hasHints: boolean): number => {
    const own = wholeAnswers.filter(({ userId }) => withHints.has(userId) === hasHints);
    const bySkill = [...groupBy(own, ({ userId, skillIds: [skillId] }) => `${userId} ${skillId}`).values()];
    const shareAt = (place: number): number => shareOf(bySkill.flatMap((some) => some[place] ?? []));
    return shareAt(6) - shareAt(0);
  };
  const lead = computeGain(true) - computeGain(false);
  assertWithin(lead, 0.04, 0.15, 'lead in the gain until the seventh answer');
  const teachers = whole.groups.filter(({ kind }) => kind === 'teacher');
  const rate = ({ groupId, userIds }: (typeof teachers)[number]): number =>
    recentAnswers(groupId, 56).length / userIds.length;
  const [least] = teachers.sort((a, b) => rate(a) - rate(b));
  assert.equal(least?.name, 'Mr Brandt');
});

test('findPageOpener returns a program on a desktop only: not in a pipe, in CI or over SSH', () => {
  const cases: [env: Record<string, string>, isTerminal: boolean, NodeJS.Platform, string | null][] = [
    [{ DISPLAY: ':0' }, true, 'linux', 'xdg-open'],
    [{ WAYLAND_DISPLAY: 'wayland-0' }, true, 'linux', 'xdg-open'],
    [{}, true, 'darwin', 'open'],
    [{}, true, 'linux', null],
    [{ DISPLAY: ':0' }, false, 'linux', null],
    [{ DISPLAY: ':0', CI: 'true' }, true, 'linux', null],
    [{ SSH_CONNECTION: '192.0.2.1 5 192.0.2.2 22' }, true, 'darwin', null],
  ];
  for (const [env, isTerminal, platform, opener] of cases)
    assert.equal(findPageOpener({ env, isTerminal, platform }), opener, JSON.stringify(env));
});

test('formatDashboard names the next command: npm start, or keys with a public HOST', () => {
  const found = { tenant: 'demo', page: 'http://127.0.0.1:3000/dashboard' };
  const link = `${found.page}#key=dev-1`;
  assert.equal(formatDashboard({ ...found, link, isServing: true }), `Dashboard: ${link}`);
  const stopped = formatDashboard({ ...found, link, isServing: false });
  assert.equal(stopped, `Dashboard: run npm start, then open ${link}`);
  const open = formatDashboard({ ...found, link: null, isServing: false });
  assert.match(open, /npm run keys -- create --tenant demo/);
});
