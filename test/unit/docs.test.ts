/** Links and generated tables of the docs. With WRITE_DOCS=1 the tests write the tables. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { errorDescriptions } from '../../src/contracts/responses/openapi-texts.js';
import { routeResponses } from '../../src/contracts/responses/route-responses.js';
import { webhookDescriptions } from '../../src/contracts/responses/webhooks.js';
import { environmentSchema } from '../../src/contracts/settings/environment.js';
import { type ErrorCode, errorTable } from '../../src/errors.js';
import type { DemoAnswer } from '../../src/lab/demo/answers.js';
import { generateDemo } from '../../src/lab/demo/generate-demo.js';
import { namedLearnerIds } from '../../src/lab/demo/school.js';
import { formatNumber } from '../../src/lab/report/format.js';
import { groupBy } from '../../src/lists.js';
import { root } from '../support/runner/root.js';

const readText = (file: string): string => readFileSync(join(root, file), 'utf8');

const pages = [
  ...['README.md', 'SECURITY.md', 'CHANGELOG.md'],
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
];

/** Anchors of headings, as GitHub generates them. */
const findAnchors = (text: string): string[] =>
  [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );

test('Links between pages of the docs lead to existing files and headings', () => {
  const localLink = /\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g;
  const broken: string[] = [];
  for (const page of pages)
    for (const [link, path = '', anchor] of readText(page).matchAll(localLink)) {
      const target = path === '' ? page : join(dirname(page), path);
      const isFile = existsSync(join(root, target));
      if (!isFile || (anchor !== undefined && !findAnchors(readText(target)).includes(anchor)))
        broken.push(`${page}: ${link}`);
    }
  assert.deepEqual(broken, []);
});

test('README.md has at most 120 lines', () => {
  const lines = readText('README.md').split('\n').length;
  assert.ok(lines <= 120, `${lines} lines`);
});

test('docs/api.md describes every route', () => {
  const rows = readText('docs/api.md')
    .replaceAll(/\{(\w+)\}/g, ':$1')
    .split('\n')
    .filter((line) => line.startsWith('|'));
  const missing = Object.keys(routeResponses).filter((route) => {
    const [method = '', path = ''] = route.split(' ');
    return !rows.some((row) => row.includes(method) && new RegExp(`${path}(?![/:\\w])`).test(row));
  });
  assert.deepEqual(missing, []);
});

/** Compares or writes the table between the comments of this name. */
function assertTable(page: string, name: string, head: readonly string[], rows: readonly string[][]): void {
  const lines = [head, ...rows].map((cells) => `| ${cells.join(' | ')} |`);
  const table = [lines[0], `|${'---|'.repeat(head.length)}`, ...lines.slice(1)].join('\n');
  const text = readText(page);
  const marked = new RegExp(`(<!-- ${name} -->\n).*?(<!-- end -->)`, 's');
  const wanted = text.replace(marked, (_, start, end) => `${start}${table}\n${end}`);
  if (process.env.WRITE_DOCS === '1') writeFileSync(join(root, page), wanted);
  else assert.equal(text, wanted, `${page}: WRITE_DOCS=1 npm test -- unit/docs writes it`);
}

interface Field {
  readonly type?: string;
  readonly format?: string;
  readonly anyOf?: readonly Field[];
}

const typeOf = ({ type, format, anyOf = [] }: Field): string =>
  [format ?? type ?? [], ...anyOf.map(typeOf)].flat().join(' or ');

test('Tables of settings, errors and webhook payloads in the docs match the schemas', () => {
  const settings = Object.entries<object>(environmentSchema.properties).map(([name, schema]) => {
    const {
      default: value = 'not set',
      description = '',
      allowed = '',
    }: Record<string, unknown> = { ...schema };
    return [name, `${value}`, `${description}`, `${allowed}`];
  });
  assertTable(
    'docs/operate/configure.md',
    'settings',
    ['variable', 'default', 'meaning', 'allowed'],
    settings,
  );
  const errors = Object.entries(errorTable).map(([code, { status, retry }]) => {
    const meaning = errorDescriptions[code as ErrorCode];
    return [`${status}`, code, meaning, retry];
  });
  assertTable('docs/api.md', 'errors', ['status', 'code', 'meaning', 'safe to retry'], errors);
  const payloads = Object.entries(webhookDescriptions).map(([type, { data }]) => {
    const fields = Object.entries<Field>(data.properties);
    return [type, fields.map(([name, field]) => `\`${name}\` ${typeOf(field)}`).join(', ')];
  });
  assertTable('docs/webhooks.md', 'payloads', ['type', 'fields of `data`'], payloads);
});

/** The school that the queries in docs/analytics read. */
const demoUntil = '2026-06-30';
const demo = generateDemo({ until: demoUntil, seed: 1, learners: 300 });
const answers = demo.weeks.flatMap((week) => week.answers);

function countDemo(): string[][] {
  const { skills, weeks, groups } = demo;
  const goals = weeks.flatMap((week) => week.goals);
  const items = skills.flatMap((skill) => skill.items);
  const percentOf = (condition: (answer: DemoAnswer) => boolean): string =>
    `${((100 * answers.filter(condition).length) / answers.length).toFixed(1)} %`;
  const learners = new Set(answers.map(({ userId }) => userId)).size;
  const setters = new Set(goals.map(({ userId }) => userId)).size;
  const givenUp = goals.filter(({ setting }) => setting === null).length;
  const countKind = (kind: string): number => groups.filter((group) => group.kind === kind).length;
  const isLate = ({ sentAt, occurredAt }: DemoAnswer): boolean => sentAt - occurredAt >= 86_400_000;
  return [
    ['learners', `${learners}, of whom ${namedLearnerIds.length} have names`],
    ['grades, classes, teachers', ['grade', 'class', 'teacher'].map(countKind).join(', ')],
    ['weeks', `${weeks.length}`],
    ['skills, items', `${skills.length}, ${items.length}`],
    ['items with two skills', `${items.filter(({ second }) => second !== null).length}`],
    ['misleading items', `${items.filter(({ misleading }) => misleading).length}`],
    ['answers', formatNumber(answers.length)],
    ['answers to questions with two skills', percentOf(({ skillIds }) => skillIds.length === 2)],
    ['right answers', percentOf(({ isCorrect }) => isCorrect)],
    ['answers within two seconds', percentOf((one) => (one.timeSpentSeconds ?? 9) <= 2)],
    ['answers with a confidence', percentOf((one) => one.confidenceScore !== null)],
    ['answers that arrive a day late or later', percentOf(isLate)],
    ['goals set, changed, given up', `${setters}, ${goals.length - setters - givenUp}, ${givenUp}`],
  ];
}

const dayMs = 86_400_000;
const formatShare = (share: number): string => `${Math.round(100 * share)} %`;
const shareOf = (some: readonly DemoAnswer[], condition: (answer: DemoAnswer) => boolean): number =>
  some.filter(condition).length / some.length;
const isRight = ({ isCorrect }: DemoAnswer): boolean => isCorrect;

/** Answers of learners, of some skills, from one day until before another. Days: YYYY-MM-DD. */
function selectAnswers(userIds: readonly string[], skillIds: readonly string[], from: string, until: string) {
  const [members, fromMs, untilMs] = [new Set(userIds), Date.parse(from), Date.parse(until)];
  return answers.filter(
    ({ userId, occurredAt, skillIds: [skillId] }) =>
      members.has(userId) &&
      occurredAt >= fromMs &&
      occurredAt < untilMs &&
      (skillIds.length === 0 || skillIds.includes(skillId)),
  );
}

type Period = readonly [from: string, until: string];

/** What a teacher sees in the demo: the effects that the pages and queries must show. */
function describeEffects(): string[][] {
  const end = Date.parse(demoUntil) + dayMs;
  const daysBefore = (days: number): string => new Date(end - days * dayMs).toISOString().slice(0, 10);
  const membersOf = (groupId: string): readonly string[] =>
    demo.groups.find((group) => group.groupId === groupId)?.userIds ?? [];
  const compare = (
    groupIds: readonly string[],
    skillIds: readonly string[],
    periods: readonly Period[],
    condition = isRight,
  ): string[] => {
    const members = groupIds.flatMap(membersOf);
    return periods.map(([from, until]) =>
      formatShare(shareOf(selectAnswers(members, skillIds, from, until), condition)),
    );
  };
  const splitAt = (days: number): Period[] => [
    [daysBefore(56), daysBefore(days)],
    [daysBefore(days), daysBefore(0)],
  ];
  const [lessons, month] = [splitAt(21), splitAt(28)];
  const easter: Period[] = [
    ['2026-03-06', '2026-04-03'],
    ['2026-04-10', '2026-05-08'],
  ];
  const forgotten = ['polynomials', 'text-structure'];
  const isRapid = ({ timeSpentSeconds }: DemoAnswer): boolean => (timeSpentSeconds ?? 9) <= 2;
  const skillsOf = (name: string): string[] => [name.toLowerCase().replaceAll(' ', '-')];
  return [
    ...['Absolute value', 'Exponents and radicals'].map((name) => [
      `10-A, right answers on ${name}, before and after the lessons`,
      ...compare(['class-10-A'], skillsOf(name), lessons),
    ]),
    ['10-A, right answers, in both months', ...compare(['class-10-A'], [], month)],
    ['11-A, right answers, in both months', ...compare(['class-11-A'], [], month)],
    ['11-A, answers within two seconds, in both months', ...compare(['class-11-A'], [], month, isRapid)],
    ['other classes, right answers, in both months', ...compare(otherClasses(), [], month)],
    [
      'grade 9, right answers on Polynomials and Text structure, before and after the April holidays',
      ...compare(['grade-9'], forgotten, easter),
    ],
    ['grades 10 to 12, the same', ...compare(['grade-10', 'grade-11', 'grade-12'], forgotten, easter)],
    ...['on', 'off'].map((hints) => [
      `hints ${hints}, right answers, first and seventh answer to a skill`,
      ...describeGain(hints),
    ]),
  ];
}

const otherClasses = (): string[] =>
  demo.groups.flatMap(({ groupId, kind }) =>
    kind === 'class' && !/-1[01]-A$/.test(groupId) ? [groupId] : [],
  );

function describeGain(hints: string): string[] {
  const learners = new Set(
    demo.profiles.flatMap(({ userId, attributes }) => (attributes.hints === hints ? [userId] : [])),
  );
  const own = answers.filter(({ userId }) => learners.has(userId));
  const bySkill = [...groupBy(own, ({ userId, skillIds: [skillId] }) => `${userId} ${skillId}`).values()];
  return [0, 6].map((place) => {
    const some = bySkill.flatMap((path) => path[place] ?? []);
    return formatShare(shareOf(some, isRight));
  });
}

test('docs/demo.md has the numbers of the demo, and names its learners as the dashboard does', () => {
  assertTable('docs/demo.md', 'demo', ['what', 'how much'], countDemo());
  assertTable('docs/demo.md', 'effects', ['learners, figure', 'before', 'after'], describeEffects());
  const texts = ['docs/demo.md', 'src/pages/dashboard/pages/about-demo.tsx'].map(readText);
  for (const id of namedLearnerIds) for (const text of texts) assert.ok(text.includes(id), id);
});
