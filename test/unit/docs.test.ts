/** The docs stay true: links lead somewhere, every route is described, and tables are those of the schemas. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { environmentSchema } from '../../src/contracts/environment.js';
import { routeAnswers } from '../../src/contracts/responses/routes.js';
import { webhookNotes } from '../../src/contracts/responses/webhooks.js';
import { errorTable } from '../../src/errors.js';
import { root } from '../support/root.js';

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
  const missing = Object.keys(routeAnswers).filter((route) => {
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
  ...Object.entries(webhookNotes).map(
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
