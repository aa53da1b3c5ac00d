import { useState } from 'preact/hooks';
import type { ModelVersionPage } from '../../../../client/types.js';
import { dayAndTime, decimal, grouped, plural } from '../../base/format.js';
import { useLoad } from '../../base/load.js';
import { look, type Route } from '../../base/route.js';
import { useViewer } from '../../base/viewer.js';
import { Confirm } from '../../parts/dialog.jsx';
import { Loaded } from '../../parts/loaded.jsx';
import { Badge, Panel } from '../../parts/stat.jsx';
import { actionColumn, type Column, fieldsOf, RowButton, Table } from '../../parts/table.jsx';
import { Compare } from './compare.jsx';

type Change = ModelVersionPage['versions'][number];

export function VersionsPart({ query }: { query: Route['query'] }) {
  const { api, can } = useViewer();
  const [back, setBack] = useState<number | null>(null);
  const versions = useLoad((signal) => api.modelVersions({ limit: 200, signal }), [api]);
  return (
    <>
      <Panel
        title="Versions"
        about="A fit learns parameters from the answers, and compares them with those in force on answers it has not seen. Its guard lets pass only what is not worse, skill by skill."
      >
        <Loaded of={versions} what="versions">
          {(page) => <List page={page} onBack={can('operator') ? setBack : null} />}
        </Loaded>
      </Panel>
      {versions.data !== null && <Compare query={query} page={versions.data} />}
      {back !== null && versions.data !== null && (
        <RollBack
          version={back}
          inForce={versions.data.in_force}
          onClose={() => setBack(null)}
          onDone={versions.reload}
        />
      )}
    </>
  );
}

interface ListProps {
  readonly page: ModelVersionPage;
  /** Null if the key may not roll back. */
  readonly onBack: ((version: number) => void) | null;
}

function List({ page, onBack }: ListProps) {
  const { in_force, versions } = page;
  return (
    <>
      <p>
        {in_force === 0 ? (
          'In force: the defaults, nothing is fitted.'
        ) : (
          <>
            In force: <strong>version {in_force}</strong>.
          </>
        )}
        {in_force !== 0 && onBack !== null && (
          <>
            {' '}
            <RowButton onClick={() => onBack(0)}>Back to the defaults</RowButton>
          </>
        )}
        {onBack === null && (
          <span class="soft">
            {' '}
            To go back to another takes a key with the scope <code>operator</code>.
          </span>
        )}
      </p>
      <Table
        name="Versions of the model"
        columns={columnsOf(page, onBack)}
        rows={versions}
        rowKey={({ change }) => `${change}`}
        empty="Nothing is fitted yet: a fit needs enough answers; npm run fit, or FIT_INTERVAL_HOURS of the service, makes one."
      />
      {page.next_cursor !== null && <p class="soft">The newest {plural(versions.length, 'change')}.</p>}
    </>
  );
}

const field = fieldsOf<Change>();
const columnsOf = (page: ModelVersionPage, onBack: ListProps['onBack']): Column<Change>[] => [
  field('Version', 'version', {
    show: (change) => (
      <>
        {change.version} {change.in_force && <Badge look="good">in force</Badge>}
      </>
    ),
    align: 'start',
  }),
  field('When (UTC)', 'published_at', { format: dayAndTime }),
  field('By', 'action', { isForFile: true }),
  field('What changed, and why', 'summary', { format: (summary) => <span class="long">{summary}</span> }),
  field('Skills changed', 'skills_published', {
    show: ({ skills, skills_published }) =>
      skills === null ? '–' : `${grouped(skills_published ?? 0)} of ${grouped(skills)}`,
    align: 'end',
  }),
  field('Answers', 'answers', { align: 'end' }),
  field('Learners', 'learners', { align: 'end' }),
  field('Log loss', 'new_log_loss', {
    show: ({ old_log_loss, new_log_loss }) => `${decimal(4)(old_log_loss)} → ${decimal(4)(new_log_loss)}`,
    about:
      'On answers that the fit has not seen: with what was in force, and with what was fitted; lower is better',
    align: 'end',
  }),
  field('Log loss before', 'old_log_loss', { isForFile: true }),
  actionColumn(({ version, kept, based_on }) => (
    <span class="row tight">
      {version > 0 && based_on > 0 && version !== based_on && (
        <RowButton onClick={() => look({ from: based_on, to: version })}>Compare</RowButton>
      )}
      {onBack !== null && kept && version !== page.in_force && (
        <RowButton onClick={() => onBack(version)}>{verbOf(version, page.in_force)}</RowButton>
      )}
    </span>
  )),
];

const verbOf = (version: number, inForce: number): string => (version < inForce ? 'Go back' : 'Go forward');

interface RollBackProps {
  readonly version: number;
  readonly inForce: number;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

function RollBack({ version, inForce, onClose, onDone }: RollBackProps) {
  const { api, own } = useViewer();
  const verb = verbOf(version, inForce);
  const what = version === 0 ? 'the defaults' : `version ${version}`;
  const act = async (): Promise<void> => {
    await api.rollBack({ version });
    onDone();
  };
  return (
    <Confirm title={`${verb} to ${what}?`} verb={verb} act={act} onClose={onClose}>
      <p>
        From now on answers of the tenant <bdi>{own.tenant}</bdi> are counted with {what} in place of version{' '}
        {inForce}. Mastery and forecasts of all its learners change at their next look. Answers that were
        counted stay as they are. The last ten versions are kept: you can return the same way. The next fit
        compares with what is in force then.
      </p>
    </Confirm>
  );
}
