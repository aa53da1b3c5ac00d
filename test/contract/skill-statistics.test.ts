/** What is told of skills over all learners, against figures reckoned here from the answers that were posted. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { normalCdf } from '../../src/domain/base/normal.js';
import { groupedBy, sumOf } from '../../src/lists.js';
import { awayFromMidnight } from '../support/day.js';
import { type Caller, callerOf, type JsonAnswer } from '../support/http.js';
import { seeded } from '../support/random.js';
import { keysOf, sharedService } from '../support/service.js';
import { askUntil } from '../support/wait.js';

const service = await sharedService();
const keys = await keysOf({ after }, service);
const caller = callerOf(service, service.key);
const stranger = callerOf(service, await keys.add({ tenant: 'other' }));
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
        item_id: `item-${Math.floor(random() * 5)}`,
        is_correct: learner === 7 ? i % 3 === 0 : known || random() < 0.3,
        time_spent_seconds: 5 + Math.floor(random() * 90),
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
    sumOf(json.data?.skills.map(({ answers }: { answers: number }) => answers) ?? []) === counted.length;
  await askUntil('all answers', () => caller.get('/api/v1/skill-statistics'), stored);
});

const mean = (values: readonly number[]): number => sumOf(values) / values.length;
const meanOf = (of: keyof Counted, answers: readonly Counted[]): number =>
  mean(answers.map((answer) => Number(answer[of])));
const onSkill = (skill: string): Counted[] => counted.filter(({ skill_id }) => skill_id === skill);
const byLearner = (answers: readonly Counted[]): Counted[][] => [
  ...groupedBy(answers, ({ user_id }) => user_id).values(),
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
const surpriseOf = (answers: readonly Counted[]): number =>
  meanOf('is_correct', answers) - meanOf('pCorrect', answers);
const logsOf = (answers: readonly Counted[]): number[] =>
  answers.map(({ time_spent_seconds: seconds }) => Math.log(seconds));

/** science.md 5, of means. */
function efficiencyOf(answers: readonly Counted[], all: readonly Counted[]): number {
  const logs = logsOf(all);
  const squares = mean(all.map(({ is_correct, pCorrect }) => (Number(is_correct) - pCorrect) ** 2));
  const surprise = (surpriseOf(answers) - surpriseOf(all)) / Math.sqrt(squares);
  const spread = Math.sqrt(Math.max(mean(logs.map((log) => log ** 2)) - mean(logs) ** 2, 0.04));
  return 100 * normalCdf((surprise - (mean(logsOf(answers)) - mean(logs)) / spread) / Math.SQRT2);
}

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
    const efficiency = byLearner(all).map((one) => efficiencyOf(one, all));
    near(told[i].efficiency_index, quantile(efficiency, 0.5), 0.1);
    const minutes = sumOf(all.map(({ time_spent_seconds }) => time_spent_seconds)) / 60;
    near(told[i].correct_per_minute, sumOf(all.map(({ is_correct }) => Number(is_correct))) / minutes);
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
