/** A report as one HTML file that needs nothing else: styles inside, no scripts, nothing fetched. */
import { escapeText, tag, textTag } from './markup.js';

/** Okabe and Ito's colours, which colour-blind readers tell apart, lightened for a dark page. */
const style = `
:root { color-scheme: light dark; --page: #ffffff; --text: #1c2430; --soft: #5b6676; --line: #d9dee5;
  --panel: #f6f8fa; --bar: #b6c0cd; --a: #0072b2; --b: #d55e00; --c: #00876a; --d: #86709e;
  --e: #b5407c; }
@media (prefers-color-scheme: dark) { :root { --page: #12161c; --text: #e6eaf0; --soft: #9aa6b5; --line: #2f3843;
  --panel: #1a2028; --bar: #4a5665; --a: #56b4e9; --b: #ff9b52; --c: #3fcfa5; --d: #bda5da; --e: #f08fbb; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 76rem; background: var(--page); color: var(--text);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .4rem; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2.6rem 0 .4rem; }
p { max-width: 48rem; margin: .4rem 0 .8rem; color: var(--soft); }
.charts { display: grid; gap: 1.25rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 25rem), 1fr)); }
figure { margin: 0; padding: .9rem 1rem .6rem; background: var(--panel); border: 1px solid var(--line);
  border-radius: .6rem; }
figcaption { font-weight: 600; }
figure > svg { display: block; width: 100%; height: auto; margin-top: .3rem; }
.legend { display: flex; flex-wrap: wrap; gap: .1rem 1.1rem; margin: .25rem 0 0; padding: 0; list-style: none;
  font-size: .85rem; color: var(--soft); }
.legend li { display: flex; align-items: center; gap: .4rem; }
.sample { width: 26px; height: 10px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .95rem; }
th, td { padding: .35rem 1.1rem .35rem 0; text-align: right; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
th:first-child, td:first-child { text-align: left; min-width: 9rem; max-width: 24rem; white-space: normal;
  overflow-wrap: anywhere; }
thead th { color: var(--soft); font-weight: 600; vertical-align: bottom; }
td.best { font-weight: 700; }
svg text { fill: var(--soft); font-family: inherit; font-size: 13px; }
svg text.name { fill: var(--text); }
.middle { text-anchor: middle; } .end { text-anchor: end; }
.grid { stroke: var(--line); stroke-width: 1; } .axis { stroke: var(--soft); stroke-width: 1; }
.diagonal { stroke: var(--soft); stroke-width: 1; stroke-dasharray: 3 4; }
.bar { fill: var(--bar); }
.series polyline { fill: none; stroke: var(--of); stroke-width: 2; stroke-linejoin: round; }
.series circle { fill: var(--of); stroke: var(--panel); stroke-width: 1; }
.series .range { stroke: var(--of); stroke-width: 1.5; opacity: .6; }
.series.observed { --of: var(--text); } .series.a { --of: var(--a); } .series.b { --of: var(--b); }
.series.c { --of: var(--c); } .series.d { --of: var(--d); } .series.e { --of: var(--e); }
.series.b polyline { stroke-dasharray: 7 4; } .series.c polyline { stroke-dasharray: 2 4; }
.series.d polyline { stroke-dasharray: 9 3 2 3; } .series.e polyline { stroke-dasharray: 12 3; }
@media print { body { max-width: none; } figure { break-inside: avoid; } }
`;

/**
 * @param sections markup, as the functions below make it
 * @param ownStyle rules that only this page needs
 */
export function htmlPage(title: string, sections: readonly string[], ownStyle = ''): string {
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeText(title)}</title>
<style>${style}${ownStyle}</style>
</head>
<body>
${textTag('h1', {}, title)}
${sections.join('\n')}
</body>
</html>
`;
}

/** A heading, a paragraph under it, and what it is about. */
export const section = (heading: string, text: string, ...content: readonly string[]): string =>
  tag('section', {}, textTag('h2', {}, heading), textTag('p', {}, text), ...content);

/** Charts side by side where there is room. */
export const chartGrid = (figures: readonly string[]): string => tag('div', { class: 'charts' }, ...figures);

/** A cell of a table; `best` stands out. */
export interface Cell {
  readonly text: string;
  readonly best?: boolean;
}

/** The first column holds names, the others numbers. */
export function htmlTable(head: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const headRow = tag('tr', {}, ...head.map((text) => textTag('th', { scope: 'col' }, text)));
  const bodyRows = rows.map((cells) =>
    tag('tr', {}, ...cells.map(({ text, best }) => textTag('td', best ? { class: 'best' } : {}, text))),
  );
  const table = tag('table', {}, tag('thead', {}, headRow), tag('tbody', {}, ...bodyRows));
  return tag('div', { class: 'scroll' }, table);
}
