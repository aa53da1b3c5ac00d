/** Questions of a skill: the hardest ones, and those that mislead. */
import type { SkillItem, SkillItemPage } from '../../../../client/types.js';
import { none, percent, plural, points } from '../../base/format.js';
import { Badge, Panel } from '../../parts/stat.jsx';
import { type Column, Table } from '../../parts/table.jsx';

export const Items = ({ page: { skill_id, items, next_cursor } }: { page: SkillItemPage }) => (
  <Panel
    title="Items"
    about="The hardest first: questions with ten answers or more, quick guesses left out. Misleading are those on which learners who know the skill (mastery of 80 % or more) do no better than those who do not (below 50 %): look at the question and its key before you blame the learners."
  >
    {next_cursor !== null && <p class="soft">The {items.length} hardest; there are more.</p>}
    {items.length > 0 && <p>{misleadingText(items)}</p>}
    <Table
      {...{ name: `Items of ${skill_id}`, columns, rows: items, filter: items.length > 20 }}
      rowKey={({ item_id }) => item_id}
      empty="No question has ten answers yet, or answers come without item_id."
    />
  </Panel>
);

function misleadingText(items: readonly SkillItem[]): string {
  const names = items.filter(({ misleading }) => misleading === true).map(({ item_id }) => item_id);
  const open = items.filter(({ misleading }) => misleading === null).length;
  return [
    names.length === 0
      ? 'None misleads.'
      : `${plural(names.length, 'item')} may mislead: ${names.join(', ')}.`,
    ...(open === 0 ? [] : [`For ${open} there are too few answers to tell.`]),
  ].join(' ');
}

const columns: readonly Column<SkillItem>[] = [
  {
    title: 'Item',
    value: ({ item_id }) => item_id,
    show: ({ item_id }) => <bdi class="name">{item_id}</bdi>,
  },
  { title: 'Learners', value: ({ learners }) => learners },
  { title: 'Answers', value: ({ answers }) => answers },
  { title: 'Right', value: ({ accuracy }) => accuracy, show: ({ accuracy }) => percent(accuracy) },
  {
    title: 'By mastery',
    about:
      "What the learners' mastery alone foretells. Far above Right: it asks for something else than its skill",
    value: ({ expected }) => expected,
    show: ({ expected }) => percent(expected),
  },
  {
    title: 'Predicted',
    about: 'What was predicted, knowing the item',
    value: ({ p_correct }) => p_correct,
    show: ({ p_correct }) => percent(p_correct),
  },
  {
    title: 'Beyond',
    about: 'Percentage points by which more were right than predicted, with the 95 % interval',
    value: ({ beyond }) => beyond,
    show: ({ beyond, low, high }) => (
      <>
        {points(beyond)}
        <span class="sub">
          {points(low)} to {points(high)}
        </span>
      </>
    ),
  },
  { title: 'Low', isForFile: true, value: ({ low }) => low },
  { title: 'High', isForFile: true, value: ({ high }) => high },
  {
    ...{ title: 'Seconds', align: 'end' },
    about: 'Half of the answers took no longer',
    value: ({ median_seconds }) => median_seconds,
  },
  {
    ...{ title: 'Sure and wrong', align: 'end' },
    about: 'Share of wrong answers of those who felt sure (confidence 4 or 5)',
    value: ({ sure_and_wrong }) => sure_and_wrong,
    show: ({ sure_and_wrong }) => percent(sure_and_wrong),
  },
  {
    title: 'Misleading',
    about: 'Learners who know the skill do no better on it; a dash: too few answers to tell',
    value: ({ misleading }) => misleading,
    show: ({ misleading }) =>
      misleading === null ? none : misleading ? <Badge look="alert">misleading</Badge> : 'no',
  },
];
