import type { SkillItem, SkillItemPage } from '../../../../client/types.js';
import { formatPercent, formatPoints, missingText, pluralize } from '../../base/format.js';
import { Badge, Panel } from '../../parts/stat.jsx';
import { type Column, createColumnBuilder, Table } from '../../parts/table.jsx';

export const ItemsPanel = ({ page: { skill_id, items, next_cursor } }: { page: SkillItemPage }) => (
  <Panel
    title="Items"
    about="The hardest first: questions with ten answers or more, quick guesses left out. Misleading are those on which learners who know the skill (mastery of 80 % or more) do no better than those who do not (below 50 %): look at the question and its key before you blame the learners."
  >
    {next_cursor !== null && <p class="soft">The {items.length} hardest; there are more.</p>}
    {items.length > 0 && <p>{describeMisleading(items)}</p>}
    <Table
      {...{ name: `Items of ${skill_id}`, columns, rows: items, filter: items.length > 20 }}
      rowKey={({ item_id }) => item_id}
      empty="No question has ten answers yet, or answers come without item_id."
    />
  </Panel>
);

function describeMisleading(items: readonly SkillItem[]): string {
  const names = items.filter(({ misleading }) => misleading === true).map(({ item_id }) => item_id);
  const undecided = items.filter(({ misleading }) => misleading === null).length;
  return [
    names.length === 0
      ? 'None misleads.'
      : `${pluralize(names.length, 'item')} may mislead: ${names.join(', ')}.`,
    ...(undecided === 0 ? [] : [`For ${undecided} there are too few answers to tell.`]),
  ].join(' ');
}

const field = createColumnBuilder<SkillItem>();
const columns: readonly Column<SkillItem>[] = [
  field('Item', 'item_id', { format: (item_id) => <bdi class="name">{item_id}</bdi> }),
  field('Learners', 'learners'),
  field('Answers', 'answers'),
  field('Right', 'accuracy', { format: formatPercent }),
  field('By mastery', 'expected', {
    format: formatPercent,
    about:
      "What the learners' mastery alone foretells. Far above Right: it asks for something else than its skill",
  }),
  field('Predicted', 'p_correct', { format: formatPercent, about: 'What was predicted, knowing the item' }),
  field('Beyond', 'beyond', {
    show: ({ beyond, low, high }) => (
      <>
        {formatPoints(beyond)}
        <span class="sub">
          {formatPoints(low)} to {formatPoints(high)}
        </span>
      </>
    ),
    about: 'Percentage points by which more were right than predicted, with the 95 % interval',
  }),
  field('Low', 'low', { isForFile: true }),
  field('High', 'high', { isForFile: true }),
  field('Seconds', 'median_seconds', { align: 'end', about: 'Half of the answers took no longer' }),
  field('Sure and wrong', 'sure_and_wrong', {
    format: formatPercent,
    align: 'end',
    about: 'Share of wrong answers of those who felt sure (confidence 4 or 5)',
  }),
  field('Misleading', 'misleading', {
    format: (misleading) =>
      misleading === null ? missingText : misleading ? <Badge tone="alert">misleading</Badge> : 'no',
    about: 'Learners who know the skill do no better on it; a dash: too few answers to tell',
  }),
];
