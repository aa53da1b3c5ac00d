import { useState } from 'preact/hooks';
import type { Erasure, ErasurePage } from '../../../../client/types.js';
import { useInterval } from '../../base/interval.js';
import { useLoad } from '../../base/load.js';
import { usePagedList } from '../../base/paged-list.js';
import { useViewer } from '../../base/viewer.js';
import { Button } from '../../parts/button.jsx';
import { Dialog, FormDialog } from '../../parts/dialog.jsx';
import { TextField } from '../../parts/field.jsx';
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
  const [isStarting, setStarting] = useState(false);
  const [outcome, setOutcome] = useState('');
  const erasures = usePagedList((page) => api.erasures(page), 'erasures', [api]);
  const hasOpen = erasures.rows?.some(({ status }) => status !== 'done') ?? false;
  useInterval(erasures.reload, hasOpen ? pollMs : null);
  const handleStarted = (erasureId: string): void => {
    setOutcome(`Erasure ${erasureId} is started.`);
    erasures.reload();
  };
  return (
    <Panel
      title={`Erasures of ${ownKey.tenant}`}
      about="Erased learners, without their ids. An erasure is done when a query proves that no rows of the learner remain."
    >
      <div class="row">
        <Button class="danger" onClick={() => setStarting(true)}>
          Erase a learner
        </Button>
        <p role="status">{outcome}</p>
      </div>
      {isStarting && <EraseDialog onClose={() => setStarting(false)} onDone={handleStarted} />}
      <PagedTable
        list={erasures}
        subject="erasures"
        name="Erasures"
        columns={buildColumns(setShownId)}
        rowKey={({ erasure_id }) => erasure_id}
        filter
        empty="No erasures yet."
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

/** While an erasure is running. */
const pollMs = 3000;

const idInput = { required: true, maxLength: 128, autocomplete: 'off' } as const;

/** The learner id is typed twice: it is the confirmation. */
function EraseDialog({ onClose, onDone }: { onClose: () => void; onDone: (erasureId: string) => void }) {
  const { api } = useViewer();
  const [userId, setUserId] = useState('');
  const [repeated, setRepeated] = useState('');
  const erase = async (): Promise<boolean> => {
    onDone((await api.eraseLearner(userId)).erasure_id);
    return true;
  };
  return (
    <FormDialog
      title="Erase a learner"
      submitLabel="Erase permanently"
      isDangerous
      isIncomplete={userId === '' || userId !== repeated}
      onSubmit={erase}
      onClose={onClose}
    >
      <p>
        The service deletes all answers, goals, forecasts and messages of the learner, in Redis and
        ClickHouse. You cannot undo this. Backups keep the data until they expire.
      </p>
      <TextField label="Learner id" {...idInput} value={userId} onChange={setUserId} />
      <TextField label="Type the learner id again" {...idInput} value={repeated} onChange={setRepeated} />
    </FormDialog>
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
  field('Requested', 'requested_at', { isTime: true }),
  field('Done', 'done_at', { isTime: true }),
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
