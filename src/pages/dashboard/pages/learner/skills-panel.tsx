import { useMemo } from 'preact/hooks';
import {
  formatDay,
  formatDecimal,
  formatMastery,
  formatPercent,
  formatPercentRange,
  formatPoints,
  formatSkillAccuracy,
  missingText,
} from '../../base/format.js';
import { buildHref } from '../../base/route.js';
import type { SkillNameLookup } from '../../base/skill-names.js';
import { MasteryMeaning, masteryMeaning } from '../../parts/mastery-meaning.jsx';
import { RangeBar } from '../../parts/range-bar.jsx';
import { Badge, Panel } from '../../parts/stat.jsx';
import { type Column, createColumnBuilder, Table } from '../../parts/table.jsx';
import { minSkillAnswers } from './evidence.jsx';
import { measureTexts } from './forecast-fan.jsx';
import type { LearnerProps, LearnerSkill } from './learner-props.js';

export function SkillsPanel({ userId, query, skills, getSkillName }: LearnerProps) {
  const columns = useMemo(() => buildColumns(userId, query, getSkillName), [userId, query, getSkillName]);
  return (
    <Panel
      title="Skills"
      about="Expected accuracy is the expected share of correct answers on questions of average difficulty. The light part of a bar is the 80 % range. Select a skill to see its answers."
    >
      <MasteryMeaning />
      <div class="learner-skills">
        <Table
          name="Skills of the learner"
          columns={columns}
          rows={skills}
          rowKey={({ skill_id }) => skill_id}
          sortedBy={['Expected accuracy', false]}
          orderParameter="sort"
          filter={skills.length > 8}
        />
      </div>
    </Panel>
  );
}

/** Most urgent first. */
function listStates(skill: LearnerSkill): string[] {
  return [
    ...(skill.plateau_detected ? ['plateau'] : []),
    ...(skill.mastered ? ['mastered'] : []),
    ...(skill.total_attempts < minSkillAnswers ? ['few answers'] : []),
  ];
}

const stateTones: Readonly<Record<string, 'good' | 'alert' | 'soft'>> = {
  plateau: 'alert',
  mastered: 'good',
};

export const SkillStates = ({ skill }: { readonly skill: LearnerSkill }) => (
  <>
    {listStates(skill).map((state) => (
      <span key={state}>
        <Badge tone={stateTones[state] ?? 'soft'}>{state}</Badge>{' '}
      </span>
    ))}
  </>
);

const efficiencyReasons = {
  too_few_times: 'Fewer than 3 timed answers',
  rapid_answers: 'Too many rapid answers',
} as const;

/** Null if the skill has an efficiency index. */
export const explainMissingEfficiency = ({ efficiency_reason }: LearnerSkill): string | null =>
  efficiency_reason === null ? null : efficiencyReasons[efficiency_reason];

const sectionTexts = { math: 'Math', rw: 'Reading' } as const;

const field = createColumnBuilder<LearnerSkill>();
const buildColumns = (
  userId: string,
  query: LearnerProps['query'],
  getSkillName: SkillNameLookup,
): Column<LearnerSkill>[] => [
  field('Skill', ({ skill_id }) => getSkillName(skill_id), {
    show: ({ skill_id }) => (
      <a
        href={buildHref('learner', [userId], { ...query, skill: skill_id })}
        aria-current={query.skill === skill_id ? 'true' : undefined}
      >
        <bdi>{getSkillName(skill_id)}</bdi>
      </a>
    ),
  }),
  field('Skill id', 'skill_id', { isForFile: true }),
  field('Section', ({ section }) => (section === null ? null : measureTexts[section]), {
    show: ({ section }) => (section === null ? missingText : sectionTexts[section]),
    about: 'Math, or reading and writing. A dash means that the skill counts half in each section',
  }),
  field('Expected accuracy', 'expected_accuracy', {
    show: ({ expected_accuracy: mark, expected_low: low, expected_high: high }) => (
      <>
        <RangeBar {...{ low, high, mark }} />
        {formatSkillAccuracy(mark)}
        <span class="sub">{formatPercentRange(low, high)}</span>
      </>
    ),
    about: 'Expected share of correct answers on questions of average difficulty, with its 80 % range',
  }),
  field('Expected low', 'expected_low', { isForFile: true }),
  field('Expected high', 'expected_high', { isForFile: true }),
  field('Mastery', 'mastery', { format: formatMastery, about: masteryMeaning }),
  field('Mastery after last answer', 'mastery_at_last_attempt', { isForFile: true }),
  field('Forgotten', (skill) => skill.mastery - skill.mastery_at_last_attempt, {
    format: formatPoints,
    about: 'Change of mastery since the last answer, in percentage points',
  }),
  field('Answers', 'total_attempts'),
  field('Correct', ({ correct_attempts, total_attempts }) => correct_attempts / total_attempts, {
    format: formatPercent,
    about: 'Share of correct answers on the skill, all time',
  }),
  field('Efficiency', 'efficiency_index', {
    show: (skill) => explainMissingEfficiency(skill) ?? formatDecimal(0)(skill.efficiency_index),
    align: 'end',
    about: 'Accuracy and time compared with all learners of the skill, 0 to 100. 50 is typical',
  }),
  field('Confidence', 'confidence_bias', {
    format: formatPoints,
    align: 'end',
    about:
      'Overconfident (+) or underconfident (−), in percentage points. A dash means no reported confidence',
  }),
  field('Status', (skill) => listStates(skill).join(', '), {
    show: (skill) => <SkillStates skill={skill} />,
  }),
  field('Last answer', 'last_attempt_at', { isTime: true, format: formatDay }),
];
