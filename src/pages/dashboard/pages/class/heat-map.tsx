import { useEffect, useMemo, useState } from 'preact/hooks';
import { computeSum } from '../../../../lists.js';
import { percent, plural } from '../../base/format.js';
import { go } from '../../base/route.js';
import { useWidth } from '../../parts/chart.jsx';
import { Choice } from '../../parts/choice.jsx';
import '../skills/skills.css';
import { type SkillName, sectionName } from '../../base/skill-names.js';
import { MasteryMeaning } from '../../parts/mastery-meaning.jsx';
import { type Column, fieldsOf, Table } from '../../parts/table.jsx';
import { accuracyBands, Scale } from '../skills/bands.jsx';
import { cellAt, drawHeat, type Layout, layoutOf, type Skill } from './heat.js';
import type { Member } from './read.js';
import { type Status, statuses } from './status.js';

interface HeatMapProps {
  readonly members: readonly Member[];
  readonly names: ReadonlyMap<string, SkillName>;
  readonly order: string | undefined;
}

/** More columns are unreadable. */
const mostSkills = 100;

const orders: Readonly<Record<string, string>> = {
  status: 'status, then expected correct',
  expected: 'expected correct, lowest first',
  id: 'name',
};

export function HeatMap({ members, names, order = 'status' }: HeatMapProps) {
  const skills = useMemo(() => skillsIn(members, names), [members, names]);
  const shown = useMemo(() => skills.slice(0, mostSkills).sort(bySection), [skills]);
  const sorted = useMemo(() => inOrder(members, order), [members, order]);
  const [isTableOpen, setTableOpen] = useState(false);
  return (
    <figure class="chart">
      <div class="row apart">
        <figcaption>Expected correct by learner and skill</figcaption>
        <Choice class="row" label="Order by" name="order" value={order} options={Object.entries(orders)} />
      </div>
      <p class="soft">
        The share of the next answers that is expected to be right, on average questions of the skill. Click a
        cell to open the learner's skill, or use the arrow keys and Enter.
        {skills.length > mostSkills &&
          ` The ${mostSkills} skills that most answered, of ${plural(skills.length, 'skill')}.`}
      </p>
      <Scale of={accuracyBands} />
      <MasteryMeaning />
      {sorted.length === 0 || shown.length === 0 ? (
        <p class="soft">Nobody here has answered yet.</p>
      ) : (
        <>
          <Picture members={sorted} skills={shown} isGrouped={order === 'status'} />
          <details onToggle={(event) => setTableOpen(event.currentTarget.open)}>
            <summary>As a table</summary>
            {isTableOpen && (
              <Table
                {...{
                  name: 'Expected correct in the class',
                  columns: columnsOf(shown),
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

interface PictureProps {
  readonly members: readonly Member[];
  readonly skills: readonly Skill[];
  readonly isGrouped: boolean;
}

interface Cell {
  readonly column: number;
  readonly row: number;
}

const steps: Readonly<Record<string, readonly [right: number, down: number]>> = {
  ...{ ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] },
  ...{ PageUp: [0, -10], PageDown: [0, 10] },
};

function Picture({ members, skills, isGrouped }: PictureProps) {
  const { element, width, setElement } = useWidth();
  const [cell, setCell] = useState<Cell | null>(null);
  const layout = layoutOf(members.length, skills.length, width);
  useEffect(() => {
    if (element === null || width === 0) return;
    element.replaceChildren(drawHeat(members, skills, layout, isGrouped));
    setCell(null);
  }, [element, width, members, skills, isGrouped]);
  const at = (event: MouseEvent): Cell | null => {
    const box = element?.getBoundingClientRect();
    const found = box && cellAt(layout, event.clientX - box.left, event.clientY - box.top);
    return found && members[found.row] && skills[found.column] ? found : null;
  };
  const open = (found: Cell | null): void => {
    const [member, skill] = [members[found?.row ?? -1], skills[found?.column ?? -1]];
    if (member !== undefined && skill !== undefined) go('learner', [member.userId], { skill: skill.id });
  };
  const press = (event: KeyboardEvent): void => {
    if (event.key === 'Enter') open(cell);
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const next = cell === null ? { column: 0, row: 0 } : moved(cell, step, skills.length, members.length);
    setCell(next);
    reveal(element, layout, next);
  };
  return (
    <div
      class="scroll heat"
      role="application"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: arrow keys go from cell to cell
      tabIndex={0}
      aria-label="Expected correct by learner and skill: arrow keys go from cell to cell, Enter opens one"
      onKeyDown={press}
      onPointerMove={(event) => setCell(at(event))}
      onPointerLeave={() => setCell(null)}
      onClick={(event) => open(at(event))}
    >
      <div class="drawing" ref={setElement} />
      {cell !== null && <Pointed {...{ cell, layout, members, skills }} />}
    </div>
  );
}

const moved = (
  cell: Cell,
  [right, down]: readonly [number, number],
  columns: number,
  rows: number,
): Cell => ({
  column: Math.min(columns - 1, Math.max(0, cell.column + right)),
  row: Math.min(rows - 1, Math.max(0, cell.row + down)),
});

function reveal(picture: HTMLElement | null, { left, top, column, row }: Layout, cell: Cell): void {
  const box = picture?.parentElement;
  if (!box) return;
  const x = left + column * cell.column;
  if (x < box.scrollLeft + left || x + column > box.scrollLeft + box.clientWidth) box.scrollLeft = x - left;
  const y = box.getBoundingClientRect().top + top + row * cell.row;
  if (y < 100 || y > innerHeight - 100) scrollBy({ top: y - innerHeight / 2 });
}

function Pointed({
  cell,
  layout: { left, top, column, row, width },
  members,
  skills,
}: {
  cell: Cell;
  layout: Layout;
  members: readonly Member[];
  skills: readonly Skill[];
}) {
  const [member, skill] = [members[cell.row], skills[cell.column]];
  if (member === undefined || skill === undefined) return null;
  const [x, y] = [left + column * cell.column, top + row * cell.row];
  const { [skill.id]: expected } = member.progress.expected_accuracy;
  const side = x > width / 2 ? { right: `calc(100% - ${x - 8}px)` } : { left: `${x + column + 8}px` };
  return (
    <>
      <div
        {...{ class: 'heat-cell', 'aria-hidden': true }}
        style={{ left: `${x - 1}px`, top: `${y - 1}px`, width: `${column + 1}px`, height: `${row + 1}px` }}
      />
      <p class="heat-tip" role="status" style={{ top: `${Math.max(0, y - 12)}px`, ...side }}>
        <strong>
          <bdi>{member.userId}</bdi>
        </strong>{' '}
        {statuses[member.status]}
        <br />
        {skill.name}: {expected === undefined ? 'not answered' : `${percent(expected)} expected correct`}
        {expected !== undefined && (
          <>
            <br />
            mastery {percent(member.progress.mastery[skill.id])}
            {bandNote(member, skill)}
          </>
        )}
      </p>
    </>
  );
}

const bandNote = ({ progress }: Member, { id }: Skill): string =>
  progress.plateaus.includes(id) ? ', on a plateau' : '';

/** Skills with the most learners first. */
function skillsIn(members: readonly Member[], names: ReadonlyMap<string, SkillName>): Skill[] {
  const counts = new Map<string, number>();
  for (const { progress } of members)
    for (const id of Object.keys(progress.mastery)) counts.set(id, (counts.get(id) ?? 0) + 1);
  return [...counts]
    .sort(([, a], [, b]) => b - a)
    .map(([id]) => ({ id, ...(names.get(id) ?? { name: id, section: null }) }));
}

const bySection = (a: Skill, b: Skill): number =>
  sectionName(a.section).localeCompare(sectionName(b.section)) || a.name.localeCompare(b.name);

function meanExpected({ progress }: Member): number {
  const all = Object.values(progress.expected_accuracy);
  return computeSum(all) / Math.max(1, all.length);
}

function inOrder(members: readonly Member[], order: string): readonly Member[] {
  if (order === 'id') return members.toSorted((a, b) => a.userId.localeCompare(b.userId));
  const means = new Map(members.map((member) => [member, meanExpected(member)]));
  const rank = Object.keys(statuses) as Status[];
  const byExpected = (a: Member, b: Member): number => (means.get(a) ?? 0) - (means.get(b) ?? 0);
  if (order === 'expected') return members.toSorted(byExpected);
  return members.toSorted((a, b) => rank.indexOf(a.status) - rank.indexOf(b.status) || byExpected(a, b));
}

const field = fieldsOf<Member>();
const columnsOf = (skills: readonly Skill[]): readonly Column<Member>[] => [
  field('Learner', 'userId'),
  field('Status', ({ status }) => statuses[status]),
  ...skills.map(({ id, name }) =>
    field(name, ({ progress }) => progress.expected_accuracy[id] ?? null, { format: percent, align: 'end' }),
  ),
];
