/** Draws one path per band, because an element for each of 20,000 cells takes a second. */
import { formatSkillAccuracy, truncate } from '../../base/format.js';
import type { SkillLabel } from '../../base/skill-names.js';
import { accuracyBands, bandColors, findBand } from '../skills/bands.jsx';
import type { Member } from './load-class.js';

export interface HeatMapSkill extends SkillLabel {
  readonly id: string;
  /** Mean expected accuracy of the members with answers. */
  readonly mean: number;
}

export interface HeatMapMember extends Member {
  /** Mean expected accuracy of the skills with answers; null without answers. */
  readonly mean: number | null;
}

export interface HeatMapLayout {
  readonly width: number;
  readonly height: number;
  /** Corner of the cells; to the left and above are the means and the names. */
  readonly left: number;
  readonly top: number;
  /** Pixels. */
  readonly columnWidth: number;
  readonly rowHeight: number;
}

const meanWidth = 34;
const meanHeight = 20;
const nameWidth = 116;
const headHeight = 148;
const minNamedHeight = 12;

/** Rows fit into about one screen. Columns are at least as wide as a fingertip. @param width pixels */
export function computeLayout(members: number, skills: number, width: number): HeatMapLayout {
  const rowHeight = Math.min(20, Math.max(3, Math.floor(1000 / Math.max(1, members))));
  const [left, top] = [nameWidth + meanWidth, headHeight + meanHeight];
  const columnWidth = Math.max(14, (width - left - 1) / Math.max(1, skills));
  return {
    ...{ left, top, rowHeight, columnWidth },
    width: left + 1 + columnWidth * skills,
    height: top + 1 + rowHeight * members,
  };
}

/** A negative column is the name of the learner. Null above the cells. */
export function locateCell({ left, top, columnWidth, rowHeight }: HeatMapLayout, x: number, y: number) {
  const [column, row] = [Math.floor((x - left) / columnWidth), Math.floor((y - top) / rowHeight)];
  return row < 0 ? null : { column: Math.max(-1, column), row };
}

interface DrawingProps {
  readonly members: readonly HeatMapMember[];
  readonly skills: readonly HeatMapSkill[];
  readonly layout: HeatMapLayout;
}

/** Members from top to bottom and skills from left to right. */
export const drawHeatMap = (drawing: DrawingProps) => {
  const { width, height, rowHeight } = drawing.layout;
  return (
    <svg
      class="plot"
      role="img"
      aria-label="Expected accuracy by learner and skill"
      fill="currentColor"
      viewBox={`0 0 ${width} ${height}`}
      {...{ width, height }}
    >
      {drawCells(drawing)}
      {drawSkillHeads(drawing)}
      {rowHeight >= minNamedHeight && drawMemberHeads(drawing)}
    </svg>
  );
};

const formatMean = (mean: number): string => formatSkillAccuracy(mean).replace(' %', '');

function drawCells({ members, skills, layout: { left, top, columnWidth, rowHeight } }: DrawingProps) {
  const paths = bandColors.map((): string[] => []);
  const gap = rowHeight > 5 ? 1 : 0.5;
  const add = (share: number | null | undefined, x: number, y: number, width: number, height: number) => {
    if (share === null || share === undefined) return;
    const [right, down] = [(width - 1).toFixed(1), (height - gap).toFixed(1)];
    paths[findBand(accuracyBands, share)]?.push(
      `M${x.toFixed(1)} ${y.toFixed(1)}h${right}v${down}h-${right}z`,
    );
  };
  for (const [i, { mean, progress }] of members.entries()) {
    const y = top + rowHeight * i;
    add(mean, left - meanWidth, y, meanWidth - 4, rowHeight);
    for (const [j, { id }] of skills.entries())
      add(progress.expected_accuracy[id], left + columnWidth * j, y, columnWidth, rowHeight);
  }
  for (const [j, { mean }] of skills.entries())
    add(mean, left + columnWidth * j, top - meanHeight, columnWidth, meanHeight - 3);
  return paths.map((path, band) => <path key={band} d={path.join('')} fill={bandColors[band]} />);
}

/** Dark bands need light text. */
const meanClass = (mean: number): string => `heat-mean band-${findBand(accuracyBands, mean)}`;

const drawSkillHeads = ({ skills, layout: { left, top, columnWidth } }: DrawingProps) => (
  <g font-size="11">
    <text class="heat-label" x={left - meanWidth - 6} y={top - 8} text-anchor="end">
      Mean of learners
    </text>
    <text
      class="heat-label"
      transform={`translate(${left - meanWidth / 2 + 2} ${top - meanHeight - 6}) rotate(-90)`}
    >
      Mean of skills
    </text>
    {skills.map(({ id, name, mean }, i) => {
      const x = left + columnWidth * (i + 0.5) - 0.5;
      return (
        <g key={id}>
          <text transform={`translate(${x + 4} ${top - meanHeight - 6}) rotate(-90)`}>
            {truncate(name, 20)}
          </text>
          <text class={meanClass(mean)} x={x} y={top - 8} text-anchor="middle">
            {formatMean(mean)}
          </text>
        </g>
      );
    })}
  </g>
);

const drawMemberHeads = ({ members, layout: { left, top, rowHeight } }: DrawingProps) => (
  <g font-size="11">
    {members.map(({ userId, name, mean }, i) => {
      const y = top + rowHeight * (i + 0.5) + 3.5;
      return (
        <g key={userId}>
          <text x={left - meanWidth - 6} y={y} text-anchor="end">
            {truncate(name, 17)}
          </text>
          {mean !== null && (
            <text class={meanClass(mean)} x={left - meanWidth / 2 - 2} y={y} text-anchor="middle">
              {formatMean(mean)}
            </text>
          )}
        </g>
      );
    })}
  </g>
);
