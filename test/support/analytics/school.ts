/**
 * A small school for the queries in docs/analytics. It follows no model: learners, items and skills differ by seeded
 * random numbers, so that no two values are equal by chance and each case of a query occurs.
 * test/fixtures/analytics.json has the results of the queries on exactly these rows.
 */
import type { ClickHouseClient } from '@clickhouse/client';
import { type AttemptRow, encodeAttemptRow } from '../../../src/contracts/answers/attempt-row.js';
import {
  encodeForecastRow,
  encodeGoalRow,
  encodeGroupRow,
  encodeProfileRow,
  encodeSkillRow,
  type ServedForecast,
} from '../../../src/contracts/journal/journal.js';
import { dayMs } from '../../../src/domain/base/common.js';
import { indices } from '../../../src/lists.js';
import { createSeededRandom } from '../../../src/seeded-random.js';
import { formatSqlTime } from '../../../src/warehouse/clickhouse/client.js';
import { createAttemptWarehouse } from '../../../src/warehouse/ingest/attempt-warehouse.js';
import { createJournalWarehouse } from '../../../src/warehouse/ingest/journal-warehouse.js';
import { attemptRow, rowParts } from '../builders/attempt-rows.js';
import { servedForecast } from '../builders/journal-rows.js';

type Row = ReturnType<typeof attemptRow>;

const tenant = 'demo';
/** A Monday. */
const begin = Date.UTC(2025, 2, 3);
const days = 119;
/** Times when versions 1 and 2 of the model became active. */
const fittedAt = [begin + 60 * dayMs, begin + 100 * dayMs] as const;

const skills = ['circles', 'commas', 'inferences', 'linear-equations', 'linear-functions'] as const;
const sectionOf = (skillId: string): 'math' | 'rw' =>
  skillId === 'commas' || skillId === 'inferences' ? 'rw' : 'math';
/** Version that fitted the skill; version 2 fitted linear equations again. */
const fittedBy = (skillId: string, version: number): number => {
  if (skillId === 'linear-equations') return version;
  return ['commas', 'linear-functions'].includes(skillId) ? Math.min(version, 1) : 0;
};

const learners = indices(26).map((i) => `demo-${String(i + 1).padStart(3, '0')}`);
const goalOf = (number: number): number | null => (number % 3 === 2 ? null : 1000 + 20 * (number % 10));

/** State of a learner between answers. */
interface Learner {
  readonly userId: string;
  readonly number: number;
  seq: number;
  readonly skills: Map<string, { readonly mastery: number; readonly count: number; readonly at: number }>;
}

function createAnswers(): Row[] {
  const random = createSeededRandom(22);
  return learners.flatMap((userId, number) => {
    const learner: Learner = { userId, number, seq: 0, skills: new Map() };
    // They begin within three weeks or a month later; every fifth stops half way, every seventh pauses for a month.
    const first = (number % 4 === 3 ? 35 : 7 * (number % 4)) + (number % 3);
    const stop = number % 5 === 4 ? 75 + number : days;
    return indices(stop - first).flatMap((i) => {
      const day = first + i;
      const pauses = number % 7 === 3 && day > 65 && day < 100;
      const isActive = random() < 0.15 + 0.025 * (number % 12);
      return pauses || !isActive ? [] : createDay(learner, begin + day * dayMs, random);
    });
  });
}

function createDay(learner: Learner, day: number, random: () => number): Row[] {
  const count = random() < 0.12 ? 25 : 1 + Math.floor(random() * 9);
  const first = Math.floor(random() * skills.length);
  const hour = 5 + Math.floor(random() * 16);
  return indices(count).flatMap((i) => {
    const skill = (first + (i > 5 ? 1 : 0)) % skills.length;
    const answer = createAnswer(learner, skill, day + hour * 3_600_000 + i * 45_000, random);
    if (random() > 0.01) return [answer];
    // Sent twice, the second time without an event id.
    learner.seq += 1;
    const repeat = { learnerSeq: learner.seq, occurredAt: answer.occurredAt + 4000, eventId: null };
    return [answer, { ...answer, ...repeat }];
  });
}

function createAnswer(learner: Learner, skill: number, arrivedAt: number, random: () => number): Row {
  const skillId = skills[skill] as string;
  const isLate = random() <= 0.03;
  const delays = [1_200_000, 20_000_000, 3 * dayMs, 11 * dayMs];
  const occurredAt = arrivedAt - (isLate ? (delays[Math.floor(4 * random())] ?? 0) : 0);
  const last = learner.skills.get(skillId) ?? { mastery: 0.3, count: 0, at: occurredAt };
  const idleDays = Math.max(0, Math.floor((occurredAt - last.at) / dayMs));
  const before = Math.max(0.05, last.mastery - 0.004 * Math.min(idleDays, 40));
  const item = 1 + Math.floor(random() * 6);
  const isRapid = random() < (learner.number % 6 === 1 ? 0.25 : 0.04);
  // Learners who know the skill fail on item 4.
  const solves = item === 4 ? 0.85 - 0.6 * before : 0.45 + 0.5 * before - 0.03 * item;
  const isCorrect = random() < (isRapid ? 0.25 : solves);
  const after = isCorrect ? before + (0.45 - 0.05 * skill) * (0.99 - before) : before - 0.1 * before;
  const count = last.count + 1;
  learner.skills.set(skillId, { mastery: after, count, at: occurredAt });
  learner.seq += 1;
  const plateauDetected = count > 12 && after < 0.8 && random() < 0.5;
  const version = fittedAt.filter((at) => occurredAt >= at).length;
  return attemptRow(learner.number * 10_000 + learner.seq, {
    ...{ tenant, userId: learner.userId, skillId, isCorrect, isRapid, occurredAt, plateauDetected },
    itemId: random() < 0.02 ? null : `${skillId}-${item}`,
    timeSpentSeconds: isRapid ? 1 + random() : createSeconds(random),
    confidenceScore: random() < 0.4 ? null : 1 + Math.floor(random() * 2.5 + 2.4 * before),
    receivedAt: arrivedAt + 2000,
    learnerSeq: learner.seq,
    masteryBefore: before,
    masteryAfter: after,
    pCorrect: 0.25 + 0.6 * before,
    parameters: { pInit: 0.3, pLearn: 0.1, pGuess: 0.2 + skill / 50, pSlip: 0.1, pForget: 0 },
    version: fittedBy(skillId, version),
    section: sectionOf(skillId),
  });
}

function createSeconds(random: () => number): number | null {
  const kind = random();
  if (kind < 0.05) return null;
  return kind < 0.06 ? 4000 : Math.round(10 + 80 * random());
}

/** Each Sunday, for 7 and 30 days, of every learner with answers. */
function createForecasts(answers: readonly Row[]): ServedForecast[] {
  const random = createSeededRandom(30);
  const { accuracy } = servedForecast();
  return learners.flatMap((userId, number) =>
    indices(16).flatMap((week) => {
      const madeAt = begin + (7 * week + 6) * dayMs + 36_000_000;
      const learnerSeq = answers.filter((a) => a.userId === userId && a.occurredAt < madeAt).length;
      const total = 900 + 10 * Math.floor(random() * 40);
      const targetScore = goalOf(number);
      return (learnerSeq === 0 ? [] : [7, 30]).map((horizon) =>
        servedForecast({
          ...{ tenant, userId, madeAt: madeAt + horizon, days: horizon, learnerSeq, targetScore },
          current: { math: 400, rw: total - 400, total },
          goalProbability: targetScore === null ? null : random(),
          accuracy: { ...accuracy, expected: 0.45 + 0.3 * random() },
        }),
      );
    }),
  );
}

/** Two changes of each goal; the second one deletes the goal of the first learner. */
function createGoalRows(): string[] {
  return learners.flatMap((userId, number) => {
    const targetScore = goalOf(number);
    if (targetScore === null) return [];
    const targetDate = number % 4 === 1 ? null : number % 2 === 0 ? '2025-06-15' : '2025-09-01';
    const scores = [targetScore - 50, number === 0 ? null : targetScore];
    return scores.map((score, i) => {
      const goal = encodeGoalRow({ tenant, userId, targetDate, targetScore: score });
      return `${begin + (20 + 20 * i) * dayMs}\t${goal}`;
    });
  });
}

const createSkillRows = (): string[] =>
  skills.map((skillId, i) => {
    const entry = { name: `The skill ${skillId}`, section: sectionOf(skillId), weight: 1 + i / 2 };
    return `${i + 1}\t${begin + i}\t${encodeSkillRow({ tenant, skillId, ...entry, parameters: null })}`;
  });

/** Kind and members, by the number of the learner. */
const groups: Readonly<Record<string, readonly [kind: string, has: (number: number) => boolean]>> = {
  'class-10-A': ['class', (number) => number % 3 === 0 || number === 7],
  'class-10-B': ['class', (number) => number % 3 === 1],
  'class-11-A': ['class', (number) => number % 3 === 2],
  'class-closed': ['class', (number) => number > 11],
  'grade-9': ['grade', (number) => number < 17],
  'teacher-Osei': ['teacher', (number) => number % 3 === 2],
  'teacher-Rivera': ['teacher', (number) => number % 3 !== 2],
};
/** Day, hour, group, learner, and whether the learner joins. */
const moves: readonly (readonly [
  day: number,
  hour: number,
  groupId: string,
  number: number,
  joins: boolean,
])[] = [
  [40, 15, 'class-10-A', 25, true],
  [60, 10, 'class-10-A', 9, false],
  [60, 11, 'class-10-B', 9, true],
  [70, 0, 'grade-9', 4, false],
  [70, 8, 'teacher-Rivera', 4, false],
  [85, 23, 'teacher-Rivera', 4, true],
  [95, 12, 'class-11-A', 26, true],
  [95, 12, 'teacher-Osei', 26, true],
  ...indices(26)
    .filter((number) => number > 11)
    .map((number) => [100, 5, 'class-closed', number, false] as const),
];

/** Created on day 40; one is deleted on day 100. The last learner has no answers. */
function createGroupRows() {
  const created = begin + 40 * dayMs + 36_000_000;
  const closed = begin + 100 * dayMs + 5 * 3_600_000;
  const rows = Object.entries(groups).map(([groupId, [kind]]) => {
    const setting = { name: `The ${groupId}`, kind, parentGroupId: null };
    return `${created}\t${encodeGroupRow(tenant, groupId, setting)}\t${created}`;
  });
  const first = Object.entries(groups).flatMap(([groupId, [, has]]) =>
    learners.flatMap((_, number) => (has(number) ? [[40, 10, groupId, number, true] as const] : [])),
  );
  const members = [...first, ...moves].map(([day, hour, groupId, number, joins]) => {
    const at = begin + day * dayMs + hour * 3_600_000;
    return [at, tenant, learners[number] ?? 'demo-idle', groupId, joins ? 1 : 0].join('\t');
  });
  return {
    rows: [...rows, `${closed}\t${encodeGroupRow(tenant, 'class-closed', null)}\t${created}`],
    members,
  };
}

/** Every ninth learner has no hints setting; the profile of the first learner changes. */
const createProfileRows = (): string[] =>
  [0, ...learners.keys()].map((number, i) => {
    const hints = (number + (i === 0 ? 1 : 0)) % 2 === 0 ? 'on' : 'off';
    const attributes: Record<string, string> = number % 9 === 8 ? { plan: "it's free" } : { hints };
    const profile = { displayName: `Learner ${number}`, attributes };
    return `${begin + i}\t${encodeProfileRow({ tenant, userId: learners[number] as string }, profile)}`;
  });

const createVersions = () =>
  fittedAt.map((at, i) => ({
    ...{ tenant, change: i + 1, version: i + 1, based_on: i, action: 'fit' },
    ...{ published_at: formatSqlTime(at), model: '', report: '' },
  }));

const createParameters = () =>
  [1, 2].flatMap((version) =>
    skills.map((skill_id, i) => {
      const parameters_version = fittedBy(skill_id, version);
      const isPublished = parameters_version === version;
      return {
        ...{ tenant, version, skill_id, parameters_version, published: isPublished ? 1 : 0 },
        source: parameters_version === 0 ? 'default' : 'fitted',
        ...{ p_init: 0.3 + i / 50, p_learn: 0.1 + version / 40, p_guess: 0.2 - i / 90, p_slip: 0.1 + i / 70 },
        ...{ learners: 20 + i, answers: 400 + 10 * i },
        ...{ old_log_loss: 0.6 - i / 100, new_log_loss: isPublished ? 0.58 - i / 200 : 0.61 },
      };
    }),
  );

type ChangeRow = (row: AttemptRow, i: number) => readonly AttemptRow[];

/**
 * Stores the school, and most of it again for a second tenant, which no query may read.
 * @param change replaces a row of `attempts`
 */
export async function storeSchool(
  client: ClickHouseClient,
  change: ChangeRow = (row) => [row],
): Promise<void> {
  const answers = createAnswers();
  const lines = answers
    .flatMap((row, i) => change(rowParts(row), i))
    .map(
      ({ event, figures, conditions }, i) => `0\t1\t${i}\t${encodeAttemptRow(event, figures, conditions)}\n`,
    );
  await createAttemptWarehouse(client).insert([Buffer.from(lines.join(''))], 'school');
  const journal = createJournalWarehouse(client);
  const toLines = (texts: readonly string[]): Buffer[] => texts.map((text) => Buffer.from(text));
  await journal.insert('forecast_2', toLines(createForecasts(answers).map(encodeForecastRow)));
  await journal.insert('goal', toLines(createGoalRows()));
  await journal.insert('skill', toLines(createSkillRows()));
  const { rows, members } = createGroupRows();
  await journal.insert('group', toLines(rows));
  await journal.insert('group_member', toLines(members));
  await journal.insert('profile', toLines(createProfileRows()));
  await client.insert({ table: 'model_versions', format: 'JSONEachRow', values: createVersions() });
  await client.insert({ table: 'skill_parameters', format: 'JSONEachRow', values: createParameters() });
  const copied = {
    attempts: 'learner_seq % 2 = 0',
    served_forecasts: "user_id != 'demo-001'",
    goal_changes: "user_id != 'demo-001'",
    skill_changes: "skill_id != 'circles'",
    group_changes: '1',
    group_member_changes: "user_id != 'demo-001'",
    learner_profile_changes: "user_id != 'demo-001'",
    model_versions: 'version = 2',
    skill_parameters: 'version = 2',
  };
  for (const [table, condition] of Object.entries(copied)) {
    const query = `INSERT INTO ${table} SELECT * REPLACE ('other' AS tenant) FROM ${table} WHERE ${condition}`;
    await client.command({ query });
  }
}

const timeColumns = {
  attempts: ['occurred_at', 'received_at'],
  served_forecasts: ['made_at'],
  goal_changes: ['updated_at'],
  skill_changes: ['updated_at'],
  group_changes: ['updated_at', 'created_at'],
  group_member_changes: ['updated_at'],
  learner_profile_changes: ['updated_at'],
  model_versions: ['published_at'],
  skill_parameters: [],
};

/** Stores the school again for a tenant in another zone, with the same local times. @param offset in hours, from UTC */
export async function copySchool(client: ClickHouseClient, to: string, timeZone: string, offset: number) {
  for (const [table, columns] of Object.entries(timeColumns)) {
    const changes = [`'${to}' AS tenant`];
    changes.push(...columns.map((column) => `${column} - toIntervalHour(${offset}) AS ${column}`));
    if (table === 'attempts') changes.push(`'${timeZone}' AS time_zone`);
    const rows = `SELECT * REPLACE (${changes.join(', ')}) FROM ${table} AS r WHERE r.tenant = '${tenant}'`;
    await client.command({ query: `INSERT INTO ${table} ${rows}` });
  }
}
