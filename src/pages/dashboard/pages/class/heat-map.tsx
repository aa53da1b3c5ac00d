import { useMemo, useState } from 'preact/hooks';
import { classConstants } from '../../../../domain/classes/class-constants.js';
import { statusTexts } from '../../../../domain/classes/learner-status.js';
import { computeSum } from '../../../../lists.js';
import { formatMastery, formatSkillAccuracy, pluralize } from '../../base/format.js';
import { buildHref, navigate, type Route } from '../../base/route.js';
import type { SkillLabel } from '../../base/skill-names.js';
import { useWidth } from '../../base/width.js';
import { LearnerLink } from '../../parts/learner-link.jsx';
import { MasteryMeaning } from '../../parts/mastery-meaning.jsx';
import { QuerySelect } from '../../parts/query-select.jsx';
import { type Column, createColumnBuilder, Table } from '../../parts/table.jsx';
import { accuracyBands, BandLegend } from '../skills/bands.jsx';
import {
  computeLayout,
  drawHeatMap,
  type HeatMapLayout,
  type HeatMapMember,
  type HeatMapSkill,
  locateCell,
} from './heat-map-drawing.jsx';
import type { Member } from './load-class.js';
import '../skills/skills.css';

interface HeatMapProps {
  readonly members: readonly Member[];
  readonly labels: ReadonlyMap<string, SkillLabel>;
  readonly query: Route['query'];
}

/** More columns are unreadable. */
const maxSkills = 100;

const orders = [
  ['need', 'need: lowest mean first'],
  ['name', 'name'],
] as const;
const columnOrders = [
  ['need', 'need: most below 60 % first'],
  ['name', 'name'],
] as const;

export function HeatMap({ members, labels, query }: HeatMapProps) {
  const { order = 'need', skills: columns = 'need' } = query;
  const skills = useMemo(() => collectSkills(members, labels), [members, labels]);
  const shown = useMemo(() => orderSkills(skills.slice(0, maxSkills), columns), [skills, columns]);
  const sorted = useMemo(() => orderMembers(members, order), [members, order]);
  const [isTableOpen, setTableOpen] = useState(false);
  return (
    <figure class="chart">
      <div class="row apart">
        <figcaption>Expected accuracy by learner and skill</figcaption>
        <div class="row">
          <QuerySelect label="Learners by" parameter="order" value={order} options={orders} />
          <QuerySelect label="Skills by" parameter="skills" value={columns} options={columnOrders} />
        </div>
      </div>
      <p class="soft">
        Expected share of correct answers on questions of average difficulty, and its means in percent. The
        mean of the skills of a learner differs from the expected accuracy in the list, which is for the
        answers of the next 30 days. Click a cell or a name to open it, or use the arrow keys and Enter.
        {skills.length > maxSkills &&
          ` Shows ${maxSkills} of ${pluralize(skills.length, 'skill')}, those with the most learners.`}
      </p>
      <BandLegend bands={accuracyBands} />
      <MasteryMeaning />
      {sorted.length === 0 || shown.length === 0 ? (
        <p class="soft">No answers yet.</p>
      ) : (
        <>
          <HeatMapDrawing members={sorted} skills={shown} />
          <details onToggle={(event) => setTableOpen(event.currentTarget.open)}>
            <summary>Show as table</summary>
            {isTableOpen && (
              <Table
                {...{ name: 'Expected accuracy in the class', rows: sorted, filter: true }}
                columns={buildColumns(shown)}
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
  readonly members: readonly HeatMapMember[];
  readonly skills: readonly HeatMapSkill[];
}

/** Column -1 is the name of the learner. */
interface CellPosition {
  readonly column: number;
  readonly row: number;
}

const keySteps: Readonly<Record<string, readonly [right: number, down: number]>> = {
  ...{ ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] },
  ...{ PageUp: [0, -10], PageDown: [0, 10] },
};

function HeatMapDrawing({ members, skills }: HeatMapDrawingProps) {
  const { element, width, setElement } = useWidth();
  const [cell, setCell] = useState<CellPosition | null>(null);
  const layout = computeLayout(members.length, skills.length, width);
  const drawing = useMemo(
    () => width > 0 && drawHeatMap({ members, skills, layout }),
    [width, members, skills],
  );
  const details = cell === null ? null : readCell(cell, members, skills);
  const findCell = (event: MouseEvent): CellPosition | null => {
    const box = element?.getBoundingClientRect();
    return box === undefined ? null : locateCell(layout, event.clientX - box.left, event.clientY - box.top);
  };
  const open = (found: CellPosition | null): void => {
    const target = found && readCell(found, members, skills);
    if (target) navigate('learner', [target.member.userId], { skill: target.skill?.id });
  };
  const handleKey = (event: KeyboardEvent): void => {
    if (event.key === 'Enter') open(cell);
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
      // A tap on a touch screen has no link below it yet.
      onClick={(event) => event.target instanceof HTMLAnchorElement || open(findCell(event))}
    >
      <div class="drawing" ref={setElement}>
        {drawing}
      </div>
      {details !== null && <CellDetails {...details} layout={layout} />}
    </div>
  );
}

interface Cell extends CellPosition {
  readonly member: HeatMapMember;
  /** Undefined for the name of the learner. */
  readonly skill: HeatMapSkill | undefined;
}

function readCell(
  { column, row }: CellPosition,
  members: readonly HeatMapMember[],
  skills: readonly HeatMapSkill[],
): Cell | null {
  const member = members[row];
  return member === undefined || column >= skills.length
    ? null
    : { column, row, member, skill: skills[column] };
}

const moveCell = (
  cell: CellPosition,
  [right, down]: readonly [number, number],
  columns: number,
  rows: number,
): CellPosition => ({
  column: Math.min(columns - 1, Math.max(-1, cell.column + right)),
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

/** The frame of a cell is a link, so that it can be opened in another tab. */
function CellDetails({
  column,
  row,
  member,
  skill,
  layout: { left, top, columnWidth, rowHeight, width },
}: Cell & { readonly layout: HeatMapLayout }) {
  const x = skill === undefined ? 0 : left + columnWidth * column;
  const y = top + rowHeight * row;
  const cellWidth = skill === undefined ? left - 4 : columnWidth;
  const side = x > width / 2 ? { right: `calc(100% - ${x - 8}px)` } : { left: `${x + cellWidth + 8}px` };
  return (
    <>
      <a
        {...{ class: 'heat-cell', 'aria-hidden': true, tabIndex: -1 }}
        href={buildHref('learner', [member.userId], { skill: skill?.id })}
        style={{
          left: `${x - 1}px`,
          top: `${y - 1}px`,
          width: `${cellWidth + 1}px`,
          height: `${rowHeight + 1}px`,
        }}
      />
      <p class="heat-tip" role="status" style={{ top: `${Math.max(0, y - 12)}px`, ...side }}>
        <strong>
          <bdi>{member.name}</bdi>
        </strong>{' '}
        {statusTexts[member.status]}
        <br />
        {skill === undefined ? `mean of skills ${formatSkillAccuracy(member.mean)}` : describe(member, skill)}
      </p>
    </>
  );
}

function describe({ progress }: Member, { id, name }: HeatMapSkill): string {
  const { [id]: expected } = progress.expected_accuracy;
  if (expected === undefined) return `${name}: no answers`;
  const plateau = progress.plateaus.includes(id) ? ', on a plateau' : '';
  return `${name}: expected accuracy ${formatSkillAccuracy(expected)}, mastery ${formatMastery(progress.mastery[id])}${plateau}`;
}

const computeMean = (shares: readonly number[]): number => computeSum(shares) / Math.max(1, shares.length);

/** Skills with the most learners first. */
function collectSkills(members: readonly Member[], labels: ReadonlyMap<string, SkillLabel>): WeighedSkill[] {
  const shares = new Map<string, number[]>();
  for (const { progress } of members)
    for (const [id, expected] of Object.entries(progress.expected_accuracy))
      shares.get(id)?.push(expected) ?? shares.set(id, [expected]);
  return [...shares]
    .sort(([, a], [, b]) => b.length - a.length)
    .map(([id, all]) => ({
      ...(labels.get(id) ?? { name: id, section: null }),
      id,
      mean: computeMean(all),
      weak: all.filter((share) => share < classConstants.struggling.below).length,
    }));
}

interface WeighedSkill extends HeatMapSkill {
  /** Learners who need help. */
  readonly weak: number;
}

const orderSkills = (skills: readonly WeighedSkill[], order: string): readonly WeighedSkill[] =>
  skills.toSorted(
    order === 'name' ? (a, b) => a.name.localeCompare(b.name) : (a, b) => b.weak - a.weak || a.mean - b.mean,
  );

/** By need, unless by name. */
function orderMembers(members: readonly Member[], order: string): readonly HeatMapMember[] {
  const all = members.map((member): HeatMapMember => {
    const shares = Object.values(member.progress.expected_accuracy);
    return { ...member, mean: shares.length === 0 ? null : computeMean(shares) };
  });
  return all.sort(
    order === 'name' ? (a, b) => a.name.localeCompare(b.name) : (a, b) => (a.mean ?? 1) - (b.mean ?? 1),
  );
}

const field = createColumnBuilder<HeatMapMember>();
const buildColumns = (skills: readonly HeatMapSkill[]): readonly Column<HeatMapMember>[] => [
  field('Learner', 'name', { show: (member) => <LearnerLink {...member} /> }),
  field('Learner id', 'userId', { isForFile: true }),
  field('Status', ({ status }) => statusTexts[status]),
  field('Mean of skills', 'mean', { format: formatSkillAccuracy, align: 'end' }),
  ...skills.map(({ id, name }) =>
    field(name, ({ progress }) => progress.expected_accuracy[id] ?? null, {
      show: ({ userId, progress }) => (
        <a href={buildHref('learner', [userId], { skill: id })}>
          {formatSkillAccuracy(progress.expected_accuracy[id])}
        </a>
      ),
      align: 'end',
    }),
  ),
];
