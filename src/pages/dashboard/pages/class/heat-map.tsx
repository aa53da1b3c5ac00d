import { useEffect, useMemo, useState } from 'preact/hooks';
import { computeSum } from '../../../../lists.js';
import { formatPercent, pluralize } from '../../base/format.js';
import { navigate } from '../../base/route.js';
import { useWidth } from '../../parts/chart.jsx';
import { QuerySelect } from '../../parts/query-select.jsx';
import '../skills/skills.css';
import { type Status, statusTexts } from '../../../../domain/classes/learner-status.js';
import { formatSection, type SkillLabel } from '../../base/skill-names.js';
import { MasteryMeaning } from '../../parts/mastery-meaning.jsx';
import { type Column, createColumnBuilder, Table } from '../../parts/table.jsx';
import { accuracyBands, BandLegend } from '../skills/bands.jsx';
import {
  computeLayout,
  drawHeatMap,
  type HeatMapLayout,
  type HeatMapSkill,
  locateCell,
} from './heat-map-drawing.js';
import type { Member } from './load-class.js';

interface HeatMapProps {
  readonly members: readonly Member[];
  readonly labels: ReadonlyMap<string, SkillLabel>;
  readonly order: string | undefined;
}

/** More columns are unreadable. */
const maxSkills = 100;

const orderTexts: Readonly<Record<string, string>> = {
  status: 'status, then expected accuracy',
  expected: 'expected accuracy, lowest first',
  id: 'learner id',
};

export function HeatMap({ members, labels, order = 'status' }: HeatMapProps) {
  const skills = useMemo(() => collectSkills(members, labels), [members, labels]);
  const shown = useMemo(() => skills.slice(0, maxSkills).sort(compareBySection), [skills]);
  const sorted = useMemo(() => orderMembers(members, order), [members, order]);
  const [isTableOpen, setTableOpen] = useState(false);
  return (
    <figure class="chart">
      <div class="row apart">
        <figcaption>Expected accuracy by learner and skill</figcaption>
        <QuerySelect
          class="row"
          label="Order by"
          parameter="order"
          value={order}
          options={Object.entries(orderTexts)}
        />
      </div>
      <p class="soft">
        Expected share of correct answers on questions of average difficulty. Click a cell to open the
        learner's skill, or use the arrow keys and Enter.
        {skills.length > maxSkills &&
          ` Shows ${maxSkills} of ${pluralize(skills.length, 'skill')}, those with the most learners.`}
      </p>
      <BandLegend bands={accuracyBands} />
      <MasteryMeaning />
      {sorted.length === 0 || shown.length === 0 ? (
        <p class="soft">No answers yet.</p>
      ) : (
        <>
          <HeatMapDrawing members={sorted} skills={shown} isGrouped={order === 'status'} />
          <details onToggle={(event) => setTableOpen(event.currentTarget.open)}>
            <summary>Show as table</summary>
            {isTableOpen && (
              <Table
                {...{
                  name: 'Expected accuracy in the class',
                  columns: buildColumns(shown),
                  rows: sorted,
                  filter: true,
                }}
                rowKey={({ userId }) => userId}
              />
            )}
          </details>
        </>
      )}
    </figure>
  );
}

interface HeatMapDrawingProps {
  readonly members: readonly Member[];
  readonly skills: readonly HeatMapSkill[];
  readonly isGrouped: boolean;
}

interface CellPosition {
  readonly column: number;
  readonly row: number;
}

const keySteps: Readonly<Record<string, readonly [right: number, down: number]>> = {
  ...{ ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] },
  ...{ PageUp: [0, -10], PageDown: [0, 10] },
};

function HeatMapDrawing({ members, skills, isGrouped }: HeatMapDrawingProps) {
  const { element, width, setElement } = useWidth();
  const [cell, setCell] = useState<CellPosition | null>(null);
  const layout = computeLayout(members.length, skills.length, width);
  useEffect(() => {
    if (element === null || width === 0) return;
    element.replaceChildren(drawHeatMap(members, skills, layout, isGrouped));
    setCell(null);
  }, [element, width, members, skills, isGrouped]);
  const findCell = (event: MouseEvent): CellPosition | null => {
    const box = element?.getBoundingClientRect();
    const found = box && locateCell(layout, event.clientX - box.left, event.clientY - box.top);
    return found && members[found.row] && skills[found.column] ? found : null;
  };
  const openLearner = (found: CellPosition | null): void => {
    const [member, skill] = [members[found?.row ?? -1], skills[found?.column ?? -1]];
    if (member !== undefined && skill !== undefined)
      navigate('learner', [member.userId], { skill: skill.id });
  };
  const handleKey = (event: KeyboardEvent): void => {
    if (event.key === 'Enter') openLearner(cell);
    const step = keySteps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const next = cell === null ? { column: 0, row: 0 } : moveCell(cell, step, skills.length, members.length);
    setCell(next);
    scrollToCell(element, layout, next);
  };
  return (
    <div
      class="scroll heat"
      role="application"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: arrow keys move between cells
      tabIndex={0}
      aria-label="Expected accuracy by learner and skill. Arrow keys move between cells, Enter opens a cell."
      onKeyDown={handleKey}
      onPointerMove={(event) => setCell(findCell(event))}
      onPointerLeave={() => setCell(null)}
      onClick={(event) => openLearner(findCell(event))}
    >
      <div class="drawing" ref={setElement} />
      {cell !== null && <CellDetails {...{ cell, layout, members, skills }} />}
    </div>
  );
}

const moveCell = (
  cell: CellPosition,
  [right, down]: readonly [number, number],
  columns: number,
  rows: number,
): CellPosition => ({
  column: Math.min(columns - 1, Math.max(0, cell.column + right)),
  row: Math.min(rows - 1, Math.max(0, cell.row + down)),
});

function scrollToCell(
  drawing: HTMLElement | null,
  { left, top, columnWidth, rowHeight }: HeatMapLayout,
  cell: CellPosition,
): void {
  const box = drawing?.parentElement;
  if (!box) return;
  const x = left + columnWidth * cell.column;
  if (x < box.scrollLeft + left || x + columnWidth > box.scrollLeft + box.clientWidth)
    box.scrollLeft = x - left;
  const y = box.getBoundingClientRect().top + top + rowHeight * cell.row;
  if (y < 100 || y > innerHeight - 100) scrollBy({ top: y - innerHeight / 2 });
}

function CellDetails({
  cell,
  layout: { left, top, columnWidth, rowHeight, width },
  members,
  skills,
}: {
  cell: CellPosition;
  layout: HeatMapLayout;
  members: readonly Member[];
  skills: readonly HeatMapSkill[];
}) {
  const [member, skill] = [members[cell.row], skills[cell.column]];
  if (member === undefined || skill === undefined) return null;
  const [x, y] = [left + columnWidth * cell.column, top + rowHeight * cell.row];
  const { [skill.id]: expected } = member.progress.expected_accuracy;
  const side = x > width / 2 ? { right: `calc(100% - ${x - 8}px)` } : { left: `${x + columnWidth + 8}px` };
  return (
    <>
      <div
        {...{ class: 'heat-cell', 'aria-hidden': true }}
        style={{
          left: `${x - 1}px`,
          top: `${y - 1}px`,
          width: `${columnWidth + 1}px`,
          height: `${rowHeight + 1}px`,
        }}
      />
      <p class="heat-tip" role="status" style={{ top: `${Math.max(0, y - 12)}px`, ...side }}>
        <strong>
          <bdi>{member.userId}</bdi>
        </strong>{' '}
        {statusTexts[member.status]}
        <br />
        {skill.name}: {expected === undefined ? 'no answers' : `expected accuracy ${formatPercent(expected)}`}
        {expected !== undefined && (
          <>
            <br />
            mastery {formatPercent(member.progress.mastery[skill.id])}
            {formatPlateau(member, skill)}
          </>
        )}
      </p>
    </>
  );
}

const formatPlateau = ({ progress }: Member, { id }: HeatMapSkill): string =>
  progress.plateaus.includes(id) ? ', on a plateau' : '';

/** Skills with the most learners first. */
function collectSkills(members: readonly Member[], labels: ReadonlyMap<string, SkillLabel>): HeatMapSkill[] {
  const counts = new Map<string, number>();
  for (const { progress } of members)
    for (const id of Object.keys(progress.mastery)) counts.set(id, (counts.get(id) ?? 0) + 1);
  return [...counts]
    .sort(([, a], [, b]) => b - a)
    .map(([id]) => ({ id, ...(labels.get(id) ?? { name: id, section: null }) }));
}

const compareBySection = (a: HeatMapSkill, b: HeatMapSkill): number =>
  formatSection(a.section).localeCompare(formatSection(b.section)) || a.name.localeCompare(b.name);

function computeMeanExpected({ progress }: Member): number {
  const all = Object.values(progress.expected_accuracy);
  return computeSum(all) / Math.max(1, all.length);
}

function orderMembers(members: readonly Member[], order: string): readonly Member[] {
  if (order === 'id') return members.toSorted((a, b) => a.userId.localeCompare(b.userId));
  const means = new Map(members.map((member) => [member, computeMeanExpected(member)]));
  const rank = Object.keys(statusTexts) as Status[];
  const compareByExpected = (a: Member, b: Member): number => (means.get(a) ?? 0) - (means.get(b) ?? 0);
  if (order === 'expected') return members.toSorted(compareByExpected);
  return members.toSorted(
    (a, b) => rank.indexOf(a.status) - rank.indexOf(b.status) || compareByExpected(a, b),
  );
}

const field = createColumnBuilder<Member>();
const buildColumns = (skills: readonly HeatMapSkill[]): readonly Column<Member>[] => [
  field('Learner', 'userId'),
  field('Status', ({ status }) => statusTexts[status]),
  ...skills.map(({ id, name }) =>
    field(name, ({ progress }) => progress.expected_accuracy[id] ?? null, {
      format: formatPercent,
      align: 'end',
    }),
  ),
];
