/** Draws one path per band, because an element for each of 20,000 cells takes a second. */
import * as Plot from '@observablehq/plot';
import { shortened } from '../../base/format.js';
import { type SkillName, sectionName } from '../../base/skill-names.js';
import { draw } from '../../parts/chart.jsx';
import { accuracyBands, bandColors, bandOf } from '../skills/bands.jsx';
import type { Member } from './read.js';
import { type Status, statuses } from './status.js';

export interface Skill extends SkillName {
  readonly id: string;
}

export interface Layout {
  readonly width: number;
  readonly height: number;
  readonly left: number;
  readonly top: number;
  /** Pixels. */
  readonly column: number;
  readonly row: number;
}

/** Rows fit into about one screen. Columns are at least as wide as a fingertip. @param width pixels */
export function layoutOf(members: number, skills: number, width: number): Layout {
  const row = Math.min(20, Math.max(3, Math.floor(1000 / Math.max(1, members))));
  const [left, top] = [116, 148];
  const column = Math.max(14, (width - left - 1) / Math.max(1, skills));
  return { left, top, row, column, width: left + 1 + column * skills, height: top + 1 + row * members };
}

/** Null to the left of or above the cells. */
export function cellAt({ left, top, column, row }: Layout, x: number, y: number) {
  const cell = { column: Math.floor((x - left) / column), row: Math.floor((y - top) / row) };
  return cell.column < 0 || cell.row < 0 ? null : cell;
}

/** Draws members from top to bottom and skills from left to right. */
export function drawHeat(
  members: readonly Member[],
  skills: readonly Skill[],
  layout: Layout,
  isGrouped: boolean,
): Element {
  const names = new Map(skills.map(({ id, name }) => [id, shortened(name, 20)]));
  const ids = members.map(({ userId }) => userId);
  return draw(
    {
      ...{ width: layout.width, height: layout.height, marginRight: 1, marginBottom: 1 },
      ...{ marginLeft: layout.left, marginTop: layout.top },
      x: { type: 'band', domain: [...names.keys()], round: false, padding: 0, label: null },
      y: { type: 'band', domain: ids, round: false, padding: 0, label: null, axis: null },
      marks: [
        () => cells(members, skills, layout),
        Plot.axisX({
          ...{ anchor: 'top', tickRotate: -90, tickSize: 0, tickPadding: 6, fontSize: 11 },
          tickFormat: (id: string) => names.get(id) ?? id,
        }),
        () => sectionHeads(skills, layout),
        () => (isGrouped && layout.row < nameHeight ? groups(members, layout) : null),
        ...(layout.row >= nameHeight
          ? [Plot.axisY({ tickSize: 0, fontSize: 11, tickFormat: (id: string) => shortened(id, 15) })]
          : []),
      ],
    },
    'Expected correct by learner and skill',
  );
}

const nameHeight = 12;

function element(name: string, attributes: Readonly<Record<string, string | number>>): SVGElement {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, `${value}`);
  return made;
}

function cells(members: readonly Member[], skills: readonly Skill[], layout: Layout): SVGElement {
  const { left, top, column, row } = layout;
  const paths = bandColors.map((): string[] => []);
  const [width, height] = [column - 1, row - (row > 5 ? 1 : 0.5)].map((side) => side.toFixed(1));
  for (const [i, { progress }] of members.entries())
    for (const [j, { id }] of skills.entries()) {
      const expected = progress.expected_accuracy[id];
      if (expected === undefined) continue;
      const corner = `${(left + column * j).toFixed(1)} ${(top + row * i).toFixed(1)}`;
      paths[bandOf(accuracyBands, expected)]?.push(`M${corner}h${width}v${height}h-${width}z`);
    }
  const all = element('g', {});
  all.append(
    ...paths.map((path, band) => element('path', { d: path.join(''), fill: bandColors[band] as string })),
  );
  return all;
}

/** Expects the skills of a section to be adjacent. */
function sectionHeads(skills: readonly Skill[], { left, column, height }: Layout): SVGElement {
  const all = element('g', { class: 'heat-groups' });
  for (const [i, { section }] of skills.entries()) {
    if (i > 0 && skills[i - 1]?.section === section) continue;
    const x = left + column * i - 0.5;
    all.append(element('path', { d: `M${x} 0V${height}` }));
    const count = skills.filter((skill) => skill.section === section).length;
    const name = sectionName(section);
    // A wider name would overlap the next name.
    if (count * column < 6.5 * name.length) continue;
    all.append(
      Object.assign(element('text', { x: x + 6, y: 11, 'text-anchor': 'start' }), {
        textContent: name,
      }),
    );
  }
  return all;
}

/** Expects the members of a status to be adjacent. */
function groups(members: readonly Member[], { left, top, row, width }: Layout): SVGElement {
  const all = element('g', { class: 'heat-groups' });
  const order = Object.entries(statuses) as [Status, string][];
  let next = top;
  for (const [status, name] of order) {
    const count = members.filter((member) => member.status === status).length;
    const place = { x: left - 8, y: next + 11, 'text-anchor': 'end' };
    if (count > 0) all.append(element('path', { d: `M0 ${next}H${width}` }));
    if (count * row >= 14) all.append(Object.assign(element('text', place), { textContent: name }));
    next += count * row;
  }
  return all;
}
