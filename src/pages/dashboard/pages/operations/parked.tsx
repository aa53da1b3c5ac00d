import { useState } from 'preact/hooks';
import type { ParkedPage, Redriven } from '../../../../client/types.js';
import { formatDayTime, pluralize } from '../../base/format.js';
import { usePagedList } from '../../base/paged-list.js';
import { useViewer } from '../../base/viewer.js';
import { Button } from '../../parts/button.jsx';
import { ConfirmDialog } from '../../parts/dialog.jsx';
import { PagedTable } from '../../parts/paged-table.jsx';
import { Panel } from '../../parts/stat.jsx';
import { type Column, createColumnBuilder } from '../../parts/table.jsx';

type Row = ParkedPage['rows'][number];

export function ParkedPart() {
  const { api } = useViewer();
  const [isConfirming, setConfirming] = useState(false);
  const [outcome, setOutcome] = useState('');
  const parked = usePagedList((page) => api.parked(page), 'rows', [api]);
  const redrive = async (): Promise<void> => {
    setOutcome(describeOutcome(await api.redrive()));
    parked.reload();
  };
  return (
    <Panel
      title="Parked rows"
      about="Answers, and changes of goals and catalogues, that ClickHouse refused for what they say. They are kept, count for their learners, and are missing in histories and statistics only."
    >
      <PagedTable
        list={parked}
        subject="parked rows"
        name="Parked rows"
        columns={columns}
        rowKey={({ stream, id }) => `${stream} ${id}`}
        filter
        empty="Nothing is parked, as it should be."
      >
        {parked.rows !== null && parked.rows.length > 0 && (
          <div>
            <Button class="primary" onClick={() => setConfirming(true)}>
              Redrive all
            </Button>
          </div>
        )}
      </PagedTable>
      <p role="status">{outcome}</p>
      {isConfirming && (
        <ConfirmDialog
          title="Redrive all parked rows?"
          confirmLabel="Redrive"
          onConfirm={redrive}
          onClose={() => setConfirming(false)}
        >
          <p>
            All of them, those of other pages included, are put back into their line and stored as if nothing
            had been. Mend what the reasons name first: what is refused again is parked again. Nothing is
            stored twice.
          </p>
        </ConfirmDialog>
      )}
    </Panel>
  );
}

function describeOutcome({ moved, stayed, erased }: Redriven): string {
  const parts = [`${pluralize(moved, 'row was', 'rows were')} put back`];
  if (stayed > 0)
    parts.push(`${pluralize(stayed, 'stays', 'stay')} until a correction is applied: try again later`);
  if (erased > 0) parts.push(`${pluralize(erased, 'was', 'were')} of erased learners and dropped`);
  return `${parts.join('; ')}.`;
}

const field = createColumnBuilder<Row>();
const columns: Column<Row>[] = [
  field('Parked (UTC)', 'parked_at', { format: formatDayTime }),
  field('Tenant', 'tenant'),
  field('Reason', 'reason', { format: (reason) => <span class="long">{reason}</span> }),
  field('Stream', 'stream', { format: (stream) => <code>{stream}</code> }),
  field('Id', 'id', { format: (id) => <code>{id}</code> }),
];
