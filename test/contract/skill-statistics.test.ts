/** Statistics of skills over all learners, compared with sums over the posted answers. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { SkillItem } from '../../src/client/types.js';
import { dayMs } from '../../src/domain/base/common.js';
import { normalCdf } from '../../src/domain/base/normal-distribution.js';
import { computeSum, groupBy, indices } from '../../src/lists.js';
import { awayFromMidnight, timeAgo } from '../support/builders/day.js';
import { seeded } from '../support/builders/random.js';
import { callerOf, event, type JsonAnswer, outcomeOf } from '../support/http/http.js';
import { readPages } from '../support/http/read-pages.js';
import { assertNear } from '../support/near.js';
import { keysOf, sharedService } from '../support/servers/service.js';
import { valuesOf } from '../support/values-of.js';
import { askUntil } from '../support/wait.js';

interface TimedAnswer {
  readonly is_correct: boolean;
  readonly time_spent_seconds: number;
}

function sumUp(answers: readonly TimedAnswer[]) {
  const logs = answers.map(({ time_spent_seconds }) => Math.log(time_spent_seconds));
  const count = answers.length;
  const correct = answers.filter(({ is_correct }) => is_correct).length;
  const logMean = computeSum(logs) / count;
  return {
    share: correct / count,
    logMean,
    logVariance: computeSum(logs.map((log) => log ** 2)) / count - logMean ** 2,
  };
}

/** Answers that the prior stands for: half of them one standard deviation faster than 75 s, half as much slower. */
const prior: readonly TimedAnswer[] = indices(20).map((i) => ({
  ...{ is_correct: i < 15, time_spent_seconds: 75 * Math.exp(i % 2 === 0 ? 0.6 : -0.6) },
}));

/** Corrected for guessing with a chance of 1 in 5. */
const corrected = (share: number): number => Math.max(0, (5 * share - 1) / 4);

/** The efficiency index of the views. @param own answers of a learner or a cohort @param all answers on the skill */
function viewEfficiency(own: readonly TimedAnswer[], all: readonly TimedAnswer[]): number {
  const { share, logMean } = sumUp(own);
  const usual = sumUp([...prior, ...all]);
  const slowness = (logMean - usual.logMean) / Math.sqrt(Math.max(usual.logVariance, 0.04));
  const known = corrected(share);
  const time = 0.6 * known * Math.min(1.5, Math.max(-1.5, slowness));
  return 100 * normalCdf((2 * (known - corrected(usual.share)) - time) / Math.sqrt(1.36));
}

const service = await sharedService();
const keys = await keysOf({ after }, service);
const caller = callerOf(service, service.key);

interface PostedAnswer {
  readonly user_id: string;
  readonly skill_id: string;
  readonly item_id: string;
  readonly is_correct: boolean;
  readonly time_spent_seconds: number;
  readonly confidence_score: number;
  readonly occurred_at: string;
}

/** A posted answer with the values that the learner's list of answers has for it. */
interface CountedAnswer extends PostedAnswer {
  readonly day: string;
  readonly masteryBefore: number;
  readonly masteryAfter: number;
  readonly pCorrect: number;
  readonly plateau: boolean;
}

const specialName = '😀/ü\\n"%2F';
const skills = ['algebra', specialName];
const learners = 12;
const random = seeded(24);

/** Learner n has 3 n answers on algebra and starts n weeks ago. Learner 7 does not improve. */
const answersOf = (learner: number): PostedAnswer[] =>
  skills.flatMap((skill_id, s) =>
    Array.from({ length: s === 0 ? 3 * learner : 4 }, (_, i) => {
      const daysAgo = 7 * learner - 5 * Math.floor(i / 3) + 3 * s;
      const knows = random() < 0.3 + 0.01 * i;
      return {
        user_id: `learner-${learner}`,
        skill_id,
        item_id: `item-${Math.floor(random() * 4)}`,
        is_correct: learner === 7 ? i % 3 === 0 : knows || random() < 0.3,
        time_spent_seconds: 1 + Math.floor(random() * 25),
        confidence_score: 1 + Math.floor(random() * 5),
        occurred_at: timeAgo(Math.max(0, daysAgo)),
      };
    }),
  );

async function post(events: readonly PostedAnswer[]): Promise<CountedAnswer[]> {
  const { status, text } = await caller.trackAll(events);
  assert.equal(status, 200, text);
  const path = `/api/v1/learners/${events[0]?.user_id}/attempts?limit=1000`;
  const list = await askUntil(
    'the list of answers',
    () => caller.get(path),
    ({ status }) => status === 200,
  );
  const rows: JsonAnswer['json'][] = list.json.data.attempts.toReversed();
  assert.equal(rows.length, events.length);
  return events.map((event, i) => ({
    ...event,
    day: event.occurred_at.slice(0, 10),
    masteryBefore: rows[i].mastery_before,
    masteryAfter: rows[i].mastery_after,
    pCorrect: rows[i].p_correct,
    plateau: rows[i].plateau_detected,
  }));
}

const counted: CountedAnswer[] = [];

const getList = (query = '', as = caller): Promise<JsonAnswer> => as.get(`/api/v1/skill-statistics${query}`);
const getStatistics = (skill: string, as = caller): Promise<JsonAnswer> =>
  as.get(`/api/v1/skills/${encodeURIComponent(skill)}/statistics`);
const getItems = (skill: string, query = '', by = caller): Promise<JsonAnswer> =>
  by.get(`/api/v1/skills/${encodeURIComponent(skill)}/items${query}`);

before(async () => {
  await awayFromMidnight();
  for (let learner = 1; learner <= learners; learner++) counted.push(...(await post(answersOf(learner))));
  // The same learners and skills in another tenant must not change the sums.
  const other = callerOf(service, await keys.add({ tenant: 'other' }));
  assert.equal((await other.trackAll(answersOf(learners))).status, 200);
  const isStored = ({ json }: JsonAnswer) =>
    computeSum(valuesOf(json.data?.skills ?? [], 'answers')) === counted.length;
  await askUntil('all answers in ClickHouse', () => getList(), isStored);
});

const mean = (values: readonly number[]): number => computeSum(values) / values.length;
const meanOf = (field: keyof CountedAnswer, answers: readonly CountedAnswer[]): number =>
  mean(answers.map((answer) => Number(answer[field])));
const onSkill = (skill: string): CountedAnswer[] => counted.filter(({ skill_id }) => skill_id === skill);
const byLearner = (answers: readonly CountedAnswer[]): CountedAnswer[][] => [
  ...groupBy(answers, ({ user_id }) => user_id).values(),
];
const meanGain = (answers: readonly CountedAnswer[]): number =>
  mean(answers.map(({ masteryBefore, masteryAfter }) => masteryAfter - masteryBefore));

/** Interpolates linearly, like ClickHouse's quantileExactInclusive. */
function quantile(values: readonly number[], level: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const place = level * (sorted.length - 1);
  const [low = 0, high = low] = sorted.slice(Math.floor(place));
  return low + (high - low) * (place % 1);
}

/** Wilson score interval (1927). */
function computeWilson(share: number, n: number): { low: number; high: number } {
  const z = 1.959964;
  const reach = z * Math.sqrt((share * (1 - share) + z ** 2 / (4 * n)) / n);
  const [low, high] = [-reach, reach].map((end) => (share + z ** 2 / (2 * n) + end) / (1 + z ** 2 / n));
  return { low: low as number, high: high as number };
}

/** Whether the learner had a plateau on the last day with answers. */
function endsOnPlateau(answers: readonly CountedAnswer[]): boolean {
  const lastDay = answers
    .map(({ day }) => day)
    .sort()
    .at(-1);
  return answers.some(({ day, plateau }) => plateau && day === lastDay);
}

function assertSums(data: JsonAnswer['json'], skill: string): void {
  const all = onSkill(skill);
  const groups = byLearner(all);
  assert.deepEqual([data.skill_id, data.learners, data.answers], [skill, groups.length, all.length]);
  assertNear(data.accuracy, meanOf('is_correct', all), 5e-5);
  assertNear(data.mean_p_correct, meanOf('pCorrect', all));
  assertNear(data.plateau_share, groups.filter(endsOnPlateau).length / groups.length, 5e-5);
}

test('GET skill-statistics returns sums and medians over the learners of each skill', async () => {
  const { status, json } = await getList();
  assert.equal(status, 200);
  const rows = json.data.skills;
  assert.equal(rows.length, skills.length);
  for (const [i, skill] of skills.entries()) {
    const all = onSkill(skill);
    const groups = byLearner(all);
    assertSums(rows[i], skill);
    assertNear(rows[i].velocity_per_attempt, quantile(groups.map(meanGain), 0.5));
    const efficiency = groups.map((own) => viewEfficiency(own, all));
    assertNear(rows[i].efficiency_index, quantile(efficiency, 0.5), 0.1);
    const minutes = computeSum(all.map(({ time_spent_seconds }) => time_spent_seconds)) / 60;
    assertNear(rows[i].correct_per_minute, (meanOf('is_correct', all) * all.length) / minutes);
  }
  assert.ok(rows[0].plateau_share > 0, 'no learner has a plateau, so its share is not tested');
});

test('GET skill-statistics returns pages in the order of UTF-8 bytes', async () => {
  const pages = await readPages<{ skill_id: string }>(getList, 'skills', 1);
  assert.deepEqual(valuesOf(pages.flat(), 'skill_id'), ['algebra', specialName]);
  const empty = callerOf(service, await keys.add({ tenant: 'empty' }));
  assert.deepEqual((await getList('', empty)).json.data.skills, []);
});

test('Statistics of a skill have quartiles and a learning curve of attempts with five learners', async () => {
  for (const skill of skills) {
    const { status, json } = await getStatistics(skill);
    assert.equal(status, 200);
    assertSums(json.data, skill);
    const groups = byLearner(onSkill(skill));
    for (const [name, level] of Object.entries({ q1: 0.25, median: 0.5, q3: 0.75 }))
      assertNear(json.data.velocity_per_attempt[name], quantile(groups.map(meanGain), level));
    const attempts = Array.from({ length: 30 }, (_, i) => groups.flatMap((own) => own[i] ?? []));
    const shown = attempts.filter((answers) => answers.length >= 5);
    const curve = json.data.learning_curve;
    assert.deepEqual(
      curve.map(({ attempt, learners }: Record<string, number>) => [attempt, learners]),
      shown.map((answers, i) => [i + 1, answers.length]),
    );
    for (const [i, answers] of shown.entries()) {
      const share = meanOf('is_correct', answers);
      const { low, high } = computeWilson(share, answers.length);
      assertNear(curve[i].low, low);
      assertNear(curve[i].high, high);
      assertNear(curve[i].accuracy, share, 5e-5);
      assertNear(curve[i].p_correct, meanOf('pCorrect', answers));
      assertNear(curve[i].mastery, meanOf('masteryBefore', answers));
    }
    if (skill === 'algebra')
      assert.deepEqual([curve.length, curve.at(-1).learners], [24, 5], 'learners 8 to 12');
  }
});

/** Days since 1970. */
const mondayOf = (day: string): number => {
  const days = Date.parse(day) / dayMs;
  return days - ((days + 3) % 7);
};

/** Mastery after the last answer. Of answers with the same time, the last one counted. */
const closingMastery = (answers: readonly CountedAnswer[]): number =>
  answers.reduce((last, one) => (one.occurred_at >= last.occurred_at ? one : last)).masteryAfter;

test('Statistics of a skill group learners by the week of their first answer on any skill', async () => {
  const cohorts = new Map(
    byLearner(counted).map((all) => [all[0]?.user_id, Math.min(...all.map(({ day }) => mondayOf(day)))]),
  );
  for (const skill of skills) {
    const cells = groupBy(onSkill(skill), ({ user_id, day }) => {
      const cohort = cohorts.get(user_id) ?? 0;
      return `${new Date(cohort * dayMs).toISOString().slice(0, 10)} ${(mondayOf(day) - cohort) / 7}`;
    });
    const rows = (await getStatistics(skill)).json.data.cohorts;
    assert.deepEqual(
      new Set(rows.map(({ cohort, week }: Record<string, unknown>) => `${cohort} ${week}`)),
      new Set(cells.keys()),
    );
    for (const { cohort, week, ...row } of rows) {
      const cell = cells.get(`${cohort} ${week}`) ?? [];
      assert.deepEqual([row.learners, row.answers], [byLearner(cell).length, cell.length]);
      assertNear(row.accuracy, meanOf('is_correct', cell), 5e-5);
      const days = groupBy(cell, ({ user_id, day }) => `${user_id} ${day}`);
      assertNear(row.mean_mastery, mean([...days.values()].map(closingMastery)));
    }
  }
});

test('Statistics of a skill return the cohorts of the last 26 weeks only', async () => {
  const old = callerOf(service, await keys.add({ tenant: 'old' }));
  const events = Array.from({ length: 30 }, (_, i) =>
    event({ user_id: `old-${i}`, skill_id: 'old', occurred_at: timeAgo(7 * i) }),
  );
  assert.equal((await old.trackAll(events)).status, 200);
  const { json } = await askUntil(
    'the old answers',
    () => getStatistics('old', old),
    ({ json }) => json.data?.learners === 30,
  );
  assert.deepEqual(valuesOf(json.data.cohorts, 'week'), new Array(26).fill(0));
});

/** Without a fit, answers under 3 s are rapid. */
const isSolution = ({ time_spent_seconds: seconds }: CountedAnswer): boolean => seconds >= 3;

/** @param high upper end of the interval of the accuracy, minus the prediction */
function isMisleading(answers: readonly CountedAnswer[], high: number): boolean | null {
  const strong = answers.filter(({ masteryBefore }) => masteryBefore >= 0.8);
  const weak = answers.filter(({ masteryBefore }) => masteryBefore < 0.5);
  if (strong.length < 15 || weak.length < 15) return null;
  return meanOf('is_correct', strong) <= meanOf('is_correct', weak) && high < 0;
}

test('GET items returns the items with ten answers, hardest first, without rapid answers', async () => {
  const items = (await getItems('algebra')).json.data.items;
  const byItem = groupBy(onSkill('algebra').filter(isSolution), ({ item_id }) => item_id);
  assert.equal(items.length, 4);
  assert.deepEqual(
    new Set(valuesOf(items, 'item_id')),
    new Set([...byItem].filter(([, answers]) => answers.length >= 10).map(([id]) => id)),
  );
  const hardestFirst = items.toSorted((a: SkillItem, b: SkillItem) => a.accuracy - b.accuracy);
  assert.deepEqual(items, hardestFirst);
  for (const item of items) {
    const answers = byItem.get(item.item_id) ?? [];
    const share = meanOf('is_correct', answers);
    const predicted = meanOf('pCorrect', answers);
    const { low, high } = computeWilson(share, answers.length);
    assert.deepEqual([item.learners, item.answers], [byLearner(answers).length, answers.length]);
    assertNear(item.accuracy, share, 5e-5);
    assertNear(item.p_correct, predicted);
    assertNear(item.beyond, share - predicted);
    assertNear(item.low, low - predicted);
    assertNear(item.high, high - predicted);
    // Default parameters: guess .2 and slip .1.
    assertNear(item.expected, mean(answers.map(({ masteryBefore: p }) => 0.9 * p + 0.2 * (1 - p))));
    const seconds = answers.map(({ time_spent_seconds }) => time_spent_seconds);
    assertNear(item.median_seconds, quantile(seconds, 0.5), 0.05);
    const sure = answers.filter(({ confidence_score }) => confidence_score >= 4);
    if (sure.length < 10) assert.equal(item.sure_and_wrong, null);
    else assertNear(item.sure_and_wrong, 1 - meanOf('is_correct', sure), 5e-5);
    assert.equal(item.misleading, isMisleading(answers, high - predicted));
  }
  const known = items.filter(({ misleading }: SkillItem) => misleading !== null);
  assert.notEqual(known.length, 0, 'no item has enough learners, so misleading is not tested');
  const rare = (await getItems(specialName)).json.data.items;
  assert.ok(rare.every(({ answers }: SkillItem) => answers >= 10));
});

const sumAnswers = (items: readonly SkillItem[]): number => computeSum(items.map(({ answers }) => answers));

test('GET items marks an item as misleading only if learners also do worse than predicted', async () => {
  const tenant = callerOf(service, await keys.add({ tenant: 'misled' }));
  // Strong learners answer 12 questions correctly first. All fail `trap` and solve `easy`.
  const events = indices(40).flatMap((i) => {
    const answer = { user_id: `misled-${i}`, skill_id: 'misled' };
    const practice = indices(i % 2 === 0 ? 12 : 0).map(() => event({ ...answer, item_id: 'practice' }));
    const answers = { trap: false, easy: true };
    return [
      ...practice,
      ...Object.entries(answers).map(([item_id, is_correct]) => event({ ...answer, item_id, is_correct })),
    ];
  });
  assert.equal((await tenant.trackAll(events)).status, 200);
  const { json } = await askUntil(
    'the items',
    () => getItems('misled', '', tenant),
    ({ json }) => sumAnswers(json.data?.items ?? []) === events.length,
  );
  const flags = json.data.items.map(({ item_id, misleading }: SkillItem) => [item_id, misleading]);
  assert.deepEqual(Object.fromEntries(flags), { practice: false, easy: false, trap: true });
});

test('GET items continues after the last item of a page and rejects an invalid cursor', async () => {
  const all = (await getItems('algebra')).json.data.items;
  const pages = await readPages((query) => getItems('algebra', query), 'items', 1);
  assert.deepEqual(pages.flat(), all);
  for (const text of ['item:2 a', 'item:0.5 ', 'item:a b', 'after:a']) {
    const cursor = Buffer.from(text).toString('base64url');
    assert.equal(outcomeOf(await getItems('algebra', `?cursor=${cursor}`)), '400 INVALID_REQUEST', text);
  }
});

test('Statistics and items return 404 for a skill without answers in the tenant', async () => {
  assert.equal((await caller.send('PUT', '/api/v1/skills/set', {})).status, 200);
  for (const get of [getStatistics, getItems])
    for (const skill of ['unknown', 'ALGEBRA', 'old', 'set'])
      assert.equal(outcomeOf(await get(skill)), '404 SKILL_NOT_FOUND', skill);
});

test('Statistics of a skill include its first answer immediately', async () => {
  const fresh = callerOf(service, await keys.add({ tenant: 'fresh' }));
  assert.equal((await fresh.track(event({ skill_id: 'new' }))).status, 200);
  const { status, json } = await getStatistics('new', fresh);
  assert.deepEqual([status, json.data?.answers, json.data?.learning_curve], [200, 1, []]);
  assert.equal(json.data.cohorts[0].week, 0);
});
