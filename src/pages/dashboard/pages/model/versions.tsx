import { useState } from 'preact/hooks';
import type { ModelVersionPage } from '../../../../client/types.js';
import { formatDecimal, formatNumber, pluralize } from '../../base/format.js';
import { useLoad } from '../../base/load.js';
import { type Route, updateQuery } from '../../base/route.js';
import { useViewer } from '../../base/viewer.js';
import { ConfirmDialog } from '../../parts/dialog.jsx';
import { Loaded } from '../../parts/loaded.jsx';
import { Badge, Panel } from '../../parts/stat.jsx';
import {
  type Column,
  createActionColumn,
  createColumnBuilder,
  RowButton,
  Table,
} from '../../parts/table.jsx';
import { RollBackPreview } from './rollback-preview.jsx';
import { VersionComparison } from './version-comparison.jsx';

type Change = ModelVersionPage['versions'][number];

export function VersionsPart({ query }: { query: Route['query'] }) {
  const { api, hasScope } = useViewer();
  const [rollbackVersion, setRollbackVersion] = useState<number | null>(null);
  const versions = useLoad((signal) => api.modelVersions({ limit: 200, signal }), [api]);
  return (
    <>
      <Panel
        title="Versions"
        about="A fit estimates new parameters from the answers. For each skill, the service publishes them only if they predict unseen answers no worse than the current parameters."
      >
        <Loaded load={versions} subject="versions">
          {(page) => (
            <VersionList page={page} onRollBack={hasScope('operator') ? setRollbackVersion : null} />
          )}
        </Loaded>
      </Panel>
      {versions.data !== null && <VersionComparison query={query} page={versions.data} />}
      {rollbackVersion !== null && versions.data !== null && (
        <RollBackDialog
          version={rollbackVersion}
          page={versions.data}
          onClose={() => setRollbackVersion(null)}
          onDone={versions.reload}
        />
      )}
    </>
  );
}

interface VersionListProps {
  readonly page: ModelVersionPage;
  /** Null if the key may not roll back. */
  readonly onRollBack: ((version: number) => void) | null;
}

function VersionList({ page, onRollBack }: VersionListProps) {
  const { in_force, versions } = page;
  return (
    <>
      <p>
        {in_force === 0 ? (
          'Current parameters: defaults.'
        ) : (
          <>
            Current parameters: <strong>version {in_force}</strong>.
          </>
        )}
        {in_force !== 0 && onRollBack !== null && (
          <>
            {' '}
            <RowButton onClick={() => onRollBack(0)}>Use defaults</RowButton>
          </>
        )}
        {onRollBack === null && (
          <span class="soft">
            {' '}
            Changing the version requires a key with the scope <code>operator</code>.
          </span>
        )}
      </p>
      <Table
        name="Versions of the model"
        columns={buildColumns(page, onRollBack)}
        rows={versions}
        rowKey={({ change }) => `${change}`}
        empty="No fits yet. Run npm run fit, or set FIT_INTERVAL_HOURS. A fit needs enough answers."
      />
      {page.next_cursor !== null && (
        <p class="soft">Shows the newest {pluralize(versions.length, 'change')}.</p>
      )}
    </>
  );
}

const field = createColumnBuilder<Change>();
const buildColumns = (
  page: ModelVersionPage,
  onRollBack: VersionListProps['onRollBack'],
): Column<Change>[] => [
  field('Version', 'version', {
    show: (change) => (
      <>
        {change.version} {change.in_force && <Badge tone="good">current</Badge>}
      </>
    ),
    align: 'start',
  }),
  field('Time', 'published_at', { isTime: true }),
  field('Action', 'action', { isForFile: true }),
  field('Changes', 'summary', { format: (summary) => <span class="long">{summary}</span> }),
  field('Skills published', 'skills_published', {
    show: ({ skills, skills_published }) =>
      skills === null ? '–' : `${formatNumber(skills_published ?? 0)} of ${formatNumber(skills)}`,
    align: 'end',
  }),
  field('Answers', 'answers', { align: 'end' }),
  field('Learners', 'learners', { align: 'end' }),
  field('Log loss', 'new_log_loss', {
    show: ({ old_log_loss, new_log_loss }) =>
      `${formatDecimal(4)(old_log_loss)} → ${formatDecimal(4)(new_log_loss)}`,
    about: 'On answers that the fit did not use: previous → fitted parameters. Lower is better',
    align: 'end',
  }),
  field('Previous log loss', 'old_log_loss', { isForFile: true }),
  createActionColumn(({ version, kept, based_on }) => (
    <span class="row tight">
      {version > 0 && based_on > 0 && version !== based_on && (
        <RowButton onClick={() => updateQuery({ from: based_on, to: version })}>Compare</RowButton>
      )}
      {onRollBack !== null && kept && version !== page.in_force && (
        <RowButton onClick={() => onRollBack(version)}>{selectVerb(version, page.in_force)}</RowButton>
      )}
    </span>
  )),
];

const selectVerb = (version: number, activeVersion: number): string =>
  version < activeVersion ? 'Roll back' : 'Roll forward';

interface RollBackDialogProps {
  readonly version: number;
  readonly page: ModelVersionPage;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

function RollBackDialog({ version, page, onClose, onDone }: RollBackDialogProps) {
  const { in_force: activeVersion, versions } = page;
  const { api, ownKey } = useViewer();
  const verb = selectVerb(version, activeVersion);
  const target = version === 0 ? 'the defaults' : `version ${version}`;
  const rollBack = async (): Promise<void> => {
    await api.rollBack({ version });
    onDone();
  };
  return (
    <ConfirmDialog title={`${verb} to ${target}?`} confirmLabel={verb} onConfirm={rollBack} onClose={onClose}>
      <p>
        New answers of the tenant <bdi>{ownKey.tenant}</bdi> will use {target} instead of version{' '}
        {activeVersion}. Mastery and forecasts of all its learners change with their next request. Stored
        answers do not change. You can switch between the last ten versions. The next fit compares its result
        with the version that is current then.
      </p>
      <RollBackPreview from={activeVersion} to={version} versions={versions} />
    </ConfirmDialog>
  );
}
