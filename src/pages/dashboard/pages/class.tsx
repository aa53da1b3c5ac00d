import { SkilltraceError } from '../../../client/errors.js';
import { plural } from '../base/format.js';
import { useLoad } from '../base/load.js';
import { href, look, type Query, type Route } from '../base/route.js';
import { useViewer } from '../base/viewer.js';
import { Button } from '../parts/button.jsx';
import { ErrorNote, Loading } from '../parts/loaded.jsx';
import { Chooser } from './class/chooser.jsx';
import './class/class.css';
import { HeatMap } from './class/heat-map.jsx';
import { Members } from './class/members.jsx';
import { type Choice, readClass, type SchoolClass } from './class/read.js';
import { type Status, statuses } from './class/status.js';
import { HowJudged, Tiles } from './class/tiles.jsx';

export function ClassPage({ route: { query } }: { readonly route: Route }) {
  const { api } = useViewer();
  const { ids, prefix, cursor, status, view, order } = query;
  const choice: Choice = { ids, prefix, cursor };
  const found = useLoad((signal) => readClass(api, choice, signal), [api, ids, prefix, cursor]);
  return (
    <>
      <div class="row apart">
        <h1>Class</h1>
        <Chooser choice={choice} view={{ status, view, order }} />
      </div>
      {found.error !== null && <NotRead error={found.error} choice={choice} retry={found.reload} />}
      {found.error === null && found.data === null && <Loading what="the class" />}
      {found.error === null && found.data !== null && <Shown of={found.data} query={query} choice={choice} />}
    </>
  );
}

/** Searches need ClickHouse. Learners by id are in Redis. */
function NotRead({ error, choice, retry }: { error: unknown; choice: Choice; retry: () => void }) {
  const isListAway =
    choice.ids === undefined && error instanceof SkilltraceError && error.code === 'UNAVAILABLE';
  return (
    <>
      <ErrorNote error={error} retry={retry} />
      {error instanceof SkilltraceError && error.status >= 400 && error.status < 500 && !error.retryable && (
        <p>
          <a href={href('class')}>Show all learners</a>
        </p>
      )}
      {isListAway && (
        <p class="note">
          Only the search for learners is away. Give a list of ids: their status, forecasts and mastery are
          there.
        </p>
      )}
    </>
  );
}

interface ShownProps {
  readonly of: SchoolClass;
  readonly query: Query;
  readonly choice: Choice;
}

function Shown({ of, query, choice }: ShownProps) {
  const shown = Object.keys(statuses).find((status) => status === query.status) as Status | undefined;
  const members = shown === undefined ? of.members : of.members.filter(({ status }) => status === shown);
  const isMap = query.view === 'map';
  return (
    <>
      <About {...{ of, choice, query }} />
      {of.members.length > 0 && (
        <>
          <Tiles members={of.members} shown={shown ?? null} />
          <HowJudged />
          <fieldset class="switch">
            <legend class="hidden">How the class is shown</legend>
            <Button aria-pressed={!isMap} onClick={() => look({ view: null })}>
              List
            </Button>
            <Button aria-pressed={isMap} onClick={() => look({ view: 'map' })}>
              Heat map
            </Button>
          </fieldset>
          {isMap ? (
            <HeatMap members={members} names={of.skills} order={String(query.order ?? 'status')} />
          ) : (
            <Members members={members} />
          )}
        </>
      )}
    </>
  );
}

function About({ of: { members, missing, failed, nextCursor }, choice, query }: ShownProps) {
  if (members.length + missing.length + failed.length === 0) return <Nobody {...choice} />;
  const { cursor: _, ...view } = query;
  return (
    <>
      <p class="soft">
        {plural(members.length, 'learner')}
        {whichText(choice)}. Days are UTC days.{' '}
        {choice.cursor !== undefined && <a href={href('class', [], view)}>From the beginning</a>}{' '}
        {nextCursor !== null && (
          <a href={href('class', [], { ...view, cursor: nextCursor })}>There are more: the next ones</a>
        )}
      </p>
      {missing.length > 0 && (
        <p class="note">
          Without answers, or not known: <bdi>{missing.join(', ')}</bdi>
        </p>
      )}
      {failed.length > 0 && (
        <p class="note alert">
          Could not be computed: {failed.map(({ userId, reason }) => `${userId} (${reason})`).join(', ')}
        </p>
      )}
    </>
  );
}

function whichText({ ids, prefix }: Choice) {
  if (ids !== undefined) return ' of the list';
  if (prefix === undefined) return '';
  return (
    <>
      {' '}
      whose ids begin with <bdi>{prefix}</bdi>
    </>
  );
}

const Nobody = ({ prefix, cursor }: Choice) => (
  <p class="note">
    {prefix === undefined && cursor === undefined ? (
      <span>
        No answers yet: post one to <code>/api/v1/track-answer</code>, or run <code>npm run demo</code>.
      </span>
    ) : (
      <span>
        Nobody here. Upper and lower case count. <a href={href('class')}>Show all learners</a>
      </span>
    )}
  </p>
);
