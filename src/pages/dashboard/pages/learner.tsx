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
            Learner ids have at most {maxIdLength} characters.{' '}
            <a href={buildHref('learner')}>Show all learners</a>
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
            Sorted by id. To open an exact id, type it above and press Enter. To find learners at risk, open
            the <a href={buildHref('class')}>Class</a> page.
          </>
        }
      >
        <LearnerTable api={api} />
      </Panel>
    </>
  );
}
