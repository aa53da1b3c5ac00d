/** Attempt rows alone rebuild the learners in Redis bit for bit (ADR 9), across two published models. */
import assert from 'node:assert/strict';
import { text } from 'node:stream/consumers';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type AttemptRow,
  attemptColumns,
  decodeAttemptRow,
  encodeAttemptRow,
} from '../../src/contracts/answers/attempt-row.js';
import { encodeModel } from '../../src/contracts/models/stored-model.js';
import { hashKey } from '../../src/domain/base/text-hash.js';
import {
  defaultSkillParameters,
  type SkillModel,
  type TenantModel,
  unfittedModel,
} from '../../src/domain/catalogue/tenant-model.js';
import { buildPairTable } from '../../src/domain/fit/prediction/pair-tables.js';
import { type ReplayedStates, startReplay } from '../../src/domain/history/replay.js';
import { itemTermCount, skillTermCount } from '../../src/domain/prediction/prediction-model.js';
import {
  emptyRelatedTerms,
  type RelatedTerms,
  skillPairWidth,
} from '../../src/domain/prediction/related-terms.js';
import { combineIds } from '../../src/domain/tracing/course.js';
import { computeSum, distinct, indices } from '../../src/lists.js';
import { encodeFirstResult, fingerprintFromNumber, hashEventId } from '../../src/store/learners/event-ids.js';
import { readEventIds } from '../../src/store/learners/learner-reads.js';
import { hashItem } from '../../src/store/models/item-store.js';
import { createModelStore, publishModel } from '../../src/store/models/model-store.js';
import { describeDifference, readLearnerDumps } from '../../src/store/rebuild/learner-writes.js';
import { partitionOf } from '../../src/store/redis/keys.js';
import { defaultPartitions } from '../../src/store/redis/server/deployment.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { toResultFigures } from '../../workers/track/results.js';
import { drawSkills, seeded } from '../support/builders/random.js';
import { callerOf } from '../support/http/http.js';
import { clickhouseOf, redisOf, startSecondApi, startService } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const tenant = 'default';
const service = await startService({ after });
const second = await startSecondApi({ after }, service);
const callers = [service, second].map((at) => callerOf(at, at.key));
const clickhouse = clickhouseOf({ after }, service);
const redis = await redisOf({ after }, service.redisUrl);
const random = seeded(20_260_115);

const pickNumber = (count: number): number => Math.floor(count * random());
const pick = <Value>(values: readonly Value[]): Value => values[pickNumber(values.length)] as Value;

interface Habit {
  readonly userId: string;
  readonly skillIds: readonly string[];
  /** Number of different items; 0: answers without items. */
  readonly items: number;
  /** Answers per request; 1: single answers. */
  readonly batch: number;
  /** Answers without occurred_at. */
  readonly untimed?: true;
}

const skills = indices(12).map((i) => `skill ${i}`);
const oddSkills = ['back\\slash', '\u{1f600}', 'L', "it's", "\\',(x)]", '\u2028'];
const habits: readonly Habit[] = [
  { userId: 'plain', skillIds: ['skill 0'], items: 0, batch: 1 },
  { userId: 'drills', skillIds: skills.slice(0, 2), items: 5, batch: 20 },
  { userId: 'many items, single answers', skillIds: skills, items: 400, batch: 1 },
  { userId: 'many items, batches', skillIds: skills, items: 900, batch: 500 },
  { userId: 'no times', skillIds: skills, items: 200, batch: 3, untimed: true },
  { userId: 'odd \\N \\t 🙂 \u2028', skillIds: oddSkills, items: 40, batch: 7 },
];

const minute = 60_000;
const day = 1440 * minute;
const gaps = [0, 1, 999, 30_000, 40_000, minute, 5 * minute];
const rareGaps = [-3 * day, -1, day, 2 * day, 20 * day, 90 * day];
const clocks = new Map(habits.map(({ userId }) => [userId, Date.UTC(1975, 1, 3, 4, 5, 6, 7)]));
const difficulties = [null, null, 0.1, -3, 3, 5e-324, 1e-7, 2.999_999_999_999_999_6, -1 / 3];
const seconds = [null, 0, 1, 2, 3, 9, 20, 75, 75, 300, 3600, 3601, 86_400];

let events = 0;

function eventOf({ userId, skillIds, items, untimed }: Habit): Record<string, unknown> {
  const gap = pick(random() < 0.1 ? rareGaps : gaps);
  const at = Math.min((clocks.get(userId) ?? 0) + gap, Date.now());
  clocks.set(userId, at);
  events += 1;
  return {
    user_id: userId,
    ...drawSkills(skillIds, random),
    is_correct: random() < 0.6,
    time_spent_seconds: pick(seconds),
    confidence_score: pick([null, 1, 2, 3, 4, 5]),
    question_difficulty: random() < 0.5 ? pick(difficulties) : 6 * random() - 3,
    item_id: items === 0 || random() < 0.1 ? null : `item \\ ${pick(['', '😀'])}${pickNumber(items)}`,
    event_id: random() < 0.7 ? `event-${events}` : null,
    occurred_at: untimed ? null : new Date(at).toISOString(),
  };
}

/** Events with an id, some of which are sent again in the same or a later request. */
const sent = new Map<string, Record<string, unknown>[]>();

function eventsOf(habit: Habit): Record<string, unknown>[] {
  const events = indices(habit.batch).map(() => eventOf(habit));
  const known = sent.get(habit.userId) ?? [];
  known.push(...events.filter(({ event_id }) => event_id !== null));
  sent.set(habit.userId, known);
  return known.length === 0 || random() < 0.7 ? events : [...events, reorder(pick(known))];
}

/** The same event with its skills in another order. */
const reorder = (event: Record<string, unknown>) =>
  Array.isArray(event.skill_ids) ? { ...event, skill_ids: event.skill_ids.toReversed() } : event;

/** Sends one request of the learner to one of the services. @returns the number of counted answers */
async function answer(habit: Habit): Promise<number> {
  const caller = pick(callers);
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

/** All learners answer concurrently, with about as many answers each. */
async function answerAll(requests: number): Promise<number> {
  const counted = habits.map(async (habit) => {
    let sum = 0;
    for (let i = 0; i < Math.max(1, Math.round(requests / habit.batch)); i++) sum += await answer(habit);
    return sum;
  });
  return computeSum(await Promise.all(counted));
}

/** A model with new numbers that knows half of the skills and items. */
function modelOf(version: number): TenantModel {
  const parameters = () => ({
    pInit: 0.1 + 0.4 * random(),
    pLearn: 0.05 + 0.2 * random(),
    pGuess: 0.05 + 0.25 * random(),
    pSlip: 0.02 + 0.15 * random(),
    pForget: 0.03 * random(),
  });
  const skillParameters = (): SkillModel => ({
    ...defaultSkillParameters,
    ...{ parameters: parameters(), source: 'fitted', version, learners: 100, answers: 1000 },
    ...{ difficultyMean: random() - 0.5, abilityOffset: random() - 0.5 },
    times: { answers: 500, meanSeconds: 20 + 60 * random(), logMean: 3 + random(), logM2: 100, correct: 250 },
    terms: indices(skillTermCount).map(() => random() - 0.5),
    related: relatedTo([...skills, combineIds(['skill 0', 'skill 1'])].map(hashKey), skillPairWidth),
  });
  const fitted = skills.filter((_, i) => (i + version) % 2 === 0);
  const pairs = skills.flatMap((one, i) => skills.slice(i + 1).map((other) => combineIds([one, other])));
  const toTerms = ({ difficultyMean, times, terms, related, abilityOffset }: SkillModel) => ({
    ...{ difficultyMean, times, terms, related, abilityOffset },
  });
  return {
    ...unfittedModel,
    ...{ version, fittedAt: '2026-01-15T12:00:00.000Z', prior: parameters() },
    ...{ difficultyScale: random(), abilityOffset: random() - 0.5 },
    prediction: { ...unfittedModel.prediction, bias: random() / 3 },
    skills: new Map(fitted.map((skillId) => [skillId, skillParameters()])),
    combinations: new Map(pairs.map((key) => [key, toTerms(skillParameters())])),
  };
}

/** Random terms for each key. */
function relatedTo(keys: readonly number[], width: number): RelatedTerms {
  const own = distinct(keys).sort((a, b) => a - b);
  return { keys: own, terms: indices(width * own.length).map(() => random() - 0.5) };
}

async function publish(): Promise<number> {
  const models = createModelStore(redis);
  const version = await models.reserveVersion(tenant);
  const ids = ['', ...indices(450).map((i) => `item \\ ${i}`)];
  const drawn = (count: number) => Float32Array.from({ length: count }, () => random() - 0.5);
  const items = {
    terms: drawn(ids.length * itemTermCount),
    offsets: drawn(ids.length),
    pairs: buildPairTable(
      ids.map((_, item) => (item === 0 ? emptyRelatedTerms : relatedTo([1, 1 + pickNumber(450)], 1))),
      1,
    ),
    sums: {
      answers: Uint32Array.from(ids, () => 10),
      right: Uint32Array.from(ids, () => pickNumber(11)),
      expected: Float64Array.from(ids, () => 10 * random()),
    },
  };
  const published = await publishModel(redis, {
    tenant,
    version,
    basedOn: await models.fetchActiveVersion(tenant),
    model: encodeModel(modelOf(version)),
    report: '{}',
    items: { ...items, hashes: Buffer.concat(ids.map(hashItem)) },
    publishedAt: Date.now(),
  });
  assert.ok(published);
  return version;
}

/** Skills of each section and of none, with weights, and one with manual parameters. */
async function catalogue(): Promise<void> {
  const parameters = { p_init: 0.2, p_learn: 0.15, p_guess: 0.25, p_slip: 0.05, p_forget: 0.02 };
  const placed = skills.map((_, i) => ({
    section: pick(['math', 'rw', null]),
    weight: 0.5 + random(),
    ...(i === 3 ? { parameters } : {}),
  }));
  for (const [i, entry] of placed.entries()) {
    const path = `/api/v1/skills/skill%20${i}`;
    const { status } = await pick(callers).call({ method: 'PUT', path, body: JSON.stringify(entry) });
    assert.equal(status, 200);
  }
}

/** The rows of a learner, which the outbox format encodes without loss. */
async function rowsOf(userId: string): Promise<AttemptRow[]> {
  const { stream } = await clickhouse.exec({
    query: `SELECT ${attemptColumns.join(', ')} FROM attempts
      WHERE tenant = {tenant:String} AND user_id = {userId:String} ORDER BY learner_seq FORMAT TabSeparated`,
    query_params: { tenant, userId },
    clickhouse_settings: { date_time_output_format: 'unix_timestamp' },
  });
  const lines = (await text(stream)).split('\n').slice(0, -1);
  return lines.map((line) => {
    const row = decodeAttemptRow(line);
    assert.deepEqual(decodeAttemptRow(encodeAttemptRow(row.event, row.figures, row.conditions)), row);
    return row;
  });
}

interface Replayed {
  readonly states: ReplayedStates;
  /** First results by the hash of the event id, in hex. */
  readonly firstResults: Map<string, Buffer>;
  /** Advice on skills other than the first. */
  readonly furtherAdvice: number;
}

function replay(rows: readonly AttemptRow[]): Replayed {
  const learner = startReplay();
  const firstResults = new Map<string, Buffer>();
  let furtherAdvice = 0;
  for (const row of rows) {
    const { event, figures } = row;
    const { effect, advice } = learner.add(row);
    const name = `answer ${figures.learnerSeq}`;
    assert.deepEqual(
      effect.masteriesBefore,
      figures.skills.map(({ masteryBefore }) => masteryBefore),
      name,
    );
    assert.deepEqual(
      effect.skills.map(({ mastery }) => mastery),
      figures.skills.map(({ masteryAfter }) => masteryAfter),
      name,
    );
    assert.equal(advice?.code ?? '', figures.recommendationCode);
    if ((advice?.skill ?? 0) > 0) furtherAdvice += 1;
    if (event.eventId === null) continue;
    const id = hashEventId(event.eventId).toString('hex');
    const fingerprint = fingerprintFromNumber(figures.eventFingerprint);
    firstResults.set(
      id,
      encodeFirstResult(toResultFigures(event.skillIds, effect, advice), fingerprint, event.receivedAt),
    );
  }
  assert.equal(learner.missing(), 0);
  return { states: learner.states(), firstResults, furtherAdvice };
}

/** Compares the records, items and first results in Redis. */
async function assertSame(userId: string, { states, firstResults }: Replayed): Promise<void> {
  const place = { partition: partitionOf(tenant, userId, defaultPartitions), tenant, userId };
  const [dump = null] = await readLearnerDumps(redis, [place]);
  assert.equal(describeDifference(states, dump), null, userId);
  const eventIds = [...firstResults.keys()].map((id) => Buffer.from(id, 'hex'));
  const ids = await readEventIds(redis, place, eventIds);
  const found = eventIds.map((id) => ids.find(id, Date.now() / 1000));
  assert.deepEqual(found, [...firstResults.values()]);
}

/** Answers of each learner between two models. Fewer would not fill an item window. */
const requests = 100;

test('A replay of the attempt rows gives the same bytes as the records in Redis', async (t) => {
  let counted = await answerAll(requests);
  const newestVersion = async (): Promise<number> => {
    const query = "SELECT max(parameters_version) AS n FROM attempts WHERE parameters_source != 'manual'";
    return Number((await selectRows<{ n: number }>(clickhouse, query))[0]?.n);
  };
  for (const _ of [1, 2]) {
    await catalogue();
    const version = await publish();
    for (; (await newestVersion()) < version; await sleep(500)) counted += await answerAll(20);
    counted += await answerAll(requests);
  }
  const allRows = async () => (await Promise.all(habits.map(({ userId }) => rowsOf(userId)))).flat();
  await waitFor('rows in ClickHouse', async () => (await allRows()).length >= counted);
  const rows = await allRows();
  assert.equal(rows.length, counted);
  const conditions = rows.map((row) => row.conditions);
  const skillConditions = conditions.flatMap(({ skills }) => skills);
  const fitted = skillConditions.filter(({ source }) => source !== 'manual');
  assert.deepEqual([...new Set(fitted.map(({ version }) => version))].sort(), [0, 1, 2]);
  const sources = new Set(skillConditions.map(({ source }) => source));
  assert.deepEqual(sources, new Set(['default', 'prior', 'fitted', 'manual']));
  assert.deepEqual(new Set(conditions.map(({ section }) => section)), new Set([null, 'math', 'rw']));
  assert.ok(conditions.some(({ closedMastery }) => closedMastery !== null));
  let furtherAdvice = 0;
  for (const { userId, items } of habits) {
    const replayed = replay(await rowsOf(userId));
    await assertSame(userId, replayed);
    furtherAdvice += replayed.furtherAdvice;
    const { attempts, items: window } = replayed.states.learner;
    t.diagnostic(`${userId}: ${attempts} answers, item generation ${window.generation}`);
    assert.ok(items < 300 || attempts < 1000 || window.generation > 1);
  }
  t.diagnostic(`${furtherAdvice} times advice on a further skill`);
  assert.ok(furtherAdvice > 0);
});
