/** Skills and summary of a class, compared with other calls and with sums of the answers that were sent. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type {
  ClassMastery,
  GroupSkill,
  GroupSkills,
  GroupSummary,
  Prediction,
} from '../../src/client/types.js';
import { dayMs } from '../../src/domain/base/common.js';
import { computeStatus } from '../../src/domain/classes/learner-status.js';
import { computeSum, groupBy, splitIntoParts } from '../../src/lists.js';
import { buildStatusInput } from '../../src/pages/dashboard/pages/class/status-input.js';
import { awayFromMidnight } from '../support/builders/day.js';
import { habits, type MadeAnswer, makeAnswers } from '../support/builders/school-class.js';
import { callerOf, outcomeOf } from '../support/http/http.js';
import { assertNear } from '../support/near.js';
import { keysOf, sharedService } from '../support/servers/service.js';
import { valuesOf } from '../support/values-of.js';
import { waitUntilStored } from '../support/wait.js';

const service = await sharedService();
const caller = callerOf(service, service.key);
const learners = Object.keys(habits);
const markup = '<script>alert(1)</script>';
const dateIn = (days: number): string => new Date(Date.now() + days * dayMs).toISOString().slice(0, 10);

interface SentAnswer extends MadeAnswer {
  /** Probability of a correct answer by mastery alone, with the default parameters. */
  readonly chance: number;
}
const answers: SentAnswer[] = [];

async function send(some: readonly MadeAnswer[]): Promise<SentAnswer[]> {
  const { status, json } = await caller.trackAll(some);
  assert.equal(status, 200);
  return some.map((one, i) => {
    const { skills, ...first } = json.data.results[i].data;
    const masteries: number[] = valuesOf(skills ?? [first], 'mastery_before');
    return { ...one, chance: masteries.reduce((product, m) => product * (0.9 * m + 0.2 * (1 - m)), 1) };
  });
}

async function put(path: string, body: object): Promise<void> {
  const { status, text } = await caller.send('PUT', `/api/v1/${path}`, body);
  assert.equal(status, 200, text);
}
async function read<Data>(path: string): Promise<Data> {
  const { status, json, text } = await caller.get(`/api/v1/${path}`);
  assert.equal(status, 200, text);
  return json.data;
}
const readSkills = (group = 'nine'): Promise<GroupSkills> => read(`groups/${group}/skills`);
const readSummary = (group = 'nine'): Promise<GroupSummary> => read(`groups/${group}/summary`);

before(async () => {
  await awayFromMidnight();
  for (const part of splitIntoParts(makeAnswers(Date.now()), 1000)) answers.push(...(await send(part)));
  await put('goals/strong', { target_score: 1100 });
  await put('goals/declines', { target_score: 1300, target_date: dateIn(21) });
  await put('goals/beginner', { target_score: 1200, target_date: dateIn(47) });
  await put('goals/four', { target_score: 1600, target_date: dateIn(5) });
  await put('learners/stopped/profile', { display_name: markup });
  await put('skills/ratios', { name: 'Ratios', section: 'math' });
  await put('groups/nine', { name: 'Year 9', user_ids: [...learners, 'absent'] });
  await waitUntilStored(caller);
});

/** UTC days before today. */
const daysAgo = ({ occurred_at }: MadeAnswer): number =>
  Math.floor(Date.now() / dayMs) - Math.floor(Date.parse(occurred_at) / dayMs);
const skillsOf = ({ skill_id, skill_ids }: MadeAnswer) => skill_ids ?? [skill_id];
const shareRight = (some: readonly MadeAnswer[]) =>
  computeSum(some.map((one) => +one.is_correct)) / some.length;

/** Change of each learner with answers in the last 28 days and in the 28 days before. */
function listChanges(some: readonly MadeAnswer[]): number[] {
  const inPeriod = (own: readonly MadeAnswer[], from: number) =>
    own.filter((one) => daysAgo(one) >= from && daysAgo(one) < from + 28);
  return [...groupBy(some, ({ user_id }) => user_id).values()]
    .map((own) => shareRight(inPeriod(own, 0)) - shareRight(inPeriod(own, 28)))
    .filter((change) => !Number.isNaN(change));
}

/** Quantiles .9 of Student's t, by degrees of freedom, from a table. */
const tTable: Readonly<Record<number, number>> = { 4: 1.5332, 5: 1.4759, 6: 1.4398, 7: 1.4149 };

function assertChange(actual: GroupSkill['change'], some: readonly MadeAnswer[]): void {
  const changes = listChanges(some);
  const n = changes.length;
  const mean = computeSum(changes) / n;
  const error = Math.sqrt(computeSum(changes.map((one) => (one - mean) ** 2)) / (n - 1) / n);
  const reach = (tTable[n - 1] ?? Number.NaN) * error;
  assert.equal(actual?.learners, n);
  assertNear(actual?.mean, mean);
  assertNear(actual?.low, mean - reach, 1e-3);
  assertNear(actual?.high, mean + reach, 1e-3);
}

test('Class skills have answers, changes and hardest items like sums of the sent answers', async () => {
  const { skills, since, ...others } = await readSkills();
  assert.deepEqual(others, {
    group_id: 'nine',
    days: 28,
    learners: learners.length + 1,
    source_lag_seconds: 0,
  });
  assert.equal(since, dateIn(-27));
  assert.deepEqual(valuesOf(skills, 'skill_id').sort(), [
    'algebra',
    'geometry',
    'mixed',
    'ratios',
    'reading',
  ]);
  for (const skill of skills) {
    const all = answers.filter((one) => skillsOf(one).includes(skill.skill_id));
    const recent = all.filter((one) => daysAgo(one) < 28);
    assert.equal(skill.answers, recent.length);
    assertChange(skill.change, all);
    // One second is too fast to count.
    const byItem = groupBy(
      recent.filter((one) => one.time_spent_seconds > 3),
      ({ item_id }) => item_id,
    );
    const hardest = [...byItem]
      .filter(([, own]) => own.length >= 5)
      .map(([item_id, own]) => ({
        ...{ item_id, answers: own.length, accuracy: shareRight(own) },
        expected: computeSum(own.map(({ chance }) => chance)) / own.length,
      }))
      .filter(({ accuracy, expected }) => accuracy < expected)
      .sort(
        (a, b) =>
          (a.accuracy * a.answers + 1) / (a.answers + 2) - (b.accuracy * b.answers + 1) / (b.answers + 2),
      );
    const items = skill.hardest_items ?? [];
    assert.deepEqual(valuesOf(items, 'item_id'), valuesOf(hardest.slice(0, 3), 'item_id'));
    for (const [i, item] of items.entries()) {
      assert.equal(item.answers, hardest[i]?.answers);
      assertNear(item.accuracy, hardest[i]?.accuracy);
      assertNear(item.expected, hardest[i]?.expected, 1e-3);
    }
  }
});

test('Class skills agree with POST and GET mastery, and are sorted by need', async () => {
  const [{ skills }, { json }] = await Promise.all([
    readSkills(),
    caller.send('POST', '/api/v1/mastery', { user_ids: learners }),
  ]);
  const details = await Promise.all(learners.map((user) => caller.get(`/api/v1/mastery/${user}`)));
  const { results }: ClassMastery = json.data;
  const order = skills.map((one) => [-one.struggling, one.expected_accuracy.mean] as const);
  assert.deepEqual(
    order,
    order.toSorted((a, b) => a[0] - b[0] || a[1] - b[1]),
  );
  for (const { skill_id, learners: count, mastered, stuck, struggling, expected_accuracy } of skills) {
    const shares = results.flatMap((one) =>
      one.status === 200 ? (one.data.expected_accuracy[skill_id] ?? []) : [],
    );
    const own = details.flatMap((one) =>
      one.json.data.skills.filter((skill: GroupSkill) => skill.skill_id === skill_id),
    );
    const sorted = shares.toSorted((a, b) => a - b);
    // Weights of the two nearest values.
    const quantile = (p: number): number => {
      const place = p * (sorted.length - 1);
      return computeSum(sorted.map((value, i) => value * Math.max(0, 1 - Math.abs(i - place))));
    };
    assert.equal(count, shares.length);
    assertNear(expected_accuracy.mean, computeSum(shares) / count);
    for (const [name, p] of [
      ['q1', 0.25],
      ['median', 0.5],
      ['q3', 0.75],
    ] as const)
      assertNear(expected_accuracy[name], quantile(p));
    assertNear(mastered, own.filter((one) => one.mastered).length / count);
    assert.equal(stuck, own.filter((one) => one.plateau_detected).length);
    const struggles = own.filter(
      (one) => one.plateau_detected || (one.total_attempts >= 3 && one.expected_accuracy < 0.6),
    );
    assert.equal(struggling, struggles.length);
  }
});

test('The class summary agrees with predictions, mastery and velocity', async () => {
  const summary = await readSummary();
  const [mastery, predictions, velocities] = await Promise.all([
    caller.send('POST', '/api/v1/mastery', { user_ids: learners }),
    caller.send('POST', '/api/v1/predictions', { user_ids: learners }),
    Promise.all(learners.map((user) => caller.get(`/api/v1/velocity/${user}`))),
  ]);
  const statuses = learners.map((_, i) => {
    const input = buildStatusInput(
      mastery.json.data.results[i].data,
      predictions.json.data.results[i].data,
      (id) => id,
    );
    return computeStatus(input);
  });
  const count = (...names: string[]) => statuses.filter((status) => names.includes(status)).length;
  const { on_track, at_risk, no_goal, goal_passed, idle, few_answers, ...others } = summary;
  assert.deepEqual(
    [on_track, at_risk, no_goal, goal_passed, idle, few_answers],
    [
      count('on_track', 'reached'),
      count('at_risk', 'unlikely'),
      ...['none', 'expired', 'idle', 'few'].map((one) => count(one)),
    ],
  );
  assert.deepEqual(
    [others.learners, others.with_answers, others.active],
    [learners.length + 1, learners.length, learners.length],
  );
  assertNear(
    others.answers_per_day ?? undefined,
    computeSum(velocities.map(({ json }) => json.data.answers_per_day)),
    1e-5,
  );
  assertChange(others.change, answers);
  const { skills } = await readSkills();
  for (const one of summary.reteach) {
    const skill = skills.find(({ skill_id }) => skill_id === one.skill_id);
    assert.deepEqual([one.struggling, one.learners], [skill?.struggling, skill?.learners]);
    assertNear(one.expected_accuracy, skill?.expected_accuracy.mean);
    assert.ok(one.struggling >= one.learners / 3);
  }
});

test('The class summary names each learner who needs help once, with the cause, the skill and the goal', async () => {
  const { attention, improved } = await readSummary();
  const reasons = new Map(attention.map((one) => [one.user_id, one]));
  assert.equal(reasons.size, attention.length);
  const { goal_tracking } = await read<Prediction>('predictions/declines');
  const chance = Math.floor(100 * goal_tracking.goal_probability);
  assert.deepEqual(attention[0], {
    ...{ user_id: 'stopped', display_name: markup, reason: 'IDLE', text: 'no answers for 9 days' },
    ...{ skill_id: null, skill_name: null },
  });
  assert.equal(reasons.get('guesses')?.reason, 'RAPID');
  const decline = reasons.get('declines');
  assert.equal(decline?.reason, 'DECLINE');
  assert.match(
    decline?.text ?? '',
    new RegExp(`points below earlier accuracy; goal in 21 days, ${chance} % likely$`),
  );
  assert.match(reasons.get('beginner')?.text ?? '', /^goal in 47 days, \d+ % likely$/);
  const stuck = reasons.get('stuck');
  const latest = answers
    .filter((one) => one.user_id === 'stuck' && skillsOf(one).includes(stuck?.skill_id as string))
    .slice(-12);
  assert.equal(stuck?.reason, 'STUCK');
  const right = latest.filter((one) => one.is_correct).length;
  assert.equal(stuck?.text, `stuck on ${stuck?.skill_name}: ${right} of the last 12 right`);
  for (const fine of ['strong', 'improves', 'four', 'absent']) assert.equal(reasons.has(fine), false, fine);
  assert.deepEqual(valuesOf(improved?.learners ?? [], 'user_id'), ['improves']);
});

test('A class without members, or without answers, has empty lists', async () => {
  await put('groups/empty', { name: 'Empty', user_ids: [] });
  await put('groups/new', { name: 'New', user_ids: ['not-yet', markup] });
  const longIds = Array.from({ length: 2000 }, (_, i) => `${i}'`.padEnd(128, '\u00e9'));
  await put('groups/long', { name: 'Long ids', user_ids: longIds });
  for (const [group, members] of [
    ['empty', 0],
    ['new', 2],
    ['long', 2000],
  ] as const) {
    const { skills, learners: size } = await readSkills(group);
    assert.deepEqual([skills, size], [[], members]);
    const summary = await readSummary(group);
    assert.deepEqual(
      [summary.learners, summary.with_answers, summary.active, summary.answers_per_day],
      [members, 0, 0, 0],
    );
    assert.deepEqual([summary.attention, summary.reteach, summary.change], [[], [], null]);
    assert.deepEqual(summary.improved, { skills: [], learners: [] });
    assert.deepEqual(summary.declined, { skills: [] });
  }
});

test('Class calls reject days outside 7 to 365, unknown groups and groups of other tenants', async () => {
  const other = callerOf(service, await (await keysOf({ after }, service)).add({ tenant: 'other-school' }));
  for (const call of ['skills', 'summary']) {
    const path = `/api/v1/groups/nine/${call}`;
    for (const days of ['6', '366', '7.5', 'x'])
      assert.equal(outcomeOf(await caller.get(`${path}?days=${days}`)), '400 INVALID_REQUEST', days);
    for (const days of [7, 365])
      assert.equal((await caller.get(`${path}?days=${days}`)).json.data.days, days);
    assert.equal(outcomeOf(await caller.get(`/api/v1/groups/unknown/${call}`)), '404 NOT_FOUND');
    assert.equal(outcomeOf(await other.get(path)), '404 NOT_FOUND');
  }
});
