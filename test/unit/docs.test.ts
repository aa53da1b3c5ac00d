/** The docs stay true: links lead somewhere, every route is described, and tables are those of the schemas. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { routeResponses } from '../../src/contracts/responses/route-responses.js';
import { webhookDescriptions } from '../../src/contracts/responses/webhooks.js';
import { environmentSchema } from '../../src/contracts/settings/environment.js';
import { errorTable } from '../../src/errors.js';
import type { DemoAnswer } from '../../src/lab/demo/answers.js';
import { generateDemo } from '../../src/lab/demo/generate-demo.js';
import { namedLearnerIds } from '../../src/lab/demo/school.js';
import { formatNumber } from '../../src/lab/report/format.js';
import { root } from '../support/runner/root.js';

const textOf = (file: string): string => readFileSync(join(root, file), 'utf8');

const pages = [
  ...['README.md', 'SECURITY.md', 'CHANGELOG.md'],
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
];

/** Anchors of a page's headings, as GitHub makes them. */
const anchorsOf = (text: string): string[] =>
  [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );

test('links between pages lead to files and headings that exist', () => {
  const broken = pages.flatMap((page) =>
    [...textOf(page).matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g)].flatMap(
      ([link, path = '', anchor]) => {
        const target = path === '' ? page : join(dirname(page), path);
        const found =
          existsSync(join(root, target)) &&
          (anchor === undefined || anchorsOf(textOf(target)).includes(anchor));
        return found ? [] : [`${page}: ${link}`];
      },
    ),
  );
  assert.deepEqual(broken, []);
});

test('the README is read in one sitting', () => {
  const lines = textOf('README.md').split('\n').length;
  assert.ok(lines <= 150, `${lines} lines`);
});

test('every route is described', () => {
  const described = textOf('docs/api.md').replaceAll(/\{(\w+)\}/g, ':$1');
  const missing = Object.keys(routeResponses).filter((route) => {
    const [method = '', path = ''] = route.split(' ');
    const rows = described.split('\n').filter((line) => line.startsWith('|'));
    return !rows.some((row) => row.includes(method) && new RegExp(`${path}(?![/:\\w])`).test(row));
  });
  assert.deepEqual(missing, []);
});

const row = (...cells: readonly string[]): string => `| ${cells.join(' | ')} |`;

const settingsTable = (): string[] => [
  row('variable', 'default', 'meaning', 'allowed'),
  '|---|---|---|---|',
  ...Object.entries(environmentSchema.properties).map(([name, schema]) => {
    const {
      default: fallback = 'not set',
      description = '',
      allowed = '',
    }: Record<string, unknown> = {
      ...schema,
    };
    return row(name, `${fallback}`, `${description}`, `${allowed}`);
  }),
];

const errorsTable = (): string[] => [
  row('status', 'code', 'safe to retry'),
  '|---|---|---|',
  ...Object.entries(errorTable).map(([code, { status, retry }]) => row(`${status}`, code, retry)),
];

interface Field {
  readonly type?: string;
  readonly format?: string;
  readonly anyOf?: readonly Field[];
}

const kindOf = ({ type, format, anyOf = [] }: Field): string =>
  [format ?? type ?? [], ...anyOf.map(kindOf)].flat().join(' or ');

const payloadsTable = (): string[] => [
  row('type', 'fields of `data`'),
  '|---|---|',
  ...Object.entries(webhookDescriptions).map(
    ([
      type,
      {
        data: { properties },
      },
    ]) => {
      const fields = Object.entries<Field>(properties).map(([name, field]) => `\`${name}\` ${kindOf(field)}`);
      return row(type, fields.join(', '));
    },
  ),
];

const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;

/** The school of docs/analytics.md. */
function demoTable(): string[] {
  const { skills, weeks } = generateDemo({ until: '2026-06-30', seed: 1, learners: 300 });
  const answers = weeks.flatMap((week) => week.answers);
  const goals = weeks.flatMap((week) => week.goals);
  const items = skills.flatMap((skill) => skill.items);
  const shareOf = (holds: (answer: DemoAnswer) => boolean): string =>
    percent(answers.filter(holds).length / answers.length);
  const late = ({ sentAt, occurredAt }: DemoAnswer): boolean => sentAt - occurredAt >= 86_400_000;
  const learners = new Set(answers.map(({ userId }) => userId)).size;
  return [
    row('what', 'how much'),
    '|---|---|',
    row('learners', `${learners}, of whom ${namedLearnerIds.length} have names`),
    row('weeks', `${weeks.length}`),
    row('skills, items', `${skills.length}, ${items.length}`),
    row('misleading items', `${items.filter(({ misleading }) => misleading).length}`),
    row('answers', formatNumber(answers.length)),
    row(
      'right answers',
      shareOf(({ isCorrect }) => isCorrect),
    ),
    row(
      'answers within two seconds',
      shareOf((one) => (one.timeSpentSeconds ?? 9) <= 2),
    ),
    row(
      'answers with a confidence',
      shareOf((one) => one.confidenceScore !== null),
    ),
    row('answers that arrive a day late or later', shareOf(late)),
    row('goals set, changed, given up', goalCounts(goals)),
  ];
}

function goalCounts(goals: readonly { userId: string; setting: object | null }[]): string {
  const setters = new Set(goals.map(({ userId }) => userId)).size;
  const givenUp = goals.filter(({ setting }) => setting === null).length;
  return [setters, goals.length - setters - givenUp, givenUp].join(', ');
}

test('the page on the demo is about the demo', () => {
  assertGenerated('docs/demo.md', 'demo', demoTable());
  const about = textOf('src/pages/dashboard/pages/about-demo.tsx');
  for (const id of namedLearnerIds)
    for (const text of [textOf('docs/demo.md'), about]) assert.ok(text.includes(id), id);
});

/** With WRITE_DOCS=1 in the environment the page is written. */
function assertGenerated(page: string, name: string, lines: readonly string[]): void {
  const text = textOf(page);
  const wanted = text.replace(
    new RegExp(`(<!-- ${name} -->\n).*?(<!-- end -->)`, 's'),
    (_, start, end) => `${start}${lines.join('\n')}\n${end}`,
  );
  if (process.env.WRITE_DOCS === '1') writeFileSync(join(root, page), wanted);
  else assert.equal(text, wanted, `${page}: WRITE_DOCS=1 npm test -- unit/docs writes it`);
}

test('tables of settings, errors and payloads are those of the schemas', () => {
  assertGenerated('docs/settings.md', 'settings', settingsTable());
  assertGenerated('docs/api.md', 'errors', errorsTable());
  assertGenerated('docs/webhooks.md', 'payloads', payloadsTable());
});
