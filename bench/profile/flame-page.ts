import { tag, textTag } from '../../src/lab/report/page.js';
import type { FlameNode } from './cpu-profile.js';

const minShare = 0.001;

const style = `body { font: 12px system-ui, sans-serif; margin: 1rem; background: #fff; color: #1a1a1a; }
h1 { font-size: 1.1rem; } .calls { display: flex; } .frame { overflow: hidden; flex: none; }
.name { height: 16px; margin-bottom: 2px; padding: 0 3px; border-radius: 2px; overflow: hidden; white-space: nowrap;
cursor: pointer; } .calls:has(> .wide) > :not(.wide) { display: none; } .frame.wide { width: 100% !important; }
.own { background: #8ec6ee; } .package { background: #f6c48a; } .node { background: #b5d9a5; }
.gc { background: #ec9a94; } .native { background: #cfcfd6; } li { display: inline-block; margin-right: 1rem; padding: 0 6px; }`;

const script = `addEventListener('click', ({ target }) => {
  if (!target.matches('.name')) return;
  for (const frame of document.querySelectorAll('.wide')) frame.classList.remove('wide');
  for (let frame = target.closest('.frame'); frame; frame = frame.parentElement.closest('.frame'))
    frame.classList.add('wide');
});`;

const kinds = {
  own: 'Skilltrace',
  package: 'packages',
  node: 'Node',
  gc: 'garbage collection',
  native: 'V8 and native code',
};

function classifyFrame(label: string): keyof typeof kinds {
  if (label === '(garbage collector)') return 'gc';
  if (label.includes(' node:')) return 'node';
  if (/ (src|workers|bench|dist)\//.test(label)) return 'own';
  return label.includes(' ') ? 'package' : 'native';
}

/** @param answers divisor of all times */
export function renderFlamePage(title: string, flame: FlameNode, answers: number): string {
  const micros = (time: number): string => (time / answers).toFixed(2);
  const draw = (node: FlameNode, caller: FlameNode): string => {
    const calls = [...node.children.values()]
      .filter(({ total }) => total >= minShare * flame.total)
      .sort((a, b) => b.total - a.total);
    const about = `${node.label}: ${micros(node.total)} µs per answer, self ${micros(node.self)}`;
    return tag(
      'div',
      { class: 'frame', style: `width:${((100 * node.total) / caller.total).toFixed(3)}%` },
      textTag('div', { class: `name ${classifyFrame(node.label)}`, title: about }, node.label),
      tag('div', { class: 'calls' }, ...calls.map((call) => draw(call, node))),
    );
  };
  return [
    '<!doctype html><html lang="en"><head><meta charset="utf-8">',
    textTag('title', {}, title),
    `<style>${style}</style></head><body>`,
    textTag('h1', {}, title),
    tag('ul', {}, ...Object.entries(kinds).map(([kind, name]) => textTag('li', { class: kind }, name))),
    draw(flame, flame),
    `<script>${script}</script></body></html>\n`,
  ].join('\n');
}
