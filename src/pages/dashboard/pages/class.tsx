import { SkilltraceError } from '../../../client/errors.js';
import { pluralize } from '../base/format.js';
import { useLoad } from '../base/load.js';
import { buildHref, type Query, type Route, updateQuery } from '../base/route.js';
import { useViewer } from '../base/viewer.js';
import { Button } from '../parts/button.jsx';
import { lazy } from '../parts/lazy.jsx';
import { ErrorNote, Loading } from '../parts/loaded.jsx';
import { Chooser } from './class/chooser.jsx';
import './class/class.css';
import { type Status, statusTexts } from '../../../domain/classes/learner-status.js';
import { type ClassSelection, loadClass, type SchoolClass } from './class/load-class.js';
import { MemberTable } from './class/member-table.jsx';
import { StatusRuleNote, StatusTiles } from './class/status-tiles.jsx';

const HeatMap = lazy(
  () => import('./teacher-pages.js'),
  (pages) => pages.HeatMap,
);

export function ClassPage({ route: { query } }: { readonly route: Route }) {
  const { api } = useViewer();
  const { ids, prefix, cursor, status, view, order } = query;
  const selection: ClassSelection = { ids, prefix, cursor };
  const loadedClass = useLoad((signal) => loadClass(api, selection, signal), [api, ids, prefix, cursor]);
  return (
    <>
      <div class="row apart">
        <h1>Class</h1>
        <Chooser selection={selection} view={{ status, view, order }} />
      </div>
      {loadedClass.error !== null && (
        <ClassErrorNote error={loadedClass.error} selection={selection} retry={loadedClass.reload} />
      )}
      {loadedClass.error === null && loadedClass.data === null && <Loading subject="the class" />}
      {loadedClass.error === null && loadedClass.data !== null && (
        <ClassView schoolClass={loadedClass.data} query={query} selection={selection} />
      )}
    </>
  );
}

/** Searches need ClickHouse. Learners by id are in Redis. */
function ClassErrorNote({
  error,
  selection,
  retry,
}: {
  error: unknown;
  selection: ClassSelection;
  retry: () => void;
}) {
  const isListUnavailable =
    selection.ids === undefined && error instanceof SkilltraceError && error.code === 'UNAVAILABLE';
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

interface ClassViewProps {
  readonly schoolClass: SchoolClass;
  readonly query: Query;
  readonly selection: ClassSelection;
}

function ClassView({ schoolClass, query, selection }: ClassViewProps) {
  const shownStatus = Object.keys(statusTexts).find((status) => status === query.status) as
    | Status
    | undefined;
  const members =
    shownStatus === undefined
      ? schoolClass.members
      : schoolClass.members.filter(({ status }) => status === shownStatus);
  const isMap = query.view === 'map';
  return (
    <>
      <ClassSummary {...{ schoolClass, selection, query }} />
      {schoolClass.members.length > 0 && (
        <>
          <StatusTiles members={schoolClass.members} shownStatus={shownStatus ?? null} />
          <StatusRuleNote />
          <fieldset class="switch">
            <legend class="hidden">Class view</legend>
            <Button aria-pressed={!isMap} onClick={() => updateQuery({ view: null })}>
              List
            </Button>
            <Button aria-pressed={isMap} onClick={() => updateQuery({ view: 'map' })}>
              Heat map
            </Button>
          </fieldset>
          {isMap ? (
            <HeatMap
              {...{ members, labels: schoolClass.skills }}
              {...{ order: query.order?.toString(), columns: query.skills?.toString() }}
            />
          ) : (
            <MemberTable members={members} />
          )}
        </>
      )}
    </>
  );
}

function ClassSummary({
  schoolClass: { members, missing, failed, nextCursor },
  selection,
  query,
}: ClassViewProps) {
  if (members.length + missing.length + failed.length === 0) return <EmptyClassNote {...selection} />;
  const { cursor: _, ...view } = query;
  return (
    <>
      <p class="soft">
        {pluralize(members.length, 'learner')}
        {describeSelection(selection)}. Days are UTC days.{' '}
        {selection.cursor !== undefined && <a href={buildHref('class', [], view)}>First page</a>}{' '}
        {nextCursor !== null && (
          <a href={buildHref('class', [], { ...view, cursor: nextCursor })}>Next page</a>
        )}
      </p>
      {missing.length > 0 && (
        <p class="note">
          Unknown, or without answers: <bdi>{missing.join(', ')}</bdi>
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

function describeSelection({ ids, prefix }: ClassSelection) {
  if (ids !== undefined) return ' in the list';
  if (prefix === undefined) return '';
  return (
    <>
      {' '}
      with ids that start with <bdi>{prefix}</bdi>
    </>
  );
}

const EmptyClassNote = ({ prefix, cursor }: ClassSelection) => (
  <p class="note">
    {prefix === undefined && cursor === undefined ? (
      <span>
        No answers yet. Post an answer to <code>/api/v1/track-answer</code>, or run <code>npm run demo</code>.
      </span>
    ) : (
      <span>
        No learners found. Ids are case-sensitive. <a href={buildHref('class')}>Show all learners</a>
      </span>
    )}
  </p>
);
