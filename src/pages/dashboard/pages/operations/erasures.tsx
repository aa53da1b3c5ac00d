import { useState } from 'preact/hooks';
import type { Erasure, ErasurePage } from '../../../../client/types.js';
import { dayAndTime } from '../../base/format.js';
import { useLoad } from '../../base/load.js';
import { usePaged } from '../../base/paged.js';
import { useViewer } from '../../base/viewer.js';
import { Button } from '../../parts/button.jsx';
import { Dialog } from '../../parts/dialog.jsx';
import { Loaded } from '../../parts/loaded.jsx';
import { PagedTable } from '../../parts/paged.jsx';
import { Badge, Panel } from '../../parts/stat.jsx';
import { actionColumn, type Column, fieldsOf, RowButton, Table } from '../../parts/table.jsx';

type Row = ErasurePage['erasures'][number];

export function ErasuresPart() {
  const { api, own } = useViewer();
  const [shown, show] = useState<string | null>(null);
  const erasures = usePaged((page) => api.erasures(page), 'erasures', [api]);
  return (
    <Panel
      title={`Erasures of ${own.tenant}`}
      about="Learners who were erased, without their names. One is done when it is proven that no row is left of them."
    >
      <PagedTable
        of={erasures}
        what="erasures"
        name="Erasures"
        columns={columnsOf(show)}
        rowKey={({ erasure_id }) => erasure_id}
        filter
        empty="No learner was erased. DELETE /api/v1/learners/{user_id} erases one."
      />
      {shown !== null && (
        <Dialog title="Erasure" onClose={() => show(null)}>
          <Receipt erasureId={shown} />
          <div>
            <Button onClick={() => show(null)}>Close</Button>
          </div>
        </Dialog>
      )}
    </Panel>
  );
}

const statuses: Readonly<Record<Row['status'], string>> = {
  pending: 'waits for ClickHouse',
  running: 'rows are deleted',
  done: 'done',
};

const field = fieldsOf<Row>();
const columnsOf = (show: (erasureId: string) => void): Column<Row>[] => [
  field('Erasure', 'erasure_id', { format: (erasure_id) => <code>{erasure_id}</code> }),
  field('State', 'status', {
    format: (status) => <Badge look={status === 'done' ? 'good' : 'soft'}>{statuses[status]}</Badge>,
  }),
  field('Asked for (UTC)', 'requested_at', { format: dayAndTime }),
  field('Done (UTC)', 'done_at', { format: dayAndTime }),
  actionColumn(({ erasure_id }) => (
    <RowButton aria-label={`Proof of ${erasure_id}`} onClick={() => show(erasure_id)}>
      Proof
    </RowButton>
  )),
];

function Receipt({ erasureId }: { erasureId: string }) {
  const { api } = useViewer();
  const erasure = useLoad((signal) => api.erasure(erasureId, { signal }), [api, erasureId]);
  return (
    <Loaded of={erasure} what="its proof">
      {({ places, proof }) => (
        <>
          <p>
            <code>{erasureId}</code>
          </p>
          <Table
            name="Rows of the erased learner"
            columns={placeColumns}
            rows={places}
            rowKey={({ place }) => place}
          />
          {proof !== null && (
            <details>
              <summary>The query that proves it</summary>
              <pre class="query">{proof.query}</pre>
            </details>
          )}
        </>
      )}
    </Loaded>
  );
}

const placeField = fieldsOf<Erasure['places'][number]>();
const placeColumns: Column<Erasure['places'][number]>[] = [
  placeField('Table', 'place'),
  placeField('Rows before', 'before'),
  placeField('Rows after', 'after', { align: 'end' }),
];
