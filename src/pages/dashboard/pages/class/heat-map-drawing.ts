/** Draws one path per band, because an element for each of 20,000 cells takes a second. */
import * as Plot from '@observablehq/plot';
import { type Status, statusTexts } from '../../../../domain/classes/learner-status.js';
import { truncate } from '../../base/format.js';
import { formatSection, type SkillLabel } from '../../base/skill-names.js';
import { renderPlot } from '../../parts/chart.jsx';
import { accuracyBands, bandColors, findBand } from '../skills/bands.jsx';
import type { Member } from './load-class.js';

export interface HeatMapSkill extends SkillLabel {
  readonly id: string;
}

export interface HeatMapLayout {
  readonly width: number;
  readonly height: number;
  readonly left: number;
  readonly top: number;
  /** Pixels. */
  readonly columnWidth: number;
  readonly rowHeight: number;
}

/** Rows fit into about one screen. Columns are at least as wide as a fingertip. @param width pixels */
export function computeLayout(members: number, skills: number, width: number): HeatMapLayout {
  const rowHeight = Math.min(20, Math.max(3, Math.floor(1000 / Math.max(1, members))));
  const [left, top] = [116, 148];
  const columnWidth = Math.max(14, (width - left - 1) / Math.max(1, skills));
  return {
    left,
    top,
    rowHeight,
    columnWidth,
    width: left + 1 + columnWidth * skills,
    height: top + 1 + rowHeight * members,
  };
}

/** Null to the left of or above the cells. */
export function locateCell({ left, top, columnWidth, rowHeight }: HeatMapLayout, x: number, y: number) {
  const cell = { column: Math.floor((x - left) / columnWidth), row: Math.floor((y - top) / rowHeight) };
  return cell.column < 0 || cell.row < 0 ? null : cell;
}

/** Draws members from top to bottom and skills from left to right. */
export function drawHeatMap(
  members: readonly Member[],
  skills: readonly HeatMapSkill[],
  layout: HeatMapLayout,
  isGrouped: boolean,
): Element {
  const names = new Map(skills.map(({ id, name }) => [id, truncate(name, 20)]));
  const ids = members.map(({ userId }) => userId);
  return renderPlot(
    {
      ...{ width: layout.width, height: layout.height, marginRight: 1, marginBottom: 1 },
      ...{ marginLeft: layout.left, marginTop: layout.top },
      x: { type: 'band', domain: [...names.keys()], round: false, padding: 0, label: null },
      y: { type: 'band', domain: ids, round: false, padding: 0, label: null, axis: null },
      marks: [
        () => drawCells(members, skills, layout),
        Plot.axisX({
          ...{ anchor: 'top', tickRotate: -90, tickSize: 0, tickPadding: 6, fontSize: 11 },
          tickFormat: (id: string) => names.get(id) ?? id,
        }),
        () => drawSectionHeads(skills, layout),
        () => (isGrouped && layout.rowHeight < minNamedHeight ? drawStatusGroups(members, layout) : null),
        ...(layout.rowHeight >= minNamedHeight
          ? [Plot.axisY({ tickSize: 0, fontSize: 11, tickFormat: (id: string) => truncate(id, 15) })]
          : []),
      ],
    },
    'Expected accuracy by learner and skill',
  );
}

const minNamedHeight = 12;

function createSvgElement(name: string, attributes: Readonly<Record<string, string | number>>): SVGElement {
  const created = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) created.setAttribute(key, `${value}`);
  return created;
}

function drawCells(
  members: readonly Member[],
  skills: readonly HeatMapSkill[],
  layout: HeatMapLayout,
): SVGElement {
  const { left, top, columnWidth, rowHeight } = layout;
  const paths = bandColors.map((): string[] => []);
  const [width, height] = [columnWidth - 1, rowHeight - (rowHeight > 5 ? 1 : 0.5)].map((side) =>
    side.toFixed(1),
  );
  for (const [i, { progress }] of members.entries())
    for (const [j, { id }] of skills.entries()) {
      const expected = progress.expected_accuracy[id];
      if (expected === undefined) continue;
      const corner = `${(left + columnWidth * j).toFixed(1)} ${(top + rowHeight * i).toFixed(1)}`;
      paths[findBand(accuracyBands, expected)]?.push(`M${corner}h${width}v${height}h-${width}z`);
    }
  const all = createSvgElement('g', {});
  all.append(
    ...paths.map((path, band) =>
      createSvgElement('path', { d: path.join(''), fill: bandColors[band] as string }),
    ),
  );
  return all;
}

/** Expects the skills of a section to be adjacent. */
function drawSectionHeads(
  skills: readonly HeatMapSkill[],
  { left, columnWidth, height }: HeatMapLayout,
): SVGElement {
  const all = createSvgElement('g', { class: 'heat-groups' });
  for (const [i, { section }] of skills.entries()) {
    if (i > 0 && skills[i - 1]?.section === section) continue;
    const x = left + columnWidth * i - 0.5;
    all.append(createSvgElement('path', { d: `M${x} 0V${height}` }));
    const count = skills.filter((skill) => skill.section === section).length;
    const name = formatSection(section);
    // A wider name would overlap the next name.
    if (count * columnWidth < 6.5 * name.length) continue;
    all.append(
      Object.assign(createSvgElement('text', { x: x + 6, y: 11, 'text-anchor': 'start' }), {
        textContent: name,
      }),
    );
  }
  return all;
}

/** Expects the members of a status to be adjacent. */
function drawStatusGroups(
  members: readonly Member[],
  { left, top, rowHeight, width }: HeatMapLayout,
): SVGElement {
  const all = createSvgElement('g', { class: 'heat-groups' });
  const order = Object.entries(statusTexts) as [Status, string][];
  let next = top;
  for (const [status, name] of order) {
    const count = members.filter((member) => member.status === status).length;
    const place = { x: left - 8, y: next + 11, 'text-anchor': 'end' };
    if (count > 0) all.append(createSvgElement('path', { d: `M0 ${next}H${width}` }));
    if (count * rowHeight >= 14)
      all.append(Object.assign(createSvgElement('text', place), { textContent: name }));
    next += count * rowHeight;
  }
  return all;
}
