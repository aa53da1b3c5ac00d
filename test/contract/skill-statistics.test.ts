/** What is told of skills over all learners, against figures reckoned here from the answers that were posted. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { computeSum, groupBy } from '../../src/lists.js';
import { awayFromMidnight } from '../support/builders/day.js';
import { seeded } from '../support/builders/random.js';
import { type Caller, callerOf, type JsonAnswer } from '../support/http/http.js';
import { timedSums, viewEfficiency } from '../support/inspect/view-efficiency.js';
import { keysOf, sharedService } from '../support/servers/service.js';
import { askUntil } from '../support/wait.js';

const service = await sharedService();
const keys = await keysOf({ after }, service);
const caller = callerOf(service, service.key);
const stranger = callerOf(service, await keys.add({ tenant: 'other' }));
const old = callerOf(service, await keys.add({ tenant: 'old' }));
const dayMs = 86_400_000;

interface Posted {
  readonly user_id: string;
  readonly skill_id: string;
  readonly item_id: string;
  readonly is_correct: boolean;
  readonly time_spent_seconds: number;
  readonly confidence_score: number;
  readonly occurred_at: string;
}

/** With what the answer to the learner and the list of the learner's answers say of it. */
interface Counted extends Posted {
  readonly day: string;
  readonly masteryBefore: number;
  readonly masteryAfter: number;
  readonly pCorrect: number;
  readonly plateau: boolean;
}

const odd = '😀/ü\\n"%2F';
const skills = ['algebra', odd];
const learners = 12;
const random = seeded(24);

/** Learner 1 has 3 answers on algebra, the last 36: they begin, and come, in different weeks. The seventh learns nothing. */
const answersOf = (learner: number): Posted[] =>
  skills.flatMap((skill_id, s) =>
    Array.from({ length: s === 0 ? 3 * learner : 4 }, (_, i) => {
      const daysAgo = 7 * learner - 5 * Math.floor(i / 3) + 3 * s;
      const known = random() < 0.3 + 0.01 * i;
      return {
        ...{ user_id: `learner-${learner}`, skill_id },
        item_id: `item-${Math.floor(random() * 4)}`,
        is_correct: learner === 7 ? i % 3 === 0 : known || random() < 0.3,
        time_spent_seconds: 1 + Math.floor(random() * 25),
        confidence_score: 1 + Math.floor(random() * 5),
        occurred_at: new Date(Date.now() - Math.max(0, daysAgo) * dayMs - 60_000).toISOString(),
      };
    }),
  );

async function post(as: Caller, events: readonly Posted[]): Promise<Counted[]> {
  const { status, json } = await as.trackAll(events);
  assert.equal(status, 200, JSON.stringify(json));
  const [{ user_id } = { user_id: '' }] = events;
  const path = `/api/v1/learners/${user_id}/attempts?limit=1000`;
  const list = await askUntil(
    'the list',
    () => as.get(path),
    ({ status }) => status === 200,
  );
  const told: JsonAnswer['json'][] = list.json.data.attempts.toReversed();
  assert.equal(told.length, events.length);
  return events.map((event, i) => ({
    ...event,
    day: event.occurred_at.slice(0, 10),
    masteryBefore: told[i].mastery_before,
    masteryAfter: told[i].mastery_after,
    pCorrect: told[i].p_correct,
    plateau: told[i].plateau_detected,
  }));
}

const counted: Counted[] = [];

before(async () => {
  await awayFromMidnight();
  for (let learner = 1; learner <= learners; learner++)
    counted.push(...(await post(caller, answersOf(learner))));
  await post(stranger, answersOf(learners));
  const stored = ({ json }: JsonAnswer) =>
    computeSum(json.data?.skills.map(({ answers }: { answers: number }) => answers) ?? []) === counted.length;
  await askUntil('all answers', () => caller.get('/api/v1/skill-statistics'), stored);
});

const mean = (values: readonly number[]): number => computeSum(values) / values.length;
const meanOf = (of: keyof Counted, answers: readonly Counted[]): number =>
  mean(answers.map((answer) => Number(answer[of])));
const onSkill = (skill: string): Counted[] => counted.filter(({ skill_id }) => skill_id === skill);
const byLearner = (answers: readonly Counted[]): Counted[][] => [
  ...groupBy(answers, ({ user_id }) => user_id).values(),
];

/** With what is between two values in proportion, as ClickHouse's quantileExactInclusive. */
function quantile(values: readonly number[], level: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const place = level * (sorted.length - 1);
  const [low = 0, high = low] = sorted.slice(Math.floor(place));
  return low + (high - low) * (place % 1);
}

/** The list of answers shows four decimals, and means of them are as near. */
const near = (actual: number, expected: number, tolerance = 2e-4): void =>
  assert.ok(Math.abs(actual - expected) <= tolerance, `${actual} instead of ${expected}`);

const gainOf = (answers: readonly Counted[]): number =>
  mean(answers.map(({ masteryBefore, masteryAfter }) => masteryAfter - masteryBefore));
const sumsOf = (answers: readonly Counted[]) =>
  timedSums(answers.map((one) => ({ correct: one.is_correct, seconds: one.time_spent_seconds })));

/** Whether the learner answered on a plateau on the last day with answers. */
const onPlateau = (answers: readonly Counted[]): boolean =>
  answers.some(
    ({ day, plateau }) =>
      plateau &&
      day ===
        answers
          .map((one) => one.day)
          .sort()
          .at(-1),
  );

function assertSums(told: JsonAnswer['json'], skill: string): void {
  const all = onSkill(skill);
  const each = byLearner(all);
  assert.deepEqual([told.skill_id, told.learners, told.answers], [skill, each.length, all.length]);
  near(told.accuracy, meanOf('is_correct', all), 5e-5);
  near(told.mean_p_correct, meanOf('pCorrect', all));
  near(told.plateau_share, each.filter(onPlateau).length / each.length, 5e-5);
}

test('the list has what each learner did on each skill, and nothing of other tenants', async () => {
  const { status, json } = await caller.get('/api/v1/skill-statistics');
  assert.equal(status, 200);
  const told = json.data.skills;
  assert.equal(told.length, skills.length);
  for (const [i, skill] of skills.entries()) {
    const all = onSkill(skill);
    assertSums(told[i], skill);
    near(told[i].velocity_per_attempt, quantile(byLearner(all).map(gainOf), 0.5));
    const efficiency = byLearner(all).map((one) => viewEfficiency(sumsOf(one), sumsOf(all)) ?? assert.fail());
    near(told[i].efficiency_index, quantile(efficiency, 0.5), 0.1);
    const minutes = computeSum(all.map(({ time_spent_seconds }) => time_spent_seconds)) / 60;
    near(told[i].correct_per_minute, computeSum(all.map(({ is_correct }) => Number(is_correct))) / minutes);
  }
  assert.ok(told[0].plateau_share > 0, 'no learner is on a plateau: the test shows less than it should');
});

test('pages of the list, in the order of UTF-8 bytes', async () => {
  const first = (await caller.get('/api/v1/skill-statistics?limit=1')).json.data;
  assert.deepEqual([first.skills.length, first.skills[0].skill_id], [1, 'algebra']);
  const path = `/api/v1/skill-statistics?limit=1&cursor=${first.next_cursor}`;
  const second = (await caller.get(path)).json.data;
  assert.deepEqual([second.skills[0].skill_id, second.next_cursor], [odd, null]);
  const bad = await caller.get('/api/v1/skill-statistics?cursor=algebra');
  assert.deepEqual([bad.status, bad.json.error.code], [400, 'INVALID_REQUEST']);
  const empty = callerOf(service, await keys.add({ tenant: 'empty' }));
  assert.deepEqual((await empty.get('/api/v1/skill-statistics')).json.data.skills, []);
});

const statisticsOf = (skill: string, as = caller): Promise<JsonAnswer> =>
  as.get(`/api/v1/skills/${encodeURIComponent(skill)}/statistics`);

/** Wilson 1927, as Agresti and Coull write it. */
function wilson(share: number, n: number): readonly [low: number, high: number] {
  const z = 1.959964;
  const reach = z * Math.sqrt((share * (1 - share) + z ** 2 / (4 * n)) / n);
  const ends = [-reach, reach].map((end) => (share + z ** 2 / (2 * n) + end) / (1 + z ** 2 / n));
  return [ends[0] as number, ends[1] as number];
}

test('one skill: the same sums, and the learning curve of those who came so far', async () => {
  for (const skill of skills) {
    const { status, json } = await statisticsOf(skill);
    assert.equal(status, 200);
    const told = json.data;
    assertSums(told, skill);
    const each = byLearner(onSkill(skill));
    for (const [name, level] of [
      ['q1', 0.25],
      ['median', 0.5],
      ['q3', 0.75],
    ] as const)
      near(told.velocity_per_attempt[name], quantile(each.map(gainOf), level));
    const steps = Array.from({ length: 30 }, (_, i) => each.flatMap((one) => one[i] ?? []));
    const shown = steps.filter((answers) => answers.length >= 5);
    assert.deepEqual(
      told.learning_curve.map(({ attempt, learners }: Record<string, number>) => [attempt, learners]),
      shown.map((answers, i) => [i + 1, answers.length]),
    );
    for (const [i, answers] of shown.entries()) {
      const { accuracy, low, high, p_correct, mastery } = told.learning_curve[i];
      const share = meanOf('is_correct', answers);
      for (const [j, end] of wilson(share, answers.length).entries()) near([low, high][j], end);
      near(accuracy, share, 5e-5);
      near(p_correct, meanOf('pCorrect', answers));
      near(mastery, meanOf('masteryBefore', answers));
    }
  }
  const { learning_curve: curve } = (await statisticsOf('algebra')).json.data;
  assert.deepEqual(
    [curve.length, curve[0].learners, curve.at(-1).learners],
    [24, 12, 5],
    'learner 8 came to 24',
  );
});

const mondayOf = (day: string): number => {
  const days = Date.parse(day) / dayMs;
  return days - ((days + 3) % 7);
};
const firstDays = (): Map<string, string> =>
  new Map(
    byLearner(counted).map((all) => [all[0]?.user_id ?? '', all.map(({ day }) => day).sort()[0] ?? '']),
  );

test('cohorts: by the week of the first answer on any skill, week by week', async () => {
  const first = firstDays();
  const cohortOf = ({ user_id }: Counted): number => mondayOf(first.get(user_id) ?? '');
  for (const skill of skills) {
    const cells = groupBy(onSkill(skill), (one) => {
      const week = (mondayOf(one.day) - cohortOf(one)) / 7;
      return `${new Date(cohortOf(one) * dayMs).toISOString().slice(0, 10)} ${week}`;
    });
    const told = (await statisticsOf(skill)).json.data.cohorts;
    assert.deepEqual(
      new Set(told.map(({ cohort, week }: Record<string, unknown>) => `${cohort} ${week}`)),
      new Set(cells.keys()),
    );
    for (const { cohort, week, learners: count, answers, accuracy, mean_mastery } of told) {
      const cell = cells.get(`${cohort} ${week}`) ?? [];
      assert.deepEqual([count, answers], [byLearner(cell).length, cell.length]);
      near(accuracy, meanOf('is_correct', cell), 5e-5);
      const days = groupBy(cell, ({ user_id, day }) => `${user_id} ${day}`);
      const closings = [...days.values()].map(lastOfDay);
      near(mean_mastery, mean(closings));
    }
  }
});

/** The latest, and of one moment the one that was counted last. */
const lastOfDay = (answers: readonly Counted[]): number =>
  answers.reduce((last, one) => (one.occurred_at >= last.occurred_at ? one : last)).masteryAfter;

test('only the last 26 weeks of cohorts', async () => {
  const weeks = groupBy(await oldAnswers(), ({ occurred_at }) => occurred_at);
  assert.equal(weeks.size, 30);
  const { cohorts, learners: all } = (await statisticsOf('old', old)).json.data;
  assert.deepEqual([all, cohorts.length], [30, 26]);
  assert.ok(cohorts.every(({ week }: { week: number }) => week === 0));
});

/** A learner a week who comes once. */
async function oldAnswers(): Promise<Posted[]> {
  const events = Array.from({ length: 30 }, (_, i) => ({
    ...{ user_id: `old-${i}`, skill_id: 'old', item_id: 'old', is_correct: true },
    ...{ time_spent_seconds: 30, confidence_score: 3 },
    occurred_at: new Date(Date.now() - 7 * i * dayMs - 60_000).toISOString(),
  }));
  assert.equal((await old.trackAll(events)).status, 200);
  const isAll = ({ json }: JsonAnswer) => json.data?.learners === 30;
  await askUntil('the old answers', () => statisticsOf('old', old), isAll);
  return events;
}

const itemsOf = (skill: string, query = '', as = caller): Promise<JsonAnswer> =>
  as.get(`/api/v1/skills/${encodeURIComponent(skill)}/items${query}`);

test('items: the hardest first, with what was predicted and who was sure', async () => {
  const { json } = await itemsOf('algebra');
  const byItem = groupBy(onSkill('algebra').filter(isSolution), ({ item_id }) => item_id);
  const wanted = [...byItem].filter(([, answers]) => answers.length >= 10);
  const hardness = ([id, answers]: (typeof wanted)[number]) => [meanOf('is_correct', answers), id] as const;
  wanted.sort((a, b) => hardness(a)[0] - hardness(b)[0] || (hardness(a)[1] < hardness(b)[1] ? -1 : 1));
  const told = json.data.items;
  assert.deepEqual(
    told.map(({ item_id }: { item_id: string }) => item_id),
    wanted.map(([id]) => id),
  );
  assert.equal(wanted.length, 4);
  for (const [i, [, answers]] of wanted.entries()) {
    const item = told[i];
    const share = meanOf('is_correct', answers);
    const predicted = meanOf('pCorrect', answers);
    assert.deepEqual([item.learners, item.answers], [byLearner(answers).length, answers.length]);
    near(item.accuracy, share, 5e-5);
    near(item.p_correct, predicted);
    near(item.beyond, share - predicted);
    for (const [j, end] of wilson(share, answers.length).entries())
      near([item.low, item.high][j], end - predicted);
    // Nothing is fitted here: guess .2 and slip .1.
    near(item.expected, mean(answers.map(({ masteryBefore: p }) => 0.9 * p + 0.2 * (1 - p))));
    near(
      item.median_seconds,
      quantile(
        answers.map((one) => one.time_spent_seconds),
        0.5,
      ),
      0.05,
    );
    const sure = answers.filter(({ confidence_score }) => confidence_score >= 4);
    if (sure.length < 10) assert.equal(item.sure_and_wrong, null);
    else near(item.sure_and_wrong, 1 - meanOf('is_correct', sure), 5e-5);
    assert.equal(item.misleading, isMisleading(answers));
  }
  assert.ok(
    told.some(({ misleading }: { misleading: unknown }) => misleading !== null),
    'all have too few learners',
  );
});

/** Without a fit answers are rapid below 3 s. */
const isSolution = ({ time_spent_seconds: seconds }: Counted): boolean => seconds >= 3;

function isMisleading(answers: readonly Counted[]): boolean | null {
  const strong = answers.filter(({ masteryBefore }) => masteryBefore >= 0.8);
  const weak = answers.filter(({ masteryBefore }) => masteryBefore < 0.5);
  if (strong.length < 15 || weak.length < 15) return null;
  return meanOf('is_correct', strong) <= meanOf('is_correct', weak);
}

test('pages of items go on behind the last, also among those of one accuracy', async () => {
  const all = (await itemsOf('algebra')).json.data.items;
  const seen: unknown[] = [];
  let query = '?limit=1';
  for (;;) {
    const { items, next_cursor } = (await itemsOf('algebra', query)).json.data;
    seen.push(...items);
    if (next_cursor === null) break;
    query = `?limit=1&cursor=${next_cursor}`;
  }
  assert.deepEqual(seen, all);
  const encode = (text: string): string => Buffer.from(text).toString('base64url');
  for (const cursor of [
    'x',
    encode('item:2 a'),
    encode('item:0.5 '),
    encode('item:a b'),
    encode('after:a'),
  ]) {
    const { status, json } = await itemsOf('algebra', `?cursor=${cursor}`);
    assert.deepEqual([status, json.error?.code], [400, 'INVALID_REQUEST'], cursor);
  }
});

test('a skill whose items have few answers has none to tell of; one that nobody answered is not found', async () => {
  assert.deepEqual(
    (await itemsOf(odd)).json.data.items.filter(({ answers }: { answers: number }) => answers < 10),
    [],
  );
  assert.equal((await caller.call({ method: 'PUT', path: '/api/v1/skills/set', body: '{}' })).status, 200);
  for (const read of [statisticsOf, itemsOf]) {
    for (const skill of ['nobody', 'ALGEBRA', 'old', 'set']) {
      const { status, json } = await read(skill);
      assert.deepEqual([status, json.error?.code], [404, 'SKILL_NOT_FOUND'], skill);
    }
  }
});

test('the first answer on a skill is told of at once', async () => {
  const events = [{ user_id: 'new', skill_id: 'new', is_correct: true }];
  const fresh = callerOf(service, await keys.add({ tenant: 'fresh' }));
  assert.equal((await fresh.trackAll(events)).status, 200);
  const { status, json } = await statisticsOf('new', fresh);
  assert.deepEqual(
    [status, json.data?.answers, json.data?.learning_curve],
    [200, 1, []],
    JSON.stringify(json),
  );
  assert.equal(json.data.cohorts[0].week, 0);
});
