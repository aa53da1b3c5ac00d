/** Self-contained HTML without scripts. All texts are escaped. */
import { formatTable } from './format.js';

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** HTML does not allow control characters: they become U+FFFD. */
const escapeText = (text: string): string =>
  text
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern replaces them
    .replace(/[\u0000-\u0008\u000B\u000C\u000E-\u001F]/g, '\uFFFD')
    .replace(/[&<>"']/g, (character) => entities[character] ?? character);

/** @param content markup */
export function tag(
  name: string,
  attributes: Readonly<Record<string, string>>,
  ...content: readonly string[]
): string {
  const listed = Object.entries(attributes).map(([key, value]) => ` ${key}="${escapeText(value)}"`);
  return `<${name}${listed.join('')}>${content.join('')}</${name}>`;
}

export const textTag = (name: string, attributes: Readonly<Record<string, string>>, text: string): string =>
  tag(name, attributes, escapeText(text));

/** Colours by Okabe and Ito, safe for colour-blind readers; lighter on dark pages. */
const style = `
:root { color-scheme: light dark; --page: #ffffff; --text: #1c2430; --soft: #5b6676; --line: #d9dee5;
  --panel: #f6f8fa; --bar: #b6c0cd; --a: #0072b2; --b: #d55e00; --c: #00876a; --d: #86709e;
  --e: #b5407c; --alert: #ad4400; }
@media (prefers-color-scheme: dark) { :root { --page: #12161c; --text: #e6eaf0; --soft: #9aa6b5; --line: #2f3843;
  --panel: #1a2028; --bar: #4a5665; --a: #56b4e9; --b: #ff9b52; --c: #3fcfa5; --d: #bda5da; --e: #f08fbb; --alert: #ff9b52; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 76rem; background: var(--page); color: var(--text);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .4rem; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2.6rem 0 .4rem; }
p { max-width: 48rem; margin: .4rem 0 .8rem; color: var(--soft); }
dl.run { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .1rem 1.1rem; margin: .4rem 0 .8rem; font-size: .9rem; }
dl.run dt { color: var(--soft); }
dl.run dd { margin: 0; overflow-wrap: anywhere; }
.charts { display: grid; gap: 1.25rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 25rem), 1fr)); }
figure { margin: 0; padding: .9rem 1rem .6rem; background: var(--panel); border: 1px solid var(--line);
  border-radius: .6rem; }
figcaption { font-weight: 600; }
.scroll { overflow-x: auto; }
.charts + .scroll, .scroll + .charts, .scroll + .scroll { margin-top: 1.25rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .95rem; }
th, td { padding: .35rem 1.1rem .35rem 0; text-align: right; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
th:first-child, td:first-child { text-align: left; min-width: 9rem; max-width: 24rem; white-space: normal;
  overflow-wrap: anywhere; }
thead th { color: var(--soft); font-weight: 600; vertical-align: bottom; }
.headline { margin: 1rem 0; }
.headline p { max-width: 60rem; color: var(--text); overflow-wrap: anywhere; }
.headline p:first-child { font-size: 1.2rem; font-weight: 600; line-height: 1.4; }
td.best { font-weight: 700; }
td.off { color: var(--alert); font-weight: 700; }
td.few { color: var(--soft); font-style: italic; }
table.wide { font-size: .85rem; }
table.wide :is(th, td) { padding-right: .7rem; white-space: normal; }
table.wide td:first-child { min-width: 7rem; }
figure figure { padding: 0; border: 0; }
figure svg { width: 100%; height: auto; --plot-background: var(--panel); font-family: inherit; font-size: 12px; }
figure div { color: var(--soft); font: inherit !important; font-size: .85rem !important; min-height: 0 !important; margin: .2rem 0 0 !important; }
figure div svg { width: 14px; }
@media print { body { max-width: none; } figure { break-inside: avoid; } }
`;

/**
 * @param sections markup
 * @param extraStyle further rules
 */
export function htmlPage(title: string, sections: readonly string[], extraStyle = ''): string {
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeText(title)}</title>
<style>${style}${extraStyle}</style>
</head>
<body>
${textTag('h1', {}, title)}
${sections.join('\n')}
</body>
</html>
`;
}

export const section = (heading: string, text: string, ...content: readonly string[]): string =>
  tag('section', {}, textTag('h2', {}, heading), textTag('p', {}, text), ...content);

/** @param sentences the first one is the largest */
export const headlineBlock = (sentences: readonly string[]): string =>
  tag('div', { class: 'headline' }, ...sentences.map((text) => textTag('p', {}, text)));

export const chartGrid = (figures: readonly string[]): string => tag('div', { class: 'charts' }, ...figures);

/** `look`: `best` of its column, `off` the target, or `few` observations. */
export interface Cell {
  readonly text: string;
  readonly look?: 'best' | 'off' | 'few' | undefined;
}

export type Row = readonly (Cell | string)[];

const toCell = (cell: Cell | string): Cell => (typeof cell === 'string' ? { text: cell } : cell);

/** @param wide wraps texts */
export function htmlTable(head: readonly string[], rows: readonly Row[], wide = false): string {
  const headRow = tag('tr', {}, ...head.map((text) => textTag('th', { scope: 'col' }, text)));
  const bodyRow = (row: Row): string =>
    tag(
      'tr',
      {},
      ...row.map(toCell).map(({ text, look }) => textTag('td', look ? { class: look } : {}, text)),
    );
  const parts = [tag('thead', {}, headRow), tag('tbody', {}, ...rows.map(bodyRow))];
  return tag('div', { class: 'scroll' }, tag('table', wide ? { class: 'wide' } : {}, ...parts));
}

/** For a terminal: a star marks few observations. */
export function textTable(head: readonly string[], rows: readonly Row[]): string {
  const cells = rows.map((row) => row.map(toCell));
  const isFew = ({ look }: Cell): boolean => look === 'few';
  const [others, note] = cells.some((row) => row.some(isFew))
    ? [' ', ['  * too few observations or learners: not reliable']]
    : ['', []];
  const textOf = (cell: Cell): string =>
    `${cell.text.replaceAll('\u00a0', ' ')}${isFew(cell) ? '*' : others}`;
  const lines = cells.map((row) => row.map((cell, i) => (i === 0 ? cell.text : textOf(cell))));
  return [
    formatTable([head.map((text, i) => text.toUpperCase() + (i === 0 ? '' : others)), ...lines]),
    ...note,
  ].join('\n');
}

/** Below this number, a figure is mostly chance. */
export const minObservations = 200;
