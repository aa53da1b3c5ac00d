/** The explanation of a mastery: its steps from ClickHouse, the parameters, and the effect of the next answer. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { selectNumber } from '../../src/warehouse/clickhouse/client.js';
import { timeAgo } from '../support/builders/day.js';
import { callerOf, event, type JsonAnswer, outcomeOf } from '../support/http/http.js';
import { assertNear } from '../support/near.js';
import { clickhouseOf, sharedService } from '../support/servers/service.js';
import { valuesOf } from '../support/values-of.js';
import { askUntil, waitFor } from '../support/wait.js';

const service = await sharedService();
const clickhouse = clickhouseOf({ after }, service);
const caller = callerOf(service, service.key);

interface SentAnswer {
  readonly isCorrect: boolean;
  readonly daysAgo: number;
  readonly difficulty?: number;
  readonly skill?: string;
}

interface TrackedAnswer {
  readonly sent: Record<string, unknown>;
  /** From the response of track-answer. */
  readonly data: Record<string, number>;
}

async function track(user_id: string, answers: readonly SentAnswer[]): Promise<TrackedAnswer[]> {
  const events = answers.map(({ isCorrect, daysAgo, difficulty = null, skill: skill_id = 'algebra' }) => ({
    ...{ user_id, skill_id, occurred_at: timeAgo(daysAgo) },
    ...{ is_correct: isCorrect, question_difficulty: difficulty },
  }));
  const { status, json } = await caller.trackAll(events);
  assert.equal(status, 200);
  return events.map((sent, i) => ({ sent, data: json.data.results[i].data }));
}

const waitForRows = (user: string, rows: number): Promise<number> =>
  waitFor(`${rows} answers of ${user} in ClickHouse`, async () => {
    const query = `SELECT toUInt32(count()) FROM attempts WHERE tenant = '${service.tenant}' AND user_id = '${user}'`;
    return (await selectNumber(clickhouse, query)) === rows;
  });

const get = (path: string): Promise<JsonAnswer> => caller.get(`/api/v1/mastery/${path}`);

/** Repeats the request while ClickHouse is too slow to return steps. */
async function explain(user: string, query = '') {
  const { json } = await askUntil(
    `the steps of ${user}`,
    () => get(`${user}/algebra?explain=true${query}`),
    ({ json }) => json.data?.explanation.steps !== null,
  );
  return json.data.explanation;
}

/** A value in ten-thousandths. Fails if it has more than four decimals. */
function toUnits(value: number): number {
  const units = Math.round(value * 1e4);
  assert.equal(units / 1e4, value);
  return units;
}

const history: readonly SentAnswer[] = [
  { isCorrect: true, daysAgo: 200 },
  { isCorrect: true, daysAgo: 199.9, difficulty: 2 },
  { isCorrect: true, daysAgo: 199.8, difficulty: -2 },
  { isCorrect: true, daysAgo: 5, skill: 'another' },
  { isCorrect: true, daysAgo: 120, difficulty: 3 },
  { isCorrect: true, daysAgo: 60 },
  { isCorrect: true, daysAgo: 60.5 },
  { isCorrect: false, daysAgo: 2, difficulty: -3 },
  { isCorrect: false, daysAgo: 1.9 },
];

test('Explanation steps add up to the responses of track-answer', async () => {
  const tracked = (await track('ada', history)).filter(({ sent }) => sent.skill_id === 'algebra');
  await waitForRows('ada', history.length);
  const { steps, pending_attempts, source_lag_seconds, note, ...rest } = await explain('ada');
  assert.deepEqual([pending_attempts, source_lag_seconds, note], [0, 0, null]);
  assert.equal(steps.length, tracked.length);
  let previous = 0.3;
  for (const [i, step] of steps.entries()) {
    const { sent, data } = tracked[i] as TrackedAnswer;
    const { is_correct, question_difficulty, occurred_at, mastery_before, mastery_after } = step;
    const shown = { user_id: 'ada', skill_id: 'algebra', occurred_at, is_correct, question_difficulty };
    assert.deepEqual(shown, sent);
    assert.equal(step.mastery_before_forgetting, previous);
    assert.deepEqual([mastery_before, mastery_after], [data.mastery_before, data.mastery_after]);
    const change = toUnits(step.evidence) + toUnits(step.learning);
    assert.equal(toUnits(previous) + toUnits(step.forgetting) + change, toUnits(mastery_after));
    assert.equal(change, toUnits(data.velocity as number));
    assert.ok(step.p_correct > 0 && step.p_correct < 1);
    assert.equal(step.parameters_version, 0);
    previous = mastery_after;
  }
  // Pauses of 80 and 60 days reduce mastery. Pauses within a day and before a late answer do not.
  const forgotten = steps.filter(({ forgetting }: Record<string, number>) => (forgetting ?? 0) < 0);
  assert.deepEqual(valuesOf(steps, 'learner_seq'), [1, 2, 3, 5, 6, 7, 8, 9]);
  assert.deepEqual(valuesOf(forgotten, 'learner_seq'), [5, 6, 8]);
  const texts = assertTermsAddUp(rest);
  for (const name of ['base', 'bkt', 'ability', 'ever_right_on_skill']) assert.ok(texts.has(name), name);
});

test('Explanation steps add up for answers with several skills, and name the other skills', async () => {
  const odd = "o'dd \\ (ü), [x]";
  const questions = [['algebra'], ['algebra', odd], [odd, 'geometry', 'algebra'], ['geometry', odd]];
  const events = questions.flatMap((skill_ids, i) =>
    [true, false].map((is_correct) => ({
      ...{ user_id: 'eva', skill_ids, is_correct, occurred_at: timeAgo(50 - 10 * i) },
      question_difficulty: i - 1,
    })),
  );
  const { json } = await caller.trackAll(events);
  await waitForRows('eva', events.length);
  const { steps, pending_attempts, note } = await explain('eva');
  assert.deepEqual([pending_attempts, note, steps.length], [0, null, 6]);
  for (const [i, step] of steps.entries()) {
    const { data } = json.data.results[i];
    const sent = events[i]?.skill_ids ?? [];
    const { mastery_before, mastery_after } = data.skills[sent.indexOf('algebra')];
    assert.deepEqual([step.mastery_before, step.mastery_after], [mastery_before, mastery_after]);
    const change = toUnits(step.forgetting) + toUnits(step.evidence) + toUnits(step.learning);
    assert.equal(toUnits(step.mastery_before_forgetting) + change, toUnits(mastery_after));
    const others = sent.filter((one) => one !== 'algebra');
    assert.deepEqual(step.other_skills, others.length === 0 ? undefined : others);
  }
  const history = await get(`eva/${encodeURIComponent(odd)}/history`);
  const { answers, total_attempts } = history.json.data;
  assert.deepEqual([answers.length, total_attempts], [6, 6]);
  for (const answer of answers) {
    const { data } = json.data.results[answer.learner_seq - 1];
    const own = data.skills.find(({ skill_id }: { skill_id: string }) => skill_id === odd);
    assert.deepEqual([answer.skill_id, answer.skill_ids], [odd, events[answer.learner_seq - 1]?.skill_ids]);
    assert.deepEqual([answer.mastery_before, answer.mastery_after], [own.mastery_before, own.mastery_after]);
  }
});

test('An explanation predicts the mastery and p_correct of the next answer', async () => {
  // Long ago, so that forgetting changes no digit between two reads.
  const longAgo = { isCorrect: true, daysAgo: 300 };
  await track('ben', [longAgo, longAgo]);
  const plain = (await get('ben/algebra')).json.data;
  const { explanation, ...entry } = (await get('ben/algebra?explain=true')).json.data;
  assert.deepEqual(entry, plain);
  assert.deepEqual(entry, { user_id: 'ben', ...(await get('ben')).json.data.skills[0] });
  assert.deepEqual(explanation.parameters, {
    ...{ p_init: 0.3, p_learn: 0.1, p_guess: 0.2, p_slip: 0.1, p_forget: 0 },
    ...{ source: 'default', version: 0, fitted_at: null },
  });
  const { mastery, mastery_at_last_attempt, expected_low, expected_accuracy, expected_high } = entry;
  const forgotten = toUnits(explanation.forgetting_since_last_attempt);
  assert.equal(toUnits(mastery_at_last_attempt) + forgotten, toUnits(mastery));
  assert.ok(forgotten < 0);
  assert.equal(explanation.p_correct, expected_accuracy);
  assert.ok(0 < expected_low && expected_low < expected_accuracy);
  assert.ok(expected_accuracy < expected_high && expected_high < 1);
  const { if_correct, if_wrong } = explanation.next;
  assert.ok(if_correct.mastery > mastery && if_wrong.mastery < mastery);
  for (const next of [if_correct, if_wrong])
    assert.equal(toUnits(mastery) + toUnits(next.change), toUnits(next.mastery));

  const [next] = await track('ben', [{ isCorrect: true, daysAgo: 0 }]);
  assert.deepEqual([next?.data.mastery_after, next?.data.velocity], [if_correct.mastery, if_correct.change]);
  await waitForRows('ben', 3);
  assertNear((await explain('ben')).steps[2].p_correct, explanation.p_correct, 2e-4);
});

interface ExplainedPrediction {
  readonly p_correct: number;
  readonly log_odds: number;
  readonly terms: readonly { readonly name: string; readonly logits: number; readonly text: string }[];
}

/** @returns the texts of the terms by name */
function assertTermsAddUp({ p_correct, log_odds, terms }: ExplainedPrediction): ReadonlyMap<string, string> {
  assert.equal(
    terms.reduce((sum, { logits }) => sum + toUnits(logits), 0),
    toUnits(log_odds),
  );
  assertNear(1 / (1 + Math.exp(-log_odds)), p_correct, 5e-4);
  const texts = new Map(terms.map(({ name, text }) => [name, text]));
  assert.equal(texts.size, terms.length, 'names of terms are distinct');
  for (const { name, logits, text } of terms) {
    const effect = logits === 0 ? 'hardly changes' : logits > 0 ? 'raises' : 'lowers';
    assert.ok(text.endsWith(`: this ${effect} the chance.`), `${name}: ${text}`);
    assert.doesNotMatch(name, /item/, 'a skill has no item term');
  }
  return texts;
}

test('An explanation returns the last steps, 10 by default and at most 50', async () => {
  const tracked = await track(
    'carl',
    Array.from({ length: 55 }, (_, i) => ({ isCorrect: i % 3 > 0, daysAgo: 1 })),
  );
  await waitForRows('carl', tracked.length);
  for (const [query, count] of Object.entries({ '': 10, '&steps=1': 1, '&steps=50': 50 })) {
    const { steps, pending_attempts } = await explain('carl', query);
    assert.deepEqual([steps.length, pending_attempts], [count, 0]);
    assert.equal(steps.at(-1).mastery_after, tracked.at(-1)?.data.mastery_after);
    assert.equal(steps[0].mastery_before_forgetting, tracked.at(-1 - count)?.data.mastery_after);
  }
  const invalid = ['explain=1', 'explain=TRUE', 'explain=true&steps=0', 'explain=false&steps=51'];
  for (const query of invalid)
    assert.equal(outcomeOf(await get(`carl/algebra?${query}`)), '400 INVALID_REQUEST', query);
  for (const query of ['explain=false', 'steps=5', 'explain=false&steps=50']) {
    const { status, json } = await get(`carl/algebra?${query}`);
    assert.deepEqual([status, 'explanation' in json.data], [200, false], query);
  }
});

test('An explanation finds ids byte for byte, and rejects invalid and unknown ones', async () => {
  const user_id = "a/b\\'; -- é%";
  const skill_id = '😀/ü\\n"%2F';
  assert.equal((await caller.track(event({ user_id, skill_id }))).status, 200);
  const user = encodeURIComponent(user_id);
  const { json } = await askUntil(
    'the step',
    () => get(`${user}/${encodeURIComponent(skill_id)}?explain=true`),
    ({ json }) => json.data.explanation.steps?.length === 1,
  );
  assert.deepEqual([json.data.user_id, json.data.skill_id], [user_id, skill_id]);
  for (const [path, expected] of [
    ['nobody/algebra?explain=true', '404 USER_NOT_FOUND'],
    [`${user}/geometry`, '404 SKILL_NOT_FOUND'],
    [`${user}/geometry?explain=true`, '404 SKILL_NOT_FOUND'],
    [`${user}/%00`, '400 INVALID_REQUEST'],
    [`${user}/`, '404 NOT_FOUND'],
    [`${user}/algebra/`, '404 NOT_FOUND'],
  ] as const)
    assert.equal(outcomeOf(await get(path)), expected, path);
});

test('An explanation leaves out forgetting if the previous row is missing', async () => {
  await track('fay', new Array<SentAnswer>(5).fill({ isCorrect: true, daysAgo: 0 }));
  await waitForRows('fay', 5);
  await clickhouse.command({ query: "DELETE FROM attempts WHERE user_id = 'fay' AND learner_seq = 4" });
  const { steps, pending_attempts, note } = await explain('fay');
  assert.deepEqual([pending_attempts, typeof note, steps.length], [1, 'string', 4]);
  const { mastery_before_forgetting, forgetting, evidence, learning } = steps[3];
  assert.deepEqual([mastery_before_forgetting, forgetting], [null, null]);
  assert.ok(evidence !== null && learning !== null);
});
