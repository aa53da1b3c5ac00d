import { useState } from 'preact/hooks';
import type { Erasure, ErasurePage } from '../../../../client/types.js';
import { formatDayTime } from '../../base/format.js';
import { useLoad } from '../../base/load.js';
import { usePagedList } from '../../base/paged-list.js';
import { useViewer } from '../../base/viewer.js';
import { Button } from '../../parts/button.jsx';
import { Dialog } from '../../parts/dialog.jsx';
import { Loaded } from '../../parts/loaded.jsx';
import { PagedTable } from '../../parts/paged-table.jsx';
import { Badge, Panel } from '../../parts/stat.jsx';
import {
  type Column,
  createActionColumn,
  createColumnBuilder,
  RowButton,
  Table,
} from '../../parts/table.jsx';

type Row = ErasurePage['erasures'][number];

export function ErasuresPart() {
  const { api, ownKey } = useViewer();
  const [shownId, setShownId] = useState<string | null>(null);
  const erasures = usePagedList((page) => api.erasures(page), 'erasures', [api]);
  return (
    <Panel
      title={`Erasures of ${ownKey.tenant}`}
      about="Erased learners, without their ids. An erasure is done when a query proves that no rows of the learner remain."
    >
      <PagedTable
        list={erasures}
        subject="erasures"
        name="Erasures"
        columns={buildColumns(setShownId)}
        rowKey={({ erasure_id }) => erasure_id}
        filter
        empty="No erasures yet. DELETE /api/v1/learners/{user_id} erases a learner."
      />
      {shownId !== null && (
        <Dialog title="Erasure" onClose={() => setShownId(null)}>
          <ErasureProof erasureId={shownId} />
          <div>
            <Button onClick={() => setShownId(null)}>Close</Button>
          </div>
        </Dialog>
      )}
    </Panel>
  );
}

const statusTexts: Readonly<Record<Row['status'], string>> = {
  pending: 'waiting for ClickHouse',
  running: 'deleting rows',
  done: 'done',
};

const field = createColumnBuilder<Row>();
const buildColumns = (onShow: (erasureId: string) => void): Column<Row>[] => [
  field('Erasure', 'erasure_id', { format: (erasure_id) => <code>{erasure_id}</code> }),
  field('Status', 'status', {
    format: (status) => <Badge tone={status === 'done' ? 'good' : 'soft'}>{statusTexts[status]}</Badge>,
  }),
  field('Requested (UTC)', 'requested_at', { format: formatDayTime }),
  field('Done (UTC)', 'done_at', { format: formatDayTime }),
  createActionColumn(({ erasure_id }) => (
    <RowButton aria-label={`Proof of ${erasure_id}`} onClick={() => onShow(erasure_id)}>
      Proof
    </RowButton>
  )),
];

function ErasureProof({ erasureId }: { erasureId: string }) {
  const { api } = useViewer();
  const erasure = useLoad((signal) => api.erasure(erasureId, { signal }), [api, erasureId]);
  return (
    <Loaded load={erasure} subject="the proof">
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
              <summary>Query of the proof</summary>
              <pre class="query">{proof.query}</pre>
            </details>
          )}
        </>
      )}
    </Loaded>
  );
}

const placeField = createColumnBuilder<Erasure['places'][number]>();
const placeColumns: Column<Erasure['places'][number]>[] = [
  placeField('Table', 'place'),
  placeField('Rows before', 'before'),
  placeField('Rows after', 'after', { align: 'end' }),
];
