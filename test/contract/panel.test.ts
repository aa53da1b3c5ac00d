/**
 * Forecasts of a panel of learners in a tenant without a model and, in the long form, in one with a catalogue and a fit.
 * docs/understand/score-results.md lists their values.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { computeSum } from '../../src/lists.js';
import { awayFromMidnight } from '../support/builders/day.js';
import { fitHere } from '../support/builders/fits.js';
import { storeAnswers } from '../support/builders/made-answers.js';
import {
  eventsOf,
  mathSkills,
  type PanelLearner,
  panel,
  type Range,
  readingSkills,
  schoolAnswers,
} from '../support/builders/panel.js';
import { callerOf, type JsonAnswer } from '../support/http/http.js';
import { casesOf } from '../support/runner/long-form.js';
import { clickhouseOf, keysOf, redisOf, sharedService } from '../support/servers/service.js';
import { valuesOf } from '../support/values-of.js';
import { askUntil } from '../support/wait.js';

const service = await sharedService();
const keys = await keysOf({ after }, service);

interface Tenant {
  readonly name: string;
  readonly tenant: string;
  readonly caller: ReturnType<typeof callerOf>;
}

async function createTenant(name: string): Promise<Tenant> {
  return { name, tenant: keys.nameOf(name), caller: callerOf(service, await keys.add({ tenant: name })) };
}
const tenants = casesOf([await createTenant('fresh'), await createTenant('fitted')], 2);

async function call({ caller }: Tenant, path: string, method = 'GET', body?: object) {
  const { status, json, text } = await caller.send(method, `/api/v1/${path}`, body);
  assert.equal(status, 200, text);
  return json.data;
}

/** Sets sections and fits the answers of 300 simulated learners. */
async function fitSchool(to: Tenant): Promise<void> {
  for (const skillId of mathSkills) await call(to, `skills/${skillId}`, 'PUT', { section: 'math' });
  for (const skillId of readingSkills) await call(to, `skills/${skillId}`, 'PUT', { section: 'rw' });
  const clickhouse = clickhouseOf({ after }, service);
  const redis = await redisOf({ after }, service.redisUrl);
  await storeAnswers(clickhouse, schoolAnswers(to.tenant, 6));
  assert.equal(await fitHere(service, redis, clickhouse, to.tenant), 'published');
  await askUntil(
    'the fitted model',
    () => call(to, 'skills/algebra-1'),
    ({ parameters }) => parameters.source === 'fitted',
  );
}

before(async () => {
  await awayFromMidnight();
  for (const tenant of tenants) {
    if (tenant.name === 'fitted') await fitSchool(tenant);
    const now = Date.now();
    for (const learner of panel) {
      const events = eventsOf(learner, now);
      for (let from = 0; from < events.length; from += 1000)
        assert.equal((await tenant.caller.trackAll(events.slice(from, from + 1000))).status, 200);
      await call(tenant, `goals/${encodeURIComponent(learner.name)}`, 'PUT', { target_score: 1200 });
    }
  }
});

/** Forecasts of the whole panel, in its order. */
async function predictPanel(tenant: Tenant, days: number): Promise<JsonAnswer['json'][]> {
  const body = { user_ids: panel.map(({ name }) => name), days };
  const { results } = await call(tenant, 'predictions', 'POST', body);
  return results.map(({ data }: { data: unknown }) => data);
}

const assertWithin = (value: number, [low, high]: Range, name: string): void =>
  assert.ok(low <= value && value <= high, `${name}: ${value} is not within ${low} to ${high}`);

function assertForecast(
  learner: PanelLearner,
  width: Range,
  soon: JsonAnswer['json'],
  late: JsonAnswer['json'],
) {
  const { name } = learner;
  const { total } = soon.confidence_intervals;
  const { current_total: current } = soon;
  assertWithin(current, learner.current, `${name}, current`);
  assertWithin(soon.predicted_total_in_30_days - current, learner.in30, `${name}, change in 30 days`);
  assertWithin(late.predicted_total_in_120_days - current, learner.in120, `${name}, change in 120 days`);
  assertWithin(total.high - total.low, width, `${name}, width`);
  assert.ok(total.low <= current && current <= total.high, name);
  const { on_track, goal_probability, days_to_goal } = soon.goal_tracking;
  if (learner.onTrack !== undefined) assert.equal(on_track, learner.onTrack, name);
  assert.ok(
    on_track ? goal_probability > 0.4 : goal_probability < 0.6,
    `${name}: ${on_track} ${goal_probability}`,
  );
  if (on_track) assert.notEqual(days_to_goal, null, name);
  const codes: string[] = soon.recommendation_codes.map(({ code }: { code: string }) => code);
  const { advice } = learner;
  if (advice)
    assert.ok(
      codes.some((code) => advice.includes(code)),
      `${name}: ${codes}`,
    );
  assert.equal(soon.recommendations_reason === null, codes.length > 0, name);
  assert.ok(on_track || codes.slice(0, 2).includes('GOAL_GAP'), `${name}: ${codes}`);
}

for (const tenant of tenants) {
  test(`Forecasts of the ${tenant.name} panel are within the ranges that a teacher would expect`, async () => {
    const [soon, late] = [await predictPanel(tenant, 30), await predictPanel(tenant, 120)];
    for (const [i, learner] of panel.entries()) {
      const { width, fittedWidth } = learner;
      assertForecast(learner, tenant.name === 'fitted' ? (fittedWidth ?? width) : width, soon[i], late[i]);
    }
  });

  test(`Forecasts of the ${tenant.name} panel have no jump or zigzag and become less certain with time`, async () => {
    const states = panel.map(() => ({ total: 0, day: 0, turns: 0, direction: 0, math: 0, rw: 0 }));
    for (const days of [1, 2, 3, 5, 7, 10, 14, 21, 30, 45, 60, 90, 120, 180, 270, 365]) {
      for (const [i, data] of (await predictPanel(tenant, days)).entries()) {
        const name = `${panel[i]?.name} in ${days} days`;
        const state = states[i] as (typeof states)[number];
        const change = data[`predicted_total_in_${days}_days`] - (state.total || data.current_total);
        // Two sections, each rounded to ten.
        assert.ok(Math.abs(change) <= 20 + 3 * (days - state.day), `${name}: change of ${change}`);
        const direction = Math.abs(change) > 20 ? Math.sign(change) : 0;
        if (direction !== 0 && direction === -state.direction) state.turns += 1;
        assert.ok(state.turns <= 1, `${name}: ${state.turns} turns`);
        state.direction = direction || state.direction;
        state.total = data[`predicted_total_in_${days}_days`];
        state.day = days;
        for (const section of ['math', 'rw'] as const) {
          const { low, high } = data.confidence_intervals[section];
          // The limits of the scale cut an interval, and its ends are rounded outwards to ten.
          if (low === 200 || high === 800) continue;
          assert.ok(high - low >= state[section] - 10, `${name}: ${section} is ${high - low} wide`);
          state[section] = Math.max(high - low, state[section]);
        }
      }
    }
  });

  test(`Mastery and velocity of the ${tenant.name} panel agree with each other and with the answers`, async () => {
    for (const learner of panel) {
      const { name, momentum } = learner;
      const { skills } = await call(tenant, `mastery/${encodeURIComponent(name)}`);
      assert.equal(computeSum(valuesOf(skills, 'total_attempts')), eventsOf(learner, 0).length);
      const velocity = await askUntil(
        `all answers of ${name}`,
        () => call(tenant, `velocity/${encodeURIComponent(name)}`),
        ({ source_lag_seconds: lag }) => lag === 0,
      );
      const plateaus = skills.filter((skill: { plateau_detected: boolean }) => skill.plateau_detected);
      assert.equal(velocity.plateaus.length, plateaus.length, name);
      for (const { skill_id, mastered, total_attempts, correct_attempts, ...skill } of skills) {
        assert.equal(skill.efficiency_index === null, skill.efficiency_reason !== null, name);
        if (mastered) assert.ok(correct_attempts / total_attempts >= 0.5, `${name} ${skill_id}`);
        if (name === 'guesser')
          assert.equal(skill.efficiency_reason, total_attempts < 10 ? 'too_few_times' : 'rapid_answers');
      }
      if (momentum !== undefined) assert.equal(velocity.momentum_label, momentum, name);
      if (name === 'improver') assert.ok(velocity.velocity_per_week > 0);
      if (name === 'stopped two months ago') assert.equal(velocity.active_days, 0);
      if (name === 'stuck on one skill') assert.deepEqual(velocity.plateaus, ['algebra-1']);
    }
  });
}
