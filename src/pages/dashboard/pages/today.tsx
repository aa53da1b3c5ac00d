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
import { PeriodSelect, parseDays } from '../parts/period-select.jsx';
import { Panel, Stat } from '../parts/stat.jsx';
import './today.css';

export function TodayPage({ route: { query } }: { readonly route: Route }) {
  const { api, ownKey } = useViewer();
  const load = useGroups(api);
  return (
    <Loaded load={load} subject="the classes">
      {(groups) => {
        const [first] = groups;
        if (first === undefined) return <NoClassNote />;
        const groupId = query.group ?? readLastGroup(ownKey.tenant) ?? first.group_id;
        return <TodayOfGroup {...{ groups, groupId, query }} />;
      }}
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
  readonly groupId: string;
  readonly query: Route['query'];
}

function TodayOfGroup({ groups, groupId, query }: TodayProps) {
  const { api, ownKey } = useViewer();
  const days = parseDays(query.days);
  const summary = useLoad((signal) => api.groupSummary(groupId, { days, signal }), [api, groupId, days]);
  useEffect(() => {
    if (query.group === undefined) updateQuery({ group: groupId });
  }, [groupId, query.group]);
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
        {(summary) => <Summary summary={summary} />}
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
        <ListPanel title="Skills to teach again" empty="No skill is hard for a large part of the class.">
          {listSkills(summary, summary.reteach)}
        </ListPanel>
        {summary.declined && (
          <ListPanel title="What got worse" empty="No single skill declined clearly.">
            {listSkills(summary, summary.declined.skills)}
          </ListPanel>
        )}
        {summary.improved && (
          <ListPanel title="What improved" empty="No clear improvement of a skill or a learner.">
            {[
              ...listSkills(summary, summary.improved.skills),
              ...summary.improved.learners.map((learner) => (
                <li key={`learner ${learner.user_id}`}>
                  <LearnerName {...learner} /> {learner.text}
                </li>
              )),
            ]}
          </ListPanel>
        )}
      </div>
    </div>
    <p class="soft">
      Changes compare the last {summary.days} days with the {summary.days} days before; the range covers 80 %
      of the uncertainty. Not assessed: goal date passed, no answers for {statusRule.idleDays} days or more
      (idle), or fewer than {statusRule.fewAnswers} answers.
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

interface ListPanelProps {
  readonly title: string;
  readonly about?: string;
  readonly children: readonly ComponentChildren[];
  readonly empty: string;
}

const ListPanel = ({ title, about, children, empty }: ListPanelProps) => (
  <Panel title={title} about={about}>
    {children.length === 0 ? <p class="soft">{empty}</p> : <ul class="lines">{children}</ul>}
  </Panel>
);

const { listed, idle } = classConstants;

const Attention = ({ attention }: GroupSummary) => (
  <ListPanel
    title="Learners to look at"
    about={`Up to ${listed.attention}; reasons take turns. No answers for ${idle.days + idle.activeDays} days or more: see Class.`}
    empty="No learner stands out: all answered recently, and no goal is at risk soon."
  >
    {attention.map(({ skill_id, text, ...learner }) => (
      <li key={learner.user_id}>
        <LearnerName {...learner} />{' '}
        {skill_id === null ? (
          text
        ) : (
          <a href={buildHref('learner', [learner.user_id], { skill: skill_id })}>{text}</a>
        )}
      </li>
    ))}
  </ListPanel>
);

const LearnerName = ({
  user_id,
  display_name,
}: Pick<GroupSummary['attention'][number], 'user_id' | 'display_name'>) => (
  <LineLink href={buildHref('learner', [user_id])}>{display_name ?? user_id}</LineLink>
);

const LineLink = ({ href, children }: { href: string; children: string }) => (
  <a class="line-name" href={href}>
    <bdi>{children}</bdi>
  </a>
);

type SkillLine = Pick<GroupSummary['reteach'][number], 'skill_id' | 'skill_name' | 'text'>;

const listSkills = ({ group_id: group, days }: GroupSummary, skills: readonly SkillLine[]) =>
  skills.map(({ skill_id: skill, skill_name, text }) => (
    <li key={`skill ${skill}`}>
      <LineLink href={buildHref('class', [], { group, view: 'skills', skill, days })}>{skill_name}</LineLink>{' '}
      {text}
    </li>
  ));
