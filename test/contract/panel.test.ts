/**
 * A panel of people, as their teacher sees them: in a tenant of which nothing is known, and in one with a catalogue and a
 * fit. Each band has its reason; docs/model.md shows the figures, and what about them is a limit of the model.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { awayFromMidnight } from '../support/builders/day.js';
import { storeAnswers } from '../support/builders/made-answers.js';
import { eventsOf, mathSkills, panel, readingSkills, schoolAnswers } from '../support/builders/panel.js';
import { type Band, bands, type Range } from '../support/builders/panel-bands.js';
import { runCommand } from '../support/commands/command.js';
import { callerOf } from '../support/http/http.js';
import { clickhouseOf, keysOf, sharedService } from '../support/servers/service.js';
import { askUntil } from '../support/wait.js';

const service = await sharedService();
const keys = await keysOf({ after }, service);
const clickhouse = clickhouseOf({ after }, service);

interface Tenant {
  readonly name: string;
  readonly caller: ReturnType<typeof callerOf>;
  readonly tenant: string;
}

async function createTenant(name: string): Promise<Tenant> {
  return { name, caller: callerOf(service, await keys.add({ tenant: name })), tenant: keys.nameOf(name) };
}

const tenants = [await createTenant('fresh'), await createTenant('fitted')] as const;

/** Skills of two sections, and parameters from 300 simulated learners. */
async function fit({ tenant, caller }: Tenant): Promise<void> {
  for (const [section, ids] of [
    ['math', mathSkills],
    ['rw', readingSkills],
  ] as const)
    for (const skillId of ids) {
      const body = JSON.stringify({ section });
      assert.equal(
        (await caller.call({ method: 'PUT', path: `/api/v1/skills/${skillId}`, body })).status,
        200,
      );
    }
  await storeAnswers(clickhouse, schoolAnswers(tenant, 6));
  const env = { REDIS_URL: service.redisUrl, CLICKHOUSE_URL: service.clickhouseUrl };
  const { code, out, err } = await runCommand('fit', env, '--tenant', tenant, '--json');
  assert.equal(code, 0, err);
  assert.match(out, /"published":true|published/);
  const inForce = async () => (await caller.get('/api/v1/skills/algebra-1')).json.data.parameters.source;
  await askUntil('the fit is in force', inForce, (source) => source === 'fitted');
}

async function answer({ caller }: Tenant): Promise<void> {
  const now = Date.now();
  for (const person of panel) {
    const events = eventsOf(person, now);
    for (let from = 0; from < events.length; from += 1000)
      assert.equal((await caller.trackAll(events.slice(from, from + 1000))).status, 200);
    const goal = { method: 'PUT', path: `/api/v1/goals/${encodeURIComponent(person.name)}` };
    assert.equal((await caller.call({ ...goal, body: '{"target_score":1200}' })).status, 200);
  }
}

before(async () => {
  await awayFromMidnight();
  await fit(tenants[1]);
  for (const tenant of tenants) await answer(tenant);
});

const get = async ({ caller }: Tenant, path: string) => {
  const { status, json, text } = await caller.get(`/api/v1/${path}`);
  assert.equal(status, 200, text);
  return json.data;
};
const predict = (tenant: Tenant, name: string, days: number) =>
  get(tenant, `predictions/${encodeURIComponent(name)}?days=${days}`);

const isWithin = (value: number, [low, high]: Range, what: string): void =>
  assert.ok(low <= value && value <= high, `${what}: ${value} is not within ${low} to ${high}`);

const bandOf = (tenant: Tenant, name: string): Band => {
  const { fitted, ...fresh } = bands[name] as Band;
  return tenant.name === 'fitted' ? { ...fresh, ...fitted } : fresh;
};

for (const tenant of tenants)
  for (const { name } of panel) {
    const band = bandOf(tenant, name);
    test(`${tenant.name}: ${name} (${band.why})`, async () => {
      const told = await predict(tenant, name, 30);
      const later = await predict(tenant, name, 120);
      const { total } = told.confidence_intervals;
      isWithin(told.current_total, band.current, 'current');
      isWithin(told.predicted_total_in_30_days - told.current_total, band.in30, 'change in 30 days');
      isWithin(later.predicted_total_in_120_days - told.current_total, band.in120, 'change in 120 days');
      isWithin(total.high - total.low, band.width, 'width');
      assert.ok(total.low <= told.current_total && told.current_total <= total.high);
      const { on_track, goal_probability, days_to_goal } = told.goal_tracking;
      if (band.onTrack !== undefined) assert.equal(on_track, band.onTrack);
      // Both are about the same day.
      assert.ok(
        on_track ? goal_probability > 0.4 : goal_probability < 0.6,
        `${on_track} ${goal_probability}`,
      );
      if (on_track) assert.notEqual(days_to_goal, null);
      const codes = told.recommendation_codes.map(({ code }: { code: string }) => code);
      if (band.advice)
        assert.ok(
          codes.some((code: string) => band.advice?.includes(code)),
          codes.join(),
        );
      assert.equal(told.recommendations_reason === null, codes.length > 0);
      assert.ok(on_track || codes[0] === 'GOAL_GAP' || codes[1] === 'GOAL_GAP', codes.join());
    });
  }

/** Days at which curves are looked at. */
const looks = [1, 2, 3, 5, 7, 10, 14, 21, 30, 45, 60, 90, 120, 180, 270, 365];

for (const tenant of tenants)
  test(`${tenant.name}: forecasts have no jump and no zigzag, and are never more certain further ahead`, async () => {
    for (const { name } of panel) {
      const curve = [];
      for (const days of looks) curve.push({ days, ...(await predict(tenant, name, days)) });
      let [last, turns, direction] = [curve[0].current_total, 0, 0];
      let day = 0;
      for (const { days, ...told } of curve) {
        const total = told[`predicted_total_in_${days}_days`];
        // Two sections, each rounded to ten.
        assert.ok(
          Math.abs(total - last) <= 20 + 3 * (days - day),
          `${name}: ${last} > ${total} in ${days} days`,
        );
        const sign = Math.abs(total - last) > 20 ? Math.sign(total - last) : 0;
        if (sign !== 0 && sign === -direction) turns += 1;
        direction = sign || direction;
        [last, day] = [total, days];
      }
      assert.ok(turns <= 1, `${name} turns ${turns} times`);
      for (const section of ['math', 'rw']) {
        let width = 0;
        for (const {
          days,
          confidence_intervals: { [section]: interval },
        } of curve) {
          if (interval.low === 200 || interval.high === 800) break;
          // Ends are rounded outwards to ten.
          assert.ok(interval.high - interval.low >= width - 10, `${name} ${section} in ${days} days`);
          width = Math.max(width, interval.high - interval.low);
        }
      }
    }
  });

for (const tenant of tenants)
  test(`${tenant.name}: what mastery and velocity tell fits`, async () => {
    for (const person of panel) {
      const { name } = person;
      const answered = person.sessions.reduce((sum, { answers }) => sum + answers, 0);
      const { skills } = await get(tenant, `mastery/${encodeURIComponent(name)}`);
      const sum = (field: string) =>
        skills.reduce((all: number, skill: Record<string, number>) => all + (skill[field] ?? 0), 0);
      assert.equal(sum('total_attempts'), answered);
      const path = `velocity/${encodeURIComponent(name)}`;
      const velocity = await askUntil(
        `all answers of ${name}`,
        () => get(tenant, path),
        ({ source_lag_seconds: lag }) => lag === 0,
      );
      const stuck = skills.filter((skill: { plateau_detected: boolean }) => skill.plateau_detected);
      assert.deepEqual(velocity.plateaus.length, stuck.length);
      for (const skill of skills) {
        assert.equal(skill.efficiency_index === null, skill.efficiency_reason !== null, name);
        if (skill.mastered)
          assert.ok(skill.correct_attempts / skill.total_attempts >= 0.5, `${name} ${skill.skill_id}`);
      }
      const { momentum } = bands[name] as Band;
      if (momentum !== undefined) assert.equal(velocity.momentum_label, momentum);
      if (name === 'improver') assert.ok(velocity.velocity_per_week > 0);
      if (name === 'stopped two months ago') assert.equal(velocity.active_days, 0);
      if (name === 'stuck on one skill') assert.deepEqual(velocity.plateaus, ['algebra-1']);
      if (name === 'guesser')
        for (const { total_attempts, efficiency_reason } of skills)
          assert.equal(efficiency_reason, total_attempts < 10 ? 'too_few_times' : 'rapid_answers');
    }
  });
