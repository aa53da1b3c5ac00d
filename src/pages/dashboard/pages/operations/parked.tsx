import { useState } from 'preact/hooks';
import type { ParkedPage, Redriven } from '../../../../client/types.js';
import { pluralize } from '../../base/format.js';
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
      about="Answers and changes of goals or catalogues that ClickHouse rejected because of their content. The service stores these rows. They count for learners but are missing in histories and statistics."
    >
      <PagedTable
        list={parked}
        subject="parked rows"
        name="Parked rows"
        columns={columns}
        rowKey={({ stream, id }) => `${stream} ${id}`}
        filter
        empty="No parked rows."
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
            The service sends all parked rows to ClickHouse again, including rows on other pages. Fix the
            reasons first: rows that ClickHouse rejects again are parked again. No row is stored twice.
          </p>
        </ConfirmDialog>
      )}
    </Panel>
  );
}

function describeOutcome({ moved, stayed, erased }: Redriven): string {
  const parts = [`${pluralize(moved, 'row was', 'rows were')} requeued`];
  if (stayed > 0)
    parts.push(
      `${pluralize(stayed, 'row remains', 'rows remain')} parked: their stream is full, or a correction is pending. Try again later`,
    );
  if (erased > 0)
    parts.push(
      `${pluralize(erased, 'row of an erased learner was', 'rows of erased learners were')} deleted`,
    );
  return `${parts.join('; ')}.`;
}

const field = createColumnBuilder<Row>();
const columns: Column<Row>[] = [
  field('Parked', 'parked_at', { isTime: true }),
  field('Tenant', 'tenant'),
  field('Reason', 'reason', { format: (reason) => <span class="long">{reason}</span> }),
  field('Stream', 'stream', { format: (stream) => <code>{stream}</code> }),
  field('Id', 'id', { format: (id) => <code>{id}</code> }),
];
