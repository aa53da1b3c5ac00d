/** What a teacher should know about a class today. */
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import type { GroupSummary } from '../../../client/types.js';
import { classConstants } from '../../../domain/classes/class-constants.js';
import { statusRule } from '../../../domain/classes/learner-status.js';
import { formatDay, formatDecimal, formatPoints, missingText, pluralize } from '../base/format.js';
import { type ListedGroup, readLastGroup, useGroups, useLastGroup } from '../base/groups.js';
import { useLoad } from '../base/load.js';
import { buildHref, navigate, type Route, updateQuery } from '../base/route.js';
import { useViewer } from '../base/viewer.js';
import { GroupSelect } from '../parts/group-select.jsx';
import { Loaded } from '../parts/loaded.jsx';
import { PeriodSelect, readDays } from '../parts/period-select.jsx';
import { Panel, Stat } from '../parts/stat.jsx';
import './today.css';

export function TodayPage({ route: { query } }: { readonly route: Route }) {
  const { api, ownKey } = useViewer();
  const groups = useGroups(api);
  const groupId = query.group ?? readLastGroup(ownKey.tenant) ?? groups.data?.[0]?.group_id;
  useEffect(() => {
    if (groupId !== undefined && query.group === undefined) updateQuery({ group: groupId });
  }, [groupId, query.group]);
  return (
    <Loaded load={groups} subject="the classes">
      {(groups) =>
        groups.length === 0 ? (
          <NoClassNote />
        ) : (
          <TodayOfGroup {...{ groups, groupId, days: readDays(query) }} />
        )
      }
    </Loaded>
  );
}

const NoClassNote = () => (
  <>
    <h1>Today</h1>
    <div class="note">
      <p>
        No classes saved yet. Select learners on the <a href={buildHref('class')}>Class</a> page, by the first
        characters of their ids or from a list, and click <em>Save as class</em>.
      </p>
      <p>
        <a href={buildHref('class')}>Show all learners</a>
      </p>
    </div>
  </>
);

interface TodayProps {
  readonly groups: readonly ListedGroup[];
  readonly groupId: string | undefined;
  readonly days: number;
}

function TodayOfGroup({ groups, groupId, days }: TodayProps) {
  const { api, ownKey } = useViewer();
  const summary = useLoad(
    async (signal) => (groupId === undefined ? null : api.groupSummary(groupId, { days, signal })),
    [api, groupId, days],
  );
  useLastGroup(ownKey.tenant, summary);
  const name = groups.find(({ group_id }) => group_id === groupId)?.name ?? summary.data?.name;
  return (
    <>
      <div class="row apart">
        <h1>
          Today{name !== undefined && ': '}
          <bdi>{name}</bdi>
        </h1>
        <div class="row tools">
          <GroupSelect
            {...{ groups, groupId }}
            onSelect={(group) => navigate('today', [], { group, days })}
          />
          <PeriodSelect days={days} />
        </div>
      </div>
      <Loaded load={summary} subject="the class">
        {(summary) => summary !== null && <Summary summary={summary} />}
      </Loaded>
    </>
  );
}

const Summary = ({ summary }: { readonly summary: GroupSummary }) => (
  <div class="stack">
    <SummaryStats {...summary} />
    <div class="today">
      <Attention {...summary} />
      <div class="stack">
        <Reteach {...summary} />
        {summary.declined && <Declined {...summary} />}
        {summary.improved && <Improved {...summary} />}
      </div>
    </div>
    <p class="soft">
      Changes compare the last {summary.days} days with the {summary.days} days before; the range covers 80 %
      of the uncertainty. Not assessed: goal date passed, no answers for {statusRule.idleDays} days or more
      (idle), or fewer than {statusRule.fewAnswers} answers. Days are UTC days.
      {describeLag(summary.source_lag_seconds)}
    </p>
  </div>
);

const describeLag = (seconds: number | null): string => {
  if (seconds === null) return ' Answers per day and changes need ClickHouse, which does not respond.';
  return seconds < 60
    ? ''
    : ` Answers of the last ${pluralize(Math.ceil(seconds / 60), 'minute')} may be missing.`;
};

function SummaryStats({ group_id: group, days, since, change, ...counts }: GroupSummary) {
  return (
    <div class="stats tiles of-class">
      <Stat label="Learners" value={counts.learners} note={`${counts.with_answers} with answers`} />
      <Stat label="Active" value={counts.active} note={`answered since ${formatDay(since)}`} />
      <Stat label="On track or reached" value={counts.on_track} tone="good" note="goal likely or met" />
      <Stat
        label="At risk or unlikely"
        value={<a href={buildHref('class', [], { group })}>{counts.at_risk}</a>}
        tone={counts.at_risk > 0 ? 'alert' : undefined}
        note="goal not likely"
      />
      <Stat
        label="No goal"
        value={<a href={buildHref('class', [], { group, status: 'none' })}>{counts.no_goal}</a>}
        note="set one for a forecast"
      />
      <Stat
        label="Not assessed"
        value={counts.goal_passed + counts.idle + counts.few_answers}
        note={`${counts.goal_passed} past goal date, ${counts.idle} idle, ${counts.few_answers} few answers`}
      />
      <Stat
        label="Answers per day"
        value={formatDecimal(1)(counts.answers_per_day)}
        note={`all learners, last ${days} days`}
      />
      <ChangeStat change={change} answers_per_day={counts.answers_per_day} />
    </div>
  );
}

function ChangeStat({ change, answers_per_day }: Pick<GroupSummary, 'change' | 'answers_per_day'>) {
  if (change === null) {
    const note = answers_per_day === null ? 'not available' : 'under 5 learners in both periods';
    return <Stat label="Right answers" value={missingText} note={note} />;
  }
  const [tone, verdict] =
    change.low > 0
      ? (['good', 'improved'] as const)
      : change.high < 0
        ? (['alert', 'declined'] as const)
        : [undefined, 'no clear change'];
  return (
    <Stat
      label="Right answers"
      value={[formatPoints(change.mean), ' ', <small key="unit">points</small>]}
      tone={tone}
      note={`${verdict}: ${formatPoints(change.low)} to ${formatPoints(change.high)}`}
    />
  );
}

const Lines = ({ children, empty }: { children: readonly ComponentChildren[]; empty: string }) =>
  children.length === 0 ? <p class="soft">{empty}</p> : <ul class="lines">{children}</ul>;

const { listed, idle } = classConstants;

const Attention = ({ attention }: GroupSummary) => (
  <Panel
    title="Learners to look at"
    about={`Up to ${listed.attention}; reasons take turns. No answers for ${idle.days + idle.activeDays} days or more: see Class.`}
  >
    <Lines empty="No learner stands out: all answered recently, and no goal is at risk soon.">
      {attention.map(({ user_id, display_name, skill_id, text }) => (
        <li key={user_id}>
          <LineLink href={buildHref('learner', [user_id])}>{display_name ?? user_id}</LineLink>{' '}
          {skill_id === null ? (
            text
          ) : (
            <a href={buildHref('learner', [user_id], { skill: skill_id })}>{text}</a>
          )}
        </li>
      ))}
    </Lines>
  </Panel>
);

const LineLink = ({ href, children }: { href: string; children: string }) => (
  <a class="line-name" href={href}>
    <bdi>{children}</bdi>
  </a>
);

const hrefOfSkill = ({ group_id: group, days }: GroupSummary, skill: string): string =>
  buildHref('class', [], { group, view: 'skills', skill, days });

type SkillLine = Pick<GroupSummary['reteach'][number], 'skill_id' | 'skill_name' | 'text'>;

const listSkills = (summary: GroupSummary, skills: readonly SkillLine[] = []) =>
  skills.map(({ skill_id, skill_name, text }) => (
    <li key={`skill ${skill_id}`}>
      <LineLink href={hrefOfSkill(summary, skill_id)}>{skill_name}</LineLink> {text}
    </li>
  ));

const Reteach = (summary: GroupSummary) => (
  <Panel title="Skills to teach again">
    <Lines empty="No skill is hard for a large part of the class.">
      {listSkills(summary, summary.reteach)}
    </Lines>
  </Panel>
);

const Declined = (summary: GroupSummary) => (
  <Panel title="What got worse">
    <Lines empty="No single skill declined clearly.">{listSkills(summary, summary.declined?.skills)}</Lines>
  </Panel>
);

const Improved = (summary: GroupSummary) => (
  <Panel title="What improved">
    <Lines empty="No clear improvement of a skill or a learner.">
      {[
        ...listSkills(summary, summary.improved?.skills),
        ...(summary.improved?.learners ?? []).map(({ user_id, display_name, text }) => (
          <li key={`learner ${user_id}`}>
            <LineLink href={buildHref('learner', [user_id])}>{display_name ?? user_id}</LineLink> {text}
          </li>
        )),
      ]}
    </Lines>
  </Panel>
);
