/**
 * A panel of people, as their teacher sees them: in a tenant of which nothing is known, and in one with a catalogue and a
 * fit. Each band has its reason; docs/model.md shows the figures, and what about them is a limit of the model.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { runCommand } from '../support/command.js';
import { awayFromMidnight } from '../support/day.js';
import { callerOf } from '../support/http.js';
import { storeAnswers } from '../support/made-answers.js';
import { eventsOf, mathSkills, panel, readingSkills, schoolAnswers } from '../support/panel.js';
import { clickhouseOf, keysOf, sharedService } from '../support/service.js';
import { askUntil } from '../support/wait.js';

const service = await sharedService();
const keys = await keysOf({ after }, service);
const clickhouse = clickhouseOf({ after }, service);

type Range = readonly [low: number, high: number];

/** What a teacher would expect of one learner; all scores are totals, goals are 1200 within a year. */
interface Band {
  readonly why: string;
  readonly current: Range;
  /** Change of the prediction against the current score. */
  readonly in30: Range;
  readonly in120: Range;
  /** Of the interval in 30 days. */
  readonly width: Range;
  /** Whether 1200 is reached within a year; left out where either may be said. */
  readonly onTrack?: boolean;
  /** Codes of which one at least is advised. */
  readonly advice?: readonly string[];
  readonly momentum?: string;
  /** Where it differs in the tenant with a fit, and why. */
  readonly fitted?: Partial<Omit<Band, 'fitted'>> & Pick<Band, 'why'>;
}

/** Of whoever has the same chance on every skill, once each has answers enough: see docs/model.md. */
const nearMastery =
  'the fit says that who has mastered a skill is right 4 times of 5 and who has not 2 of 5, so on each of all skills this is mastery';

const unknown: Range = [380, 620];
const known: Range = [200, 450];

const bands: Readonly<Record<string, Band>> = {
  'beginner, 3 of 4 right': {
    why: 'four answers say next to nothing: the population, and wide',
    current: [990, 1110],
    in30: [-20, 30],
    in120: [-30, 60],
    width: unknown,
    onTrack: false,
  },
  'one right answer': {
    why: 'as the beginner',
    current: [1000, 1100],
    in30: [-20, 30],
    in120: [-30, 60],
    width: unknown,
    onTrack: false,
  },
  strong: {
    why: '90 % of 120 answers right is well above the mean, but eight skills are not all: no 1500',
    current: [1150, 1400],
    in30: [0, 70],
    in120: [0, 150],
    width: known,
    onTrack: true,
    momentum: 'building',
  },
  weak: {
    why: '30 % right is little more than chance',
    current: [680, 920],
    in30: [0, 90],
    in120: [0, 200],
    width: known,
    onTrack: false,
    advice: ['WEAK_SKILL', 'PLATEAU'],
  },
  average: {
    why: '55 % right is what mastery of one half comes to with guess .2 and slip .1',
    current: [950, 1130],
    in30: [0, 80],
    in120: [0, 200],
    width: known,
    advice: ['WEAK_SKILL', 'PLATEAU', 'READY', 'EXPLORE'],
  },
  guesser: {
    why: 'chance in two seconds: low, and nothing is learned that way',
    current: [680, 920],
    in30: [-20, 40],
    in120: [-20, 90],
    width: known,
    onTrack: false,
    advice: ['RAPID'],
  },
  'crammer on one skill': {
    why: 'forty answers on one skill say little of the section, and nothing of 20 others',
    current: [1020, 1170],
    in30: [-40, 40],
    in120: [-60, 80],
    width: unknown,
  },
  'stopped two months ago': {
    why: '80 % right, above the mean; who does not practise does not gain',
    current: [1040, 1280],
    in30: [-50, 0],
    in120: [-120, 0],
    width: known,
    onTrack: false,
  },
  improver: {
    why: '62 % right over all, better of late, ten answers a day: on the way up',
    current: [1000, 1220],
    in30: [0, 90],
    in120: [20, 220],
    width: known,
    onTrack: true,
    momentum: 'building',
  },
  'one section only': {
    why: '75 % right on all of a section; the other one is borrowed where it is known to be another',
    current: [1060, 1330],
    in30: [0, 80],
    in120: [0, 180],
    width: known,
    fitted: { why: nearMastery, current: [1250, 1500] },
  },
  'few of many': {
    why: 'sixty answers, three in four right, but on two skills',
    current: [1010, 1160],
    in30: [-30, 50],
    in120: [-30, 110],
    width: unknown,
  },
  'everything wrong': {
    why: 'forty wrong answers: far down, with much room',
    current: [480, 760],
    in30: [0, 110],
    in120: [0, 230],
    width: known,
    onTrack: false,
    advice: ['WEAK_SKILL'],
  },
  'everything right': {
    why: 'sixty right answers on twenty skills: near the top, not all of it',
    current: [1350, 1590],
    in30: [-40, 60],
    in120: [-80, 90],
    width: known,
    onTrack: true,
  },
  'long history': {
    why: '70 % right of 1,200 answers on twenty skills: above the mean, and known well',
    current: [1100, 1330],
    in30: [0, 60],
    in120: [0, 150],
    width: known,
    onTrack: true,
    fitted: { why: nearMastery, current: [1350, 1590], width: [250, 450] },
  },
  '300 answers on one day': {
    why: '80 % right: known well today; a few such days in fourteen are many answers, and partly forgotten between',
    current: [1150, 1420],
    in30: [-100, 80],
    in120: [-200, 180],
    width: known,
    fitted: { why: nearMastery, current: [1400, 1600] },
  },
  'stuck on one skill': {
    why: '40 % right on one skill, ten days long: below the mean, little known',
    current: [850, 1050],
    in30: [-20, 60],
    in120: [-20, 120],
    width: unknown,
    onTrack: false,
    advice: ['PLATEAU'],
  },
};

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
        if (skill.correct_attempts === 0) assert.equal(skill.efficiency_index, null, name);
        if (skill.mastered)
          assert.ok(skill.correct_attempts / skill.total_attempts >= 0.5, `${name} ${skill.skill_id}`);
      }
      const { momentum } = bands[name] as Band;
      if (momentum !== undefined) assert.equal(velocity.momentum_label, momentum);
      if (name === 'improver') assert.ok(velocity.velocity_per_week > 0);
      if (name === 'stopped two months ago') assert.equal(velocity.active_days, 0);
      if (name === 'stuck on one skill') assert.deepEqual(velocity.plateaus, ['algebra-1']);
      if (name === 'guesser')
        assert.ok(skills.every((skill: { efficiency_index: null }) => skill.efficiency_index === null));
    }
  });
