import { useMemo } from 'preact/hooks';
import { day, decimal, none, percent, percentRange, points } from '../../base/format.js';
import { href } from '../../base/route.js';
import type { NameOf } from '../../base/skill-names.js';
import { MasteryMeaning, masteryMeaning } from '../../parts/mastery-meaning.jsx';
import { Badge, Panel } from '../../parts/stat.jsx';
import { type Column, fieldsOf, Table } from '../../parts/table.jsx';
import { enoughOnSkill } from './evidence.jsx';
import { measures } from './fan.jsx';
import type { LearnerProps, LearnerSkill } from './learner-props.js';

export function SkillsPanel({ userId, query, skills, nameOf }: LearnerProps) {
  const columns = useMemo(() => columnsOf(userId, query, nameOf), [userId, query, nameOf]);
  return (
    <Panel
      title="Skills"
      about="Expected correct is the share of the next answers that is expected to be right, on average questions of the skill. The pale part of a bar is the 80 % range. Choose a skill to see the answers behind it."
    >
      <MasteryMeaning />
      <div class="learner-skills">
        <Table
          name="Skills of the learner"
          columns={columns}
          rows={skills}
          rowKey={({ skill_id }) => skill_id}
          sortedBy={['Expected correct', false]}
          orderedIn="sort"
          filter={skills.length > 8}
        />
      </div>
    </Panel>
  );
}

/** Most urgent first. */
function statesOf(skill: LearnerSkill): string[] {
  return [
    ...(skill.plateau_detected ? ['plateau'] : []),
    ...(skill.mastered ? ['mastered'] : []),
    ...(skill.total_attempts < enoughOnSkill ? ['few answers'] : []),
  ];
}

const looks: Readonly<Record<string, 'good' | 'alert' | 'soft'>> = { plateau: 'alert', mastered: 'good' };

export const States = ({ skill }: { readonly skill: LearnerSkill }) => (
  <>
    {statesOf(skill).map((state) => (
      <span key={state}>
        <Badge look={looks[state] ?? 'soft'}>{state}</Badge>{' '}
      </span>
    ))}
  </>
);

const efficiencyReasons = {
  too_few_times: 'Fewer than 3 timed answers',
  rapid_answers: 'Too many rapid answers',
} as const;

/** Null if the skill has an efficiency index. */
export const efficiencyNote = ({ efficiency_reason }: LearnerSkill): string | null =>
  efficiency_reason === null ? null : efficiencyReasons[efficiency_reason];

const sectionTexts = { math: 'Math', rw: 'Reading' } as const;

const field = fieldsOf<LearnerSkill>();
const columnsOf = (userId: string, query: LearnerProps['query'], nameOf: NameOf): Column<LearnerSkill>[] => [
  field('Skill', ({ skill_id }) => nameOf(skill_id), {
    show: ({ skill_id }) => (
      <a
        href={href('learner', [userId], { ...query, skill: skill_id })}
        aria-current={query.skill === skill_id ? 'true' : undefined}
      >
        <bdi>{nameOf(skill_id)}</bdi>
      </a>
    ),
  }),
  field('Skill id', 'skill_id', { isForFile: true }),
  field('Section', ({ section }) => (section === null ? null : measures[section]), {
    show: ({ section }) => (section === null ? none : sectionTexts[section]),
    about: 'Math, or reading and writing; a dash: the skill counts half in each',
  }),
  field('Expected correct', 'expected_accuracy', {
    show: (skill) => (
      <>
        <RangeBar of={skill} /> {percent(skill.expected_accuracy)}
        <span class="sub">{percentRange(skill.expected_low, skill.expected_high)}</span>
      </>
    ),
    about: 'Share of the next answers that is expected to be right on average questions, and its 80 % range',
  }),
  field('Expected low', 'expected_low', { isForFile: true }),
  field('Expected high', 'expected_high', { isForFile: true }),
  field('Mastery', 'mastery', { format: percent, about: masteryMeaning }),
  field('After last', 'mastery_at_last_attempt', { isForFile: true }),
  field('Forgotten', (skill) => skill.mastery - skill.mastery_at_last_attempt, {
    format: points,
    about: 'Percentage points that mastery has lost since the last answer',
  }),
  field('Answers', 'total_attempts'),
  field('Right', ({ correct_attempts, total_attempts }) => correct_attempts / total_attempts, {
    format: percent,
    about: 'Share of all answers on the skill that were right',
  }),
  field('Efficiency', 'efficiency_index', {
    show: (skill) => efficiencyNote(skill) ?? decimal(0)(skill.efficiency_index),
    align: 'end',
    about:
      '0 to 100: accuracy and time compared with all learners of the skill; 50 is usual. Time counts only as far as answers are right',
  }),
  field('Confidence', 'confidence_bias', {
    format: points,
    align: 'end',
    about:
      'Percentage points by which the learner is surer than right (+) or less sure than right (−); a dash where no confidence was reported',
  }),
  field('State', (skill) => statesOf(skill).join(', '), { show: (skill) => <States skill={skill} /> }),
  field('Last answer', 'last_attempt_at', { format: day }),
];

/** The cell also has the figures as text. */
const RangeBar = ({
  of: { expected_accuracy, expected_low, expected_high },
}: {
  readonly of: LearnerSkill;
}) => (
  <svg class="range-bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
    <rect class="track" width="100" height="10" rx="2" />
    <rect class="range" x={100 * expected_low} width={100 * (expected_high - expected_low)} height="10" />
    <rect class="mark" x={100 * expected_accuracy - 2} width="4" height="10" />
  </svg>
);
