import { buildHref, navigate, type Route } from '../base/route.js';
import { useViewer } from '../base/viewer.js';
import { Panel } from '../parts/stat.jsx';
import { LearnerSearch, LearnerTable } from './learner/learner-search.jsx';
import { LearnerView } from './learner/learner-view.jsx';

const maxIdLength = 128;

export function LearnerPage({ route }: { readonly route: Route }) {
  const { api } = useViewer();
  const [userId] = route.args;
  const open = (id: string): void => navigate('learner', [id]);
  if (userId !== undefined)
    return (
      <>
        <LearnerSearch key={userId} api={api} onOpen={open} />
        {[...userId].length > maxIdLength ? (
          <p class="note">
            No learner has an id this long: the address is not one of this page.{' '}
            <a href={buildHref('learner')}>See all learners</a>
          </p>
        ) : (
          <LearnerView key={userId} userId={userId} query={route.query} />
        )}
      </>
    );
  return (
    <>
      <h1>Learners</h1>
      <LearnerSearch api={api} onOpen={open} />
      <Panel
        title="Learners with answers"
        about={
          <>
            In the order of their ids. Enter above opens an id as it is written. To see who is at risk,
            compare them on the page <a href={buildHref('class')}>Class</a>.
          </>
        }
      >
        <LearnerTable api={api} />
      </Panel>
    </>
  );
}
