import type { LastAudit } from '../../../../client/types.js';
import { computeSum } from '../../../../lists.js';
import { formatDay, formatDayTime, formatDecimal, formatNumber, pluralize } from '../../base/format.js';
import { useLoad } from '../../base/load.js';
import { useViewer } from '../../base/viewer.js';
import { Loaded } from '../../parts/loaded.jsx';
import { Facts, Panel, Stat, Stats } from '../../parts/stat.jsx';
import { type Column, createColumnBuilder, Table } from '../../parts/table.jsx';

type Audit = NonNullable<LastAudit['last']>;

export function AuditPart() {
  const { api } = useViewer();
  const audit = useLoad((signal) => api.audits({ signal }), [api]);
  return (
    <Panel
      title="Last audit"
      about="Every accepted answer has to be stored once, be on its way, or be parked; and sums have to be those of the rows. An audit compares them by tenant and UTC day."
    >
      <Loaded load={audit} subject="the last audit">
        {({ last }) =>
          last === null ? (
            <p class="soft">
              The service has made none yet: it makes one after its start and every AUDIT_INTERVAL_HOURS.{' '}
              <code>npm run audit</code> makes one at once and prints what it found.
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
          note={mismatchCount === 0 ? 'all agrees' : 'look into them'}
          tone={mismatchCount === 0 ? 'good' : 'alert'}
        >
          Days on which two counts differ that have to be equal, seen in three looks in a row. Normal: 0.
        </Stat>
        <Stat
          label="Not compared"
          value={formatNumber(audit.not_compared_count)}
          note={audit.not_compared_count === 0 ? 'nothing was left out' : 'see below'}
          tone={audit.not_compared_count === 0 ? undefined : 'alert'}
        >
          What could not be compared, because a server was away or rows did not move. Mend that, and run it
          again.
        </Stat>
        <Stat
          label="When (UTC)"
          value={formatDayTime(audit.at)}
          note={`took ${formatDecimal(1)(audit.seconds)} s`}
        />
        <Stat label="Days" value={`${formatDay(audit.from)} – ${formatDay(audit.to)}`} />
      </Stats>
      <Facts
        facts={[
          ['Accepted answers', formatNumber(audit.accepted)],
          ['less erased and retracted', formatNumber(audit.removed)],
          ['Stored', formatNumber(audit.stored)],
          ['On their way', formatNumber(audit.waiting)],
          ['Parked', formatNumber(audit.parked)],
          ['Stored, by the day of the answer', formatNumber(audit.raw)],
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
          <summary>{pluralize(audit.not_compared.length, 'reason')} why something was not compared</summary>
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
  field('What it means', 'meaning'),
  field('Query that shows the rows', 'look', { format: (look) => <code class="long">{look}</code> }),
];
