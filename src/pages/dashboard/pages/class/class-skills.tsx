import { useEffect, useRef } from 'preact/hooks';
import type { Group, GroupSkill } from '../../../../client/types.js';
import { isStruggling } from '../../../../domain/classes/class-constants.js';
import {
  formatDay,
  formatMastery,
  formatPercent,
  formatPoints,
  formatSkillAccuracy,
  missingText,
  pluralize,
} from '../../base/format.js';
import { fetchInParts, fetchNames } from '../../base/groups.js';
import { useLoad } from '../../base/load.js';
import { buildHref, type Route, updateQuery } from '../../base/route.js';
import type { Api } from '../../base/session.js';
import { useViewer } from '../../base/viewer.js';
import { Button } from '../../parts/button.jsx';
import { Loaded } from '../../parts/loaded.jsx';
import { PeriodSelect, parseDays } from '../../parts/period-select.jsx';
import { RangeBar } from '../../parts/range-bar.jsx';
import { Badge } from '../../parts/stat.jsx';
import { type Column, createColumnBuilder, Table } from '../../parts/table.jsx';

interface ClassSkillsProps {
  readonly group: Group;
  readonly query: Route['query'];
}

export function ClassSkills({ group, query }: ClassSkillsProps) {
  const { api } = useViewer();
  const days = parseDays(query.days);
  const load = useLoad(
    (signal) => api.groupSkills(group.group_id, { days, signal }),
    [api, group, days],
    true,
  );
  return (
    <Loaded load={load} subject="the skills of the class">
      {({ skills, since, source_lag_seconds: lag }) => {
        const chosen = skills.find(({ skill_id }) => skill_id === query.skill) ?? skills[0];
        return (
          <div class="side-by-side class-skills">
            <section class="panel">
              <div class="row apart">
                <h2>Skills, most help needed first</h2>
                <PeriodSelect days={days} />
              </div>
              <p class="soft">
                The bar shows the middle half of the learners, the mark the mean. Answers and changes since{' '}
                {formatDay(since)}, compared with the {days} days before.
                {lag === null && ' They need ClickHouse, which does not respond.'}
              </p>
              <Table
                {...{ name: 'Skills of the class', rows: skills, orderParameter: 'sort', filter: true }}
                columns={buildColumns(chosen?.skill_id)}
                rowKey={({ skill_id }) => skill_id}
                empty="The learners of this class have no answers yet."
              />
            </section>
            {chosen !== undefined && (
              <ClassSkill
                key={chosen.skill_id}
                {...{ group, skill: chosen }}
                isChosen={query.skill !== undefined}
              />
            )}
          </div>
        );
      }}
    </Loaded>
  );
}

const field = createColumnBuilder<GroupSkill>();
const buildColumns = (chosenId: string | undefined): readonly Column<GroupSkill>[] => [
  field('Skill', 'name', {
    show: ({ skill_id, name }) => (
      <Button
        class="quiet skill-name"
        aria-current={skill_id === chosenId ? 'true' : undefined}
        onClick={() => updateQuery({ skill: skill_id })}
      >
        <bdi>{name}</bdi>
      </Button>
    ),
  }),
  field('Skill id', 'skill_id', { isForFile: true }),
  field('Expected accuracy', ({ expected_accuracy }) => expected_accuracy.mean, {
    ...{ align: 'start', isLabelled: true },
    about:
      'Expected share of right answers on questions of average difficulty: quartiles and mean of the learners',
    show: ({ expected_accuracy: expected }) => (
      <span class="nowrap">
        <QuartileBar {...expected} />
        {formatSkillAccuracy(expected.mean)}
      </span>
    ),
  }),
  field('First quartile', ({ expected_accuracy }) => expected_accuracy.q1, { isForFile: true }),
  field('Median', ({ expected_accuracy }) => expected_accuracy.median, { isForFile: true }),
  field('Third quartile', ({ expected_accuracy }) => expected_accuracy.q3, { isForFile: true }),
  field('Struggling', 'struggling', {
    isLabelled: true,
    about: 'Learners with an expected accuracy below 60 % after at least 3 answers, or on a plateau',
    show: ({ struggling, learners }) => (
      <>
        {struggling} <span class="soft">of {learners}</span>
      </>
    ),
  }),
  field('Learners', 'learners', { isForFile: true }),
  field('Stuck', 'stuck', { isLabelled: true, about: 'Learners on a plateau: practice brings no progress' }),
  field('Mastered', 'mastered', { format: formatPercent, isLabelled: true, about: 'Share of the learners' }),
  field('Answers', 'answers', { isForFile: true }),
  field('Change', ({ change }) => change?.mean ?? null, {
    ...{ align: 'end', isLabelled: true },
    about:
      'Change of the share of right answers, in percentage points, and its 80 % range. Each learner with answers in both periods counts once. A dash: fewer than 5 learners',
    show: ({ change }) =>
      change === null ? (
        missingText
      ) : (
        <>
          <span class={change.low > 0 ? 'rise' : change.high < 0 ? 'fall' : undefined}>
            {formatPoints(change.mean)}
          </span>
          <span class="sub">
            {formatPoints(change.low)} to {formatPoints(change.high)}
          </span>
        </>
      ),
  }),
];

const QuartileBar = ({ mean, q1, median, q3 }: GroupSkill['expected_accuracy']) => (
  <RangeBar
    {...{ low: q1, high: q3, mark: mean }}
    title={`Half of the learners: ${formatPercent(q1)} to ${formatPercent(q3)}, median ${formatPercent(median)}`}
  />
);

interface ClassSkillProps {
  readonly group: Group;
  readonly skill: GroupSkill;
  /** By the user, who expects to see it. */
  readonly isChosen: boolean;
}

function ClassSkill({ group, skill, isChosen }: ClassSkillProps) {
  const { api } = useViewer();
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (isChosen) heading.current?.focus();
  }, [isChosen]);
  const { skill_id, name, hardest_items: items } = skill;
  const learners = useLoad(
    (signal) => loadSkillLearners(api, group, skill_id, signal),
    [api, group, skill_id],
  );
  return (
    <section class="panel skill-detail">
      <div class="row apart">
        <h2 tabIndex={-1} ref={heading}>
          <bdi>{name}</bdi>
        </h2>
        <a href={buildHref('skills', [skill_id])}>Statistics of this skill</a>
      </div>
      <p>
        {skill.struggling} of {pluralize(skill.learners, 'learner')} struggle, {skill.stuck} of them on a
        plateau. {formatPercent(skill.mastered)} have mastered the skill. The list starts with the learners
        who struggle.
      </p>
      {items !== null && items.length > 0 && <HardestItems items={items} />}
      <Loaded load={learners} subject="the learners">
        {(rows) => (
          <>
            <Table
              {...{ name: `Learners of ${name}`, rows, columns: learnerColumns(skill_id) }}
              rowKey={({ userId }) => userId}
            />
            {rows.length < group.user_ids.length && (
              <p class="soft">
                {pluralize(group.user_ids.length - rows.length, 'learner')} without answers on this skill.
              </p>
            )}
          </>
        )}
      </Loaded>
    </section>
  );
}

const HardestItems = ({ items }: { items: NonNullable<GroupSkill['hardest_items']> }) => (
  <div>
    <h3>Hardest items</h3>
    <ul class="plain">
      {items.map(({ item_id, answers, accuracy, expected }) => (
        <li key={item_id}>
          <bdi>{item_id}</bdi>: {formatPercent(accuracy)} of {pluralize(answers, 'answer')} right, expected{' '}
          {formatPercent(expected)}
        </li>
      ))}
    </ul>
  </div>
);

interface SkillLearner {
  readonly userId: string;
  readonly name: string;
  readonly expected: number;
  readonly mastery: number;
  readonly answers: number;
  readonly correct: number;
  /** RFC 3339; the last answer on the skill. */
  readonly lastAnswerAt: string | null;
  readonly isStuck: boolean;
}

/** Members with answers on the skill: first those who struggle, then by expected accuracy. */
async function loadSkillLearners(
  api: Api,
  { user_ids: userIds }: Group,
  skillId: string,
  signal: AbortSignal,
): Promise<readonly SkillLearner[]> {
  const [results, getName] = await Promise.all([
    fetchInParts(userIds, (user_ids) => api.classMastery({ user_ids, skill_ids: [skillId] }, { signal })),
    fetchNames(api, userIds, signal),
  ]);
  const learners = results.flatMap((result): SkillLearner[] => {
    if (result.status !== 200 || result.data.total_attempts === 0) return [];
    const { user_id: userId, data } = result;
    return [
      {
        ...{ userId, name: getName(userId), isStuck: data.plateaus.length > 0 },
        ...{ expected: data.expected_accuracy[skillId] ?? 0, mastery: data.mastery[skillId] ?? 0 },
        ...{ answers: data.total_attempts, correct: data.correct_attempts },
        lastAnswerAt: data.last_attempt_at,
      },
    ];
  });
  return learners.sort(
    (a, b) => Number(isStruggling(b)) - Number(isStruggling(a)) || a.expected - b.expected,
  );
}

const learnerField = createColumnBuilder<SkillLearner>();
const learnerColumns = (skillId: string): readonly Column<SkillLearner>[] => [
  learnerField('Learner', 'name', {
    show: ({ userId, name, ...standing }) => (
      <>
        <a href={buildHref('learner', [userId], { skill: skillId })}>
          <bdi>{name}</bdi>
        </a>{' '}
        {isStruggling(standing) && <Badge tone="alert">struggles</Badge>}
        {standing.isStuck && <span class="sub">on a plateau</span>}
      </>
    ),
  }),
  learnerField('Learner id', 'userId', { isForFile: true }),
  learnerField('Struggles', isStruggling, { isForFile: true }),
  learnerField('Expected', 'expected', {
    ...{ format: formatSkillAccuracy, isLabelled: true },
    about: 'Expected accuracy',
  }),
  learnerField('Mastery', 'mastery', { format: formatMastery, isLabelled: true }),
  learnerField('Right', ({ correct, answers }) => correct / answers, {
    ...{ about: 'Right answers of all answers', isLabelled: true },
    show: ({ correct, answers }) => `${correct} of ${answers}`,
  }),
  learnerField('Last answer', 'lastAnswerAt', {
    ...{ about: 'Day of the last answer on this skill', isTime: true, isLabelled: true },
    format: (time) => <span class="nowrap">{formatDay(time)}</span>,
  }),
];
