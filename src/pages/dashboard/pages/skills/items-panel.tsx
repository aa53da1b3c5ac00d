import type { SkillItem, SkillItemPage } from '../../../../client/types.js';
import { formatPercent, formatPoints, missingText, pluralize } from '../../base/format.js';
import { Badge, Panel } from '../../parts/stat.jsx';
import { type Column, createColumnBuilder, Table } from '../../parts/table.jsx';

export const ItemsPanel = ({ page: { skill_id, items, next_cursor } }: { page: SkillItemPage }) => (
  <Panel
    title="Items"
    about="Hardest items first, with at least 10 answers. Rapid guesses do not count. On a misleading item, learners with a mastery of 80 % or more do no better than learners below 50 %, and all learners do worse than predicted: the 95 % interval of the difference is below 0. Check the question and its answer key."
  >
    {next_cursor !== null && <p class="soft">Shows the {items.length} hardest items.</p>}
    {items.length > 0 && <p>{describeMisleading(items)}</p>}
    <Table
      {...{ name: `Items of ${skill_id}`, columns, rows: items, filter: items.length > 20 }}
      rowKey={({ item_id }) => item_id}
      empty="No item has 10 answers yet, or answers have no item_id."
    />
  </Panel>
);

function describeMisleading(items: readonly SkillItem[]): string {
  const names = items.filter(({ misleading }) => misleading === true).map(({ item_id }) => item_id);
  const undecided = items.filter(({ misleading }) => misleading === null).length;
  return [
    names.length === 0
      ? 'No misleading items.'
      : `${pluralize(names.length, 'item is', 'items are')} misleading: ${names.join(', ')}.`,
    ...(undecided === 0
      ? []
      : [`${pluralize(undecided, 'item has', 'items have')} too few answers to decide.`]),
  ].join(' ');
}

const field = createColumnBuilder<SkillItem>();
const columns: readonly Column<SkillItem>[] = [
  field('Item', 'item_id', { format: (item_id) => <bdi class="name">{item_id}</bdi> }),
  field('Learners', 'learners'),
  field('Answers', 'answers'),
  field('Correct', 'accuracy', { format: formatPercent }),
  field('By mastery', 'expected', {
    format: formatPercent,
    about:
      'Expected share from mastery only. A value far above Correct suggests that the item tests another skill',
  }),
  field('Predicted', 'p_correct', {
    format: formatPercent,
    about: 'Predicted share, including item difficulty',
  }),
  field('Difference', 'beyond', {
    show: ({ beyond, low, high }) => (
      <>
        {formatPoints(beyond)}
        <span class="sub">
          {formatPoints(low)} to {formatPoints(high)}
        </span>
      </>
    ),
    about: 'Correct minus predicted, in percentage points, with the 95 % interval',
  }),
  field('Low', 'low', { isForFile: true }),
  field('High', 'high', { isForFile: true }),
  field('Seconds', 'median_seconds', { align: 'end', about: 'Median time' }),
  field('Confident errors', 'sure_and_wrong', {
    format: formatPercent,
    align: 'end',
    about: 'Share of incorrect answers, of all answers with confidence 4 or 5',
  }),
  field('Misleading', 'misleading', {
    format: (misleading) =>
      misleading === null ? missingText : misleading ? <Badge tone="alert">misleading</Badge> : 'no',
    about:
      'Learners who know the skill do no better on this item, and the item does worse than predicted. A dash means too few answers',
  }),
];
