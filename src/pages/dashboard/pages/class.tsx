import { useState } from 'preact/hooks';
import { SkilltraceError } from '../../../client/errors.js';
import type { Group } from '../../../client/types.js';
import { type Status, statusTexts } from '../../../domain/classes/learner-status.js';
import { pluralize } from '../base/format.js';
import { forgetLastGroup, useGroups, useLastGroup } from '../base/groups.js';
import { type LoadState, useLoad } from '../base/load.js';
import { buildHref, navigate, type Route, updateQuery } from '../base/route.js';
import { useViewer } from '../base/viewer.js';
import { Button } from '../parts/button.jsx';
import { ErrorNote, Loading } from '../parts/loaded.jsx';
import { Chooser } from './class/chooser.jsx';
import './class/class.css';
import { ClassSkills } from './class/class-skills.jsx';
import { GroupDialog } from './class/group-dialog.jsx';
import { HeatMap } from './class/heat-map.jsx';
import { splitIds } from './class/learner-ids.js';
import { type ClassSelection, loadClass, type SchoolClass } from './class/load-class.js';
import { MemberTable } from './class/member-table.jsx';
import { StatusRuleNote, StatusTiles } from './class/status-tiles.jsx';

const views = { list: 'List', skills: 'Skills', map: 'Heat map' };

export function ClassPage({ route: { query } }: { readonly route: Route }) {
  const { api, ownKey } = useViewer();
  const { group: groupId, status, view, order, skills, days } = query;
  const groups = useGroups(api);
  const group = useLoad(
    async (signal) => (groupId === undefined ? null : api.group(groupId, { signal })),
    [api, groupId],
  );
  useLastGroup(ownKey.tenant, group);
  const showSaved = ({ group_id }: Group): void => {
    groups.reload();
    if (group_id === groupId) group.reload();
    else navigate('class', [], { view, group: group_id });
  };
  return (
    <>
      <div class="row apart">
        <h1>{group.data === null ? 'Class' : <bdi>{group.data.name}</bdi>}</h1>
        <Chooser groups={groups.data ?? []} query={query} view={{ status, view, order, skills, days }} />
      </div>
      <fieldset class="switch">
        <legend class="hidden">Class view</legend>
        {Object.entries(views).map(([id, title]) => (
          <Button
            key={id}
            aria-pressed={id === (view ?? 'list')}
            onClick={() => updateQuery({ view: id === 'list' ? null : id })}
          >
            {title}
          </Button>
        ))}
      </fieldset>
      <ClassContent load={group} query={query} onSaved={showSaved} onDeleted={groups.reload} />
    </>
  );
}

interface ClassContentProps extends Omit<ClassMembersProps, 'group'> {
  readonly load: LoadState<Group | null>;
}

function ClassContent({ load: { data: group, error, reload }, query, ...handlers }: ClassContentProps) {
  if (error !== null) return <ClassErrorNote error={error} isList={false} retry={reload} />;
  if (group === null && query.group !== undefined) return <Loading subject="the class" />;
  if (query.view !== 'skills') return <ClassMembers {...{ group, query, ...handlers }} />;
  return group === null ? <UnsavedNote /> : <ClassSkills group={group} query={query} />;
}

const UnsavedNote = () => (
  <div class="note">
    <p>
      The skills of a class need a saved class. Choose a class above, or open <em>List</em>, select learners
      and click <em>Save as class</em>.
    </p>
  </div>
);

interface ClassMembersProps {
  /** Null if the address has a list of ids or a prefix. */
  readonly group: Group | null;
  readonly query: Route['query'];
  readonly onSaved: (group: Group) => void;
  readonly onDeleted: () => void;
}

function ClassMembers({ group, query, onSaved, onDeleted }: ClassMembersProps) {
  const { api } = useViewer();
  const { ids, prefix, cursor } = query;
  const selection: ClassSelection = {
    userIds: group?.user_ids ?? (ids === undefined ? undefined : splitIds(ids)),
    prefix,
    cursor,
  };
  const loaded = useLoad((signal) => loadClass(api, selection, signal), [api, group, ids, prefix, cursor]);
  if (loaded.error !== null)
    return (
      <ClassErrorNote error={loaded.error} isList={selection.userIds === undefined} retry={loaded.reload} />
    );
  if (loaded.data === null) return <Loading subject="the class" />;
  return <ClassView {...{ schoolClass: loaded.data, group, query, selection, onSaved, onDeleted }} />;
}

/** Searches need ClickHouse. Learners by id are in Redis. */
function ClassErrorNote({ error, isList, retry }: { error: unknown; isList: boolean; retry: () => void }) {
  const isListUnavailable = isList && error instanceof SkilltraceError && error.code === 'UNAVAILABLE';
  return (
    <>
      <ErrorNote error={error} retry={retry} />
      {error instanceof SkilltraceError && error.status >= 400 && error.status < 500 && !error.retryable && (
        <p>
          <a href={buildHref('class')}>Show all learners</a>
        </p>
      )}
      {isListUnavailable && (
        <p class="note">
          Listing learners needs ClickHouse. Paste learner ids to see their status, forecasts and mastery.
        </p>
      )}
    </>
  );
}

interface ClassViewProps extends ClassMembersProps {
  readonly schoolClass: SchoolClass;
  readonly selection: ClassSelection;
}

function ClassView(props: ClassViewProps) {
  const { schoolClass, query } = props;
  const shownStatus = Object.keys(statusTexts).find((status) => status === query.status) as
    | Status
    | undefined;
  const members =
    shownStatus === undefined
      ? schoolClass.members
      : schoolClass.members.filter(({ status }) => status === shownStatus);
  return (
    <>
      <ClassSummary {...props} />
      {schoolClass.members.length > 0 && (
        <>
          <StatusTiles members={schoolClass.members} shownStatus={shownStatus ?? null} />
          <StatusRuleNote />
          {query.view === 'map' ? (
            <HeatMap {...{ members, labels: schoolClass.skills, query }} />
          ) : (
            <MemberTable members={members} />
          )}
        </>
      )}
    </>
  );
}

function ClassSummary(props: ClassViewProps) {
  const { group, selection, query } = props;
  const { members, missing, failed, nextCursor } = props.schoolClass;
  if (members.length + missing.length + failed.length === 0) return <EmptyClassNote {...props} />;
  const { cursor: _, ...view } = query;
  return (
    <>
      <div class="row apart">
        <p class="soft">
          {pluralize(members.length, 'learner')}
          {group === null && describeSelection(selection)}.{' '}
          {selection.cursor !== undefined && <a href={buildHref('class', [], view)}>First page</a>}{' '}
          {nextCursor !== null && (
            <a href={buildHref('class', [], { ...view, cursor: nextCursor })}>Next page</a>
          )}
        </p>
        <GroupButton {...props} />
      </div>
      {missing.length > 0 && (
        <p class="note">
          {group === null ? 'Unknown, or without answers: ' : 'Without answers: '}
          <bdi>{missing.join(', ')}</bdi>
        </p>
      )}
      {failed.length > 0 && (
        <p class="note alert">
          Not loaded because of errors: {failed.map(({ userId, reason }) => `${userId}: ${reason}`).join(' ')}
        </p>
      )}
    </>
  );
}

/** Saves the shown learners, or changes the saved class. */
function GroupButton({ group, schoolClass, onSaved, onDeleted }: ClassViewProps) {
  const { ownKey, hasScope } = useViewer();
  const [isOpen, setOpen] = useState(false);
  if (!hasScope('write')) return null;
  const { members, failed, missing } = schoolClass;
  const shownIds = [...[...members, ...failed].map(({ userId }) => userId), ...missing];
  const remove = (): void => {
    forgetLastGroup(ownKey.tenant);
    onDeleted();
    navigate('class');
  };
  return (
    <>
      <Button onClick={() => setOpen(true)}>{group === null ? 'Save as class' : 'Edit class'}</Button>
      {isOpen && (
        <GroupDialog
          {...{ group, onSaved, onDeleted: remove }}
          userIds={group?.user_ids ?? shownIds}
          onClose={() => setOpen(false)}
        />
      )}
    </>
  );
}

function describeSelection({ userIds, prefix }: ClassSelection) {
  if (userIds !== undefined) return ' in the list';
  if (prefix === undefined) return '';
  return (
    <>
      {' '}
      with ids that start with <bdi>{prefix}</bdi>
    </>
  );
}

const EmptyClassNote = (props: ClassViewProps) => {
  const { prefix, cursor } = props.selection;
  if (props.group !== null)
    return (
      <div class="row apart">
        <p class="note">This class has no learners.</p>
        <GroupButton {...props} />
      </div>
    );
  return (
    <p class="note">
      {prefix === undefined && cursor === undefined ? (
        <span>
          No answers yet. Post an answer to <code>/api/v1/track-answer</code>, or run{' '}
          <code>npm run demo</code>.
        </span>
      ) : (
        <span>
          No learners found. Ids are case-sensitive. <a href={buildHref('class')}>Show all learners</a>
        </span>
      )}
    </p>
  );
};
