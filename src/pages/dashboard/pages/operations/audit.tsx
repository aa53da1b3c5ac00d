import type { LastAudit } from '../../../../client/types.js';
import { computeSum } from '../../../../lists.js';
import { day, dayAndTime, decimal, grouped, plural } from '../../base/format.js';
import { useLoad } from '../../base/load.js';
import { useViewer } from '../../base/viewer.js';
import { Loaded } from '../../parts/loaded.jsx';
import { Facts, Panel, Stat, Stats } from '../../parts/stat.jsx';
import { type Column, fieldsOf, Table } from '../../parts/table.jsx';

type Audit = NonNullable<LastAudit['last']>;

export function AuditPart() {
  const { api } = useViewer();
  const audit = useLoad((signal) => api.audits({ signal }), [api]);
  return (
    <Panel
      title="Last audit"
      about="Every accepted answer has to be stored once, be on its way, or be parked; and sums have to be those of the rows. An audit compares them by tenant and UTC day."
    >
      <Loaded of={audit} what="the last audit">
        {({ last }) =>
          last === null ? (
            <p class="soft">
              The service has made none yet: it makes one after its start and every AUDIT_INTERVAL_HOURS.{' '}
              <code>npm run audit</code> makes one at once and prints what it found.
            </p>
          ) : (
            <Shown audit={last} />
          )
        }
      </Loaded>
    </Panel>
  );
}

function Shown({ audit }: { audit: Audit }) {
  const found = computeSum(Object.values(audit.mismatches_by_kind));
  return (
    <>
      <Stats>
        <Stat
          label="Mismatches"
          value={grouped(found)}
          note={found === 0 ? 'all agrees' : 'look into them'}
          look={found === 0 ? 'good' : 'alert'}
        >
          Days on which two counts differ that have to be equal, seen in three looks in a row. Normal: 0.
        </Stat>
        <Stat
          label="Not compared"
          value={grouped(audit.not_compared_count)}
          note={audit.not_compared_count === 0 ? 'nothing was left out' : 'see below'}
          look={audit.not_compared_count === 0 ? undefined : 'alert'}
        >
          What could not be compared, because a server was away or rows did not move. Mend that, and run it
          again.
        </Stat>
        <Stat label="When (UTC)" value={dayAndTime(audit.at)} note={`took ${decimal(1)(audit.seconds)} s`} />
        <Stat label="Days" value={`${day(audit.from)} – ${day(audit.to)}`} />
      </Stats>
      <Facts
        of={[
          ['Accepted answers', grouped(audit.accepted)],
          ['less erased and retracted', grouped(audit.removed)],
          ['Stored', grouped(audit.stored)],
          ['On their way', grouped(audit.waiting)],
          ['Parked', grouped(audit.parked)],
          ['Stored, by the day of the answer', grouped(audit.raw)],
        ]}
      />
      {found > 0 && (
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
          <summary>{plural(audit.not_compared.length, 'reason')} why something was not compared</summary>
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

const field = fieldsOf<Audit['mismatches'][number]>();
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
