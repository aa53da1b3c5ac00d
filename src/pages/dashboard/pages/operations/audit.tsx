import type { LastAudit } from '../../../../client/types.js';
import { computeSum } from '../../../../lists.js';
import { useAction } from '../../base/action.js';
import { formatDay, formatDayTime, formatDecimal, formatNumber } from '../../base/format.js';
import { useInterval } from '../../base/interval.js';
import { useLoad } from '../../base/load.js';
import { useViewer } from '../../base/viewer.js';
import { Button } from '../../parts/button.jsx';
import { ErrorNote, Loaded } from '../../parts/loaded.jsx';
import { Facts, Panel, Stat, Stats } from '../../parts/stat.jsx';
import { type Column, createColumnBuilder, Table } from '../../parts/table.jsx';

type Audit = NonNullable<LastAudit['last']>;

const pollMs = 2000;

export function AuditPart() {
  const { api } = useViewer();
  const audit = useLoad((signal) => api.audits({ signal }), [api]);
  const isRunning = audit.data?.running ?? false;
  const start = useAction(async () => {
    // Another operator may have started an audit.
    await api.startAudit().finally(audit.reload);
  });
  useInterval(audit.reload, isRunning ? pollMs : null);
  return (
    <Panel
      title="Last audit"
      about="Each accepted answer must be stored once, pending or parked, and sums must match their rows. An audit checks this by tenant and UTC day, and sums by local day."
    >
      <div class="row">
        <Button class="primary" disabled={isRunning || start.isBusy} onClick={() => start.run()}>
          Run now
        </Button>
        <p role="status">{isRunning && 'An audit is running.'}</p>
      </div>
      {start.error !== null && <ErrorNote error={start.error} />}
      <Loaded load={audit} subject="the last audit">
        {({ last }) =>
          last === null ? (
            <p class="soft">
              No audit yet. The service runs an audit after startup and every AUDIT_INTERVAL_HOURS.
            </p>
          ) : (
            <AuditView audit={last} />
          )
        }
      </Loaded>
    </Panel>
  );
}

function AuditView({ audit }: { audit: Audit }) {
  const mismatchCount = computeSum(Object.values(audit.mismatches_by_kind));
  return (
    <>
      <Stats>
        <Stat
          label="Mismatches"
          value={formatNumber(mismatchCount)}
          note={mismatchCount === 0 ? 'no differences' : 'needs attention'}
          tone={mismatchCount === 0 ? 'good' : 'alert'}
        >
          Days with two counts that must be equal but differ in three consecutive checks. Normal: 0.
        </Stat>
        <Stat
          label="Not compared"
          value={formatNumber(audit.not_compared_count)}
          note={audit.not_compared_count === 0 ? 'everything compared' : 'see below'}
          tone={audit.not_compared_count === 0 ? undefined : 'alert'}
        >
          Counts that the audit could not compare, for example because a server was unavailable. Fix the cause
          and run the audit again.
        </Stat>
        <Stat
          label="Time"
          value={formatDayTime(audit.at)}
          note={`took ${formatDecimal(1)(audit.seconds)} s`}
        />
        <Stat label="UTC days" value={`${formatDay(audit.from)} – ${formatDay(audit.to)}`} />
      </Stats>
      <Facts
        facts={[
          ['Accepted answers', formatNumber(audit.accepted)],
          ['Erased and retracted (subtracted)', formatNumber(audit.removed)],
          ['Stored', formatNumber(audit.stored)],
          ['Pending', formatNumber(audit.waiting)],
          ['Parked', formatNumber(audit.parked)],
          ['Stored, by day of the answer', formatNumber(audit.raw)],
        ]}
      />
      {mismatchCount > 0 && (
        <Table
          name="Mismatches"
          columns={columns}
          rows={audit.mismatches}
          rowKey={(row) => `${audit.mismatches.indexOf(row)}`}
          filter
        />
      )}
      {audit.not_compared.length > 0 && (
        <details>
          <summary>Why counts were not compared ({formatNumber(audit.not_compared.length)})</summary>
          <ul>
            {audit.not_compared.map((reason) => (
              <li key={reason}>{reason}</li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

const field = createColumnBuilder<Audit['mismatches'][number]>();
const columns: Column<Audit['mismatches'][number]>[] = [
  field('Kind', 'kind', { format: (kind) => <span class="words">{kind}</span> }),
  field('Tenant', 'tenant'),
  field('Day', 'day', { format: (one) => <span class="words">{one}</span> }),
  field('Partition', 'partition', { align: 'end' }),
  field('Expected', 'expected'),
  field('Found', 'found'),
  field('Meaning', 'meaning'),
  field('Query for the rows', 'look', { format: (look) => <code class="long">{look}</code> }),
];
