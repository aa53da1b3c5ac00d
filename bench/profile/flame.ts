/** A flame graph as a page that needs nothing else: calls stand under their callers; a click widens one to the whole width. */
import { tag, textTag } from '../../src/lab/report/page.js';
import type { FlameNode } from './cpu-profile.js';

const rowHeight = 18;
/** Narrower ones, in percent of the whole, are left out. */
const least = 0.1;

const style = `body { font: 12px system-ui, sans-serif; margin: 1rem; background: #fff; color: #1a1a1a; }
h1 { font-size: 1.1rem; } #flame { position: relative; } #flame div { position: absolute; height: ${rowHeight - 2}px;
overflow: hidden; white-space: nowrap; box-sizing: border-box; padding: 0 3px; border-radius: 2px; cursor: pointer; }
.own { background: #8ec6ee; } .package { background: #f6c48a; } .node { background: #b5d9a5; }
.gc { background: #ec9a94; } .native { background: #cfcfd6; } li { display: inline-block; margin-right: 1rem; padding: 0 6px; }`;

const script = `const frames = [...document.querySelectorAll('#flame div')].map((box) =>
  ({ box, from: Number(box.dataset.from), width: Number(box.dataset.width) }));
const widen = (chosen) => frames.forEach(({ box, from, width }) => {
  const left = (from - chosen.from) / chosen.width * 100, wide = width / chosen.width * 100;
  const shown = left < 99.99 && left + wide > 0.01;
  box.style.display = shown ? '' : 'none';
  box.style.left = Math.max(0, left) + '%';
  box.style.width = Math.min(100, left + wide) - Math.max(0, left) + '%';
});
frames.forEach((frame) => frame.box.addEventListener('click', () => widen(frame)));`;

const kinds = {
  own: 'Skilltrace',
  package: 'packages',
  node: 'Node',
  gc: 'garbage collection',
  native: 'V8 and native code',
};

function kindOf(label: string): keyof typeof kinds {
  if (label === '(garbage collector)') return 'gc';
  if (label.includes(' node:')) return 'node';
  if (/ (src|workers|bench|dist)\//.test(label)) return 'own';
  return label.includes(' ') ? 'package' : 'native';
}

/** @param answers by which times are divided */
export function flamePage(title: string, flame: FlameNode, answers: number): string {
  const boxes: string[] = [];
  let depth = 0;
  const draw = (node: FlameNode, from: number, row: number): void => {
    const width = (100 * node.total) / flame.total;
    if (width < least) return;
    depth = Math.max(depth, row + 1);
    const told = `${node.label}: ${(node.total / answers).toFixed(2)} µs an answer, itself ${(node.self / answers).toFixed(2)}`;
    const place = `left:${from.toFixed(3)}%;width:${width.toFixed(3)}%;top:${row * rowHeight}px`;
    const data = { 'data-from': from.toFixed(4), 'data-width': width.toFixed(4), title: told };
    boxes.push(textTag('div', { class: kindOf(node.label), style: place, ...data }, node.label));
    let left = from;
    for (const child of [...node.children.values()].sort((a, b) => b.total - a.total)) {
      draw(child, left, row + 1);
      left += (100 * child.total) / flame.total;
    }
  };
  draw(flame, 0, 0);
  return [
    '<!doctype html><html lang="en"><head><meta charset="utf-8">',
    textTag('title', {}, title),
    `<style>${style}</style></head><body>`,
    textTag('h1', {}, title),
    tag('ul', {}, ...Object.entries(kinds).map(([kind, name]) => textTag('li', { class: kind }, name))),
    tag('div', { id: 'flame', style: `height:${depth * rowHeight}px` }, ...boxes),
    `<script>${script}</script></body></html>\n`,
  ].join('\n');
}
