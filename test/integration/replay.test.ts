/**
 * The attempt rows alone rebuild what Redis holds, bit for bit (ADR 9): learners of every habit answer over HTTP
 * while two models come into force; then their rows are applied one by one to nothing.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { encodeModel } from '../../src/contracts/model.js';
import type { Conditions } from '../../src/domain/conditions.js';
import { type RememberedItem, recallItem } from '../../src/domain/item-window.js';
import { applyAnswer, newLearner, newSkill } from '../../src/domain/mastery.js';
import { itemTermCount, skillTermCount } from '../../src/domain/prediction/model.js';
import type { ItemTrace } from '../../src/domain/prediction/traces.js';
import {
  defaultSkillParameters,
  type ParameterSource,
  type TenantModel,
  unfittedModel,
} from '../../src/domain/tenant-model.js';
import type { Answer, LearnerState, Section, SkillState } from '../../src/domain/types.js';
import { hashItem } from '../../src/store/item-id.js';
import { encodeItems } from '../../src/store/item-store.js';
import { learnerKey, metaKey, partitionOf } from '../../src/store/keys.js';
import { decodeLearner, encodeItem, encodeLearner, encodeSkill } from '../../src/store/learner-codec.js';
import { loadLearners } from '../../src/store/learner-store.js';
import { createModelPublisher, publishModel } from '../../src/store/model-store.js';
import { selectRows } from '../../src/warehouse/client.js';
import { callerOf } from '../support/http.js';
import { seeded } from '../support/random.js';
import { clickhouseOf, redisOf, startSecondApi, startService } from '../support/service.js';
import { waitFor } from '../support/wait.js';

const tenant = 'default';
const service = await startService({ after });
const second = await startSecondApi({ after }, service);
const callers = [service, second].map((at) => callerOf(at, at.key));
const clickhouse = clickhouseOf({ after }, service);
const redis = await redisOf({ after }, service.redisUrl);
const random = seeded(20_260_115);

const below = (n: number): number => Math.floor(n * random());
const oneOf = <Value>(values: readonly Value[]): Value => values[below(values.length)] as Value;

/** How a learner answers. */
interface Habit {
  readonly userId: string;
  readonly skillIds: readonly string[];
  /** Different items that are met; 0: answers come without. */
  readonly items: number;
  /** Answers in one request; 1: not as a batch. */
  readonly batch: number;
  /** Answers come without their time. */
  readonly untimed?: true;
}

const skills = Array.from({ length: 12 }, (_, i) => `skill ${i}`);
const habits: readonly Habit[] = [
  { userId: 'plain', skillIds: ['skill 0'], items: 0, batch: 1 },
  { userId: 'drills', skillIds: skills.slice(0, 2), items: 5, batch: 20 },
  { userId: 'meets many items, one by one', skillIds: skills, items: 400, batch: 1 },
  { userId: 'meets many items in a batch', skillIds: skills, items: 900, batch: 500 },
  { userId: 'tells no time', skillIds: skills, items: 200, batch: 3, untimed: true },
  { userId: 'odd \\N \\t 🙂 \u2028', skillIds: ['back\\slash', '\u{1f600}', 'L', 'ü'], items: 40, batch: 7 },
];

const minute = 60_000;
const day = 1440 * minute;
const gaps = [0, 1, 999, 30_000, 40_000, minute, 5 * minute];
const rareGaps = [-3 * day, -1, day, 2 * day, 20 * day, 90 * day];
const clocks = new Map(habits.map(({ userId }) => [userId, Date.UTC(1975, 1, 3, 4, 5, 6, 7)]));
const difficulties = [null, null, 0.1, -3, 3, 5e-324, 1e-7, 2.999_999_999_999_999_6, -1 / 3];
const seconds = [null, 0, 1, 2, 3, 9, 20, 75, 75, 300, 3600, 3601, 86_400];

let made = 0;

function eventOf({ userId, skillIds, items, untimed }: Habit): Record<string, unknown> {
  const gap = oneOf(random() < 0.1 ? rareGaps : gaps);
  const at = Math.min((clocks.get(userId) ?? 0) + gap, Date.now());
  clocks.set(userId, at);
  made += 1;
  return {
    user_id: userId,
    skill_id: oneOf(skillIds),
    is_correct: random() < 0.6,
    time_spent_seconds: oneOf(seconds),
    confidence_score: oneOf([null, 1, 2, 3, 4, 5]),
    question_difficulty: random() < 0.5 ? oneOf(difficulties) : 6 * random() - 3,
    item_id: items === 0 || random() < 0.1 ? null : `item \\ ${oneOf(['', '😀'])}${below(items)}`,
    event_id: random() < 0.7 ? `event-${made}` : null,
    occurred_at: untimed ? null : new Date(at).toISOString(),
  };
}

/** Some of the events come again, in the same request or in a later one. */
const sent = new Map<string, Record<string, unknown>[]>();

function eventsOf(habit: Habit): Record<string, unknown>[] {
  const events = Array.from({ length: habit.batch }, () => eventOf(habit));
  const known = sent.get(habit.userId) ?? [];
  known.push(...events.filter(({ event_id }) => event_id !== null));
  sent.set(habit.userId, known);
  return known.length === 0 || random() < 0.7 ? events : [...events, oneOf(known)];
}

/** Sends one request of the learner through one of the services. @returns how many answers were counted */
async function answer(habit: Habit): Promise<number> {
  const caller = oneOf(callers);
  const events = eventsOf(habit);
  if (habit.batch > 1) {
    const { status, json } = await caller.trackAll(events);
    assert.equal(status, 200, JSON.stringify(json));
    return json.data.results.filter((result: { replayed?: boolean }) => !result.replayed).length;
  }
  let counted = 0;
  for (const event of events) {
    const { status, headers, json } = await caller.track(event);
    assert.equal(status, 200, JSON.stringify(json));
    counted += 'idempotent-replayed' in headers ? 0 : 1;
  }
  return counted;
}

/** All learners side by side, about as many answers each. */
async function answerAll(requests: number): Promise<number> {
  const counted = habits.map(async (habit) => {
    let sum = 0;
    for (let i = 0; i < Math.max(1, Math.round(requests / habit.batch)); i++) sum += await answer(habit);
    return sum;
  });
  return (await Promise.all(counted)).reduce((sum, n) => sum + n, 0);
}

/** As a fit publishes it: every number another one than before, half of the skills and of the items unknown. */
function modelOf(version: number): TenantModel {
  const parameters = () => ({
    pInit: 0.1 + 0.4 * random(),
    pLearn: 0.05 + 0.2 * random(),
    pGuess: 0.05 + 0.25 * random(),
    pSlip: 0.02 + 0.15 * random(),
  });
  const fitted = skills.filter((_, i) => (i + version) % 2 === 0);
  return {
    ...unfittedModel,
    version,
    fittedAt: '2026-01-15T12:00:00.000Z',
    prior: parameters(),
    difficultyScale: random(),
    bounds: 'wide',
    abilityOffset: random() - 0.5,
    prediction: { ...unfittedModel.prediction, bias: random() / 3 },
    skills: new Map(
      fitted.map((skillId) => [
        skillId,
        {
          ...defaultSkillParameters,
          parameters: parameters(),
          source: 'fitted',
          version,
          learners: 100,
          answers: 1000,
          difficultyMean: random() - 0.5,
          times: { answers: 500, meanSeconds: 20 + 60 * random(), logMean: 3 + random(), logM2: 100 },
          terms: Array.from({ length: skillTermCount }, () => random() - 0.5),
          abilityOffset: random() - 0.5,
        },
      ]),
    ),
  };
}

async function publish(): Promise<number> {
  const models = createModelPublisher(redis);
  const version = await models.reserve(tenant);
  const ids = ['', ...Array.from({ length: 450 }, (_, i) => `item \\ ${i}`)];
  const drawn = (count: number) => Float32Array.from({ length: count }, () => random() - 0.5);
  const items = {
    terms: drawn(ids.length * itemTermCount),
    offsets: drawn(ids.length),
    sums: {
      answers: Uint32Array.from(ids, () => 10),
      right: Uint32Array.from(ids, () => below(11)),
      expected: Float64Array.from(ids, () => 10 * random()),
    },
  };
  const published = await publishModel(redis, {
    tenant,
    version,
    basedOn: await models.inForce(tenant),
    model: encodeModel(modelOf(version)),
    report: '{}',
    items: encodeItems(items, Buffer.concat(ids.map(hashItem))),
    publishedAt: Date.now(),
  });
  assert.ok(published);
  return version;
}

/** A third of the skills in each section, with weights, one with parameters set by hand. */
async function catalogue(): Promise<void> {
  const parameters = { p_init: 0.2, p_learn: 0.15, p_guess: 0.25, p_slip: 0.05 };
  const placed = skills.map((_, i) => ({
    section: oneOf(['math', 'rw', null]),
    weight: 0.5 + random(),
    ...(i === 3 ? { parameters } : {}),
  }));
  for (const [i, entry] of placed.entries()) {
    const path = `/api/v1/skills/skill%20${i}`;
    const { status } = await oneOf(callers).call({ method: 'PUT', path, body: JSON.stringify(entry) });
    assert.equal(status, 200);
  }
}

type Figure =
  | ('is_correct' | 'occurred_ms' | 'seq' | 'mastery_before' | 'mastery_after' | 'p_correct')
  | ('p_init' | 'p_learn' | 'p_guess' | 'p_slip' | 'parameters_version' | 'difficulty_shift')
  | ('ability_offset' | 'item_difficulty' | 'rapid_seconds' | 'log_time_mean' | 'log_time_sd' | 'weight');
type Optional =
  | ('time_spent_seconds' | 'confidence_score' | 'question_difficulty')
  | ('closed_mastery' | 'baseline_total');

interface Row extends Record<Figure, number>, Record<Optional, number | null> {
  skill_id: string;
  item_id: string;
  parameters_source: ParameterSource;
  section: Section | '';
}

const rowsOf = (userId: string): Promise<Row[]> =>
  selectRows<Row>(
    clickhouse,
    `SELECT *, toFloat64(toUnixTimestamp64Milli(occurred_at)) AS occurred_ms, learner_seq AS seq
      FROM attempts WHERE tenant = {tenant:String} AND user_id = {userId:String} ORDER BY learner_seq`,
    undefined,
    { tenant, userId },
  );

const answerOf = (row: Row): Answer => ({
  isCorrect: row.is_correct === 1,
  occurredAt: row.occurred_ms,
  questionDifficulty: row.question_difficulty,
  timeSpentSeconds: row.time_spent_seconds,
  confidenceScore: row.confidence_score,
});

const conditionsOf = (row: Row): Conditions => ({
  parameters: { pInit: row.p_init, pLearn: row.p_learn, pGuess: row.p_guess, pSlip: row.p_slip },
  version: row.parameters_version,
  source: row.parameters_source,
  difficultyShift: row.difficulty_shift,
  abilityOffset: row.ability_offset,
  itemDifficulty: row.item_difficulty,
  rapidSeconds: row.rapid_seconds,
  time: { logMean: row.log_time_mean, logSd: row.log_time_sd },
  pCorrect: row.p_correct,
  section: row.section === '' ? null : row.section,
  weight: row.weight,
  closedMastery: row.closed_mastery,
});

interface Replayed {
  learner: LearnerState;
  readonly skills: Map<string, SkillState>;
  readonly items: Map<string, RememberedItem<ItemTrace>>;
}

function replay(rows: readonly Row[]): Replayed {
  const replayed: Replayed = { learner: newLearner, skills: new Map(), items: new Map() };
  for (const row of rows) {
    const conditions = conditionsOf(row);
    const skill = replayed.skills.get(row.skill_id) ?? newSkill(conditions.parameters);
    const item = row.item_id === '' ? null : replayed.items.get(row.item_id);
    const effect = applyAnswer({ learner: replayed.learner, skill, item }, answerOf(row), conditions);
    assert.equal(effect.masteryBefore, row.mastery_before, `answer ${row.seq}`);
    assert.equal(effect.skill.mastery, row.mastery_after, `answer ${row.seq}`);
    replayed.learner = { ...effect.learner, baselineTotal: row.baseline_total };
    replayed.skills.set(row.skill_id, effect.skill);
    if (effect.item) replayed.items.set(row.item_id, effect.item);
  }
  return replayed;
}

const partitions = Number(await redis.hget(metaKey, 'partitions'));
const placeOf = (userId: string) => ({ partition: partitionOf(tenant, userId, partitions), tenant, userId });

/** One figure is not the rows' to tell: the version counts commits, however many answers each had. */
async function assertSameRecords(userId: string, { learner, skills }: Replayed): Promise<void> {
  const { L, ...stored } = await redis.hgetallBuffer(learnerKey(placeOf(userId).partition, tenant, userId));
  assert.ok(L);
  const { version } = decodeLearner(L);
  assert.deepEqual(L, encodeLearner({ ...learner, version }));
  const records = [...skills].map(([skillId, skill]) => [`s${skillId}`, encodeSkill(skill)]);
  assert.deepEqual({ ...stored }, Object.fromEntries(records));
}

async function assertSameItems(userId: string, { learner, items }: Replayed): Promise<number> {
  const query = { ...placeOf(userId), skillIds: [], eventIds: [], itemIds: [...items.keys()].map(hashItem) };
  const [loaded] = await loadLearners(redis, [query], null, true);
  const recalled = (item: RememberedItem<ItemTrace> | null | undefined): Buffer | null => {
    const trace = recallItem(learner.items, item ?? undefined);
    return trace && encodeItem(trace);
  };
  const stored = loaded?.items.map(recalled) ?? [];
  assert.deepEqual(stored, [...items.values()].map(recalled));
  return stored.filter((record) => record !== null).length;
}

test('rows alone rebuild every learner bit for bit', { timeout: 180_000 }, async (t) => {
  let counted = await answerAll(500);
  const newestVersion = async (): Promise<number> => {
    const query =
      "SELECT max(parameters_version) AS newest FROM attempts WHERE parameters_source != 'manual'";
    return Number((await selectRows<{ newest: number }>(clickhouse, query))[0]?.newest);
  };
  for (const _ of [1, 2]) {
    await catalogue();
    const version = await publish();
    while ((await newestVersion()) < version) counted += await answerAll(20);
    counted += await answerAll(500);
  }
  const allRows = async () => (await Promise.all(habits.map(({ userId }) => rowsOf(userId)))).flat();
  await waitFor('rows in ClickHouse', async () => (await allRows()).length >= counted, 60_000);
  const rows = await allRows();
  assert.equal(rows.length, counted);
  const fitted = rows.filter((row) => row.parameters_source !== 'manual');
  assert.deepEqual([...new Set(fitted.map((row) => row.parameters_version))].sort(), [0, 1, 2]);
  const sources = new Set(rows.map((row) => row.parameters_source));
  assert.deepEqual(sources, new Set(['default', 'prior', 'fitted', 'manual']));
  assert.deepEqual(new Set(rows.map((row) => row.section)), new Set(['', 'math', 'rw']));
  assert.ok(rows.some((row) => row.closed_mastery !== null));
  for (const { userId, items } of habits) {
    const replayed = replay(await rowsOf(userId));
    await assertSameRecords(userId, replayed);
    const remembered = await assertSameItems(userId, replayed);
    const { attempts, items: window } = replayed.learner;
    t.diagnostic(`${userId}: ${attempts} answers, ${remembered} items, generation ${window.generation}`);
    assert.ok(items < 300 || window.generation > 1);
  }
});
