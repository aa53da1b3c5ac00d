import { useState } from 'preact/hooks';
import type { ParkedPage, Redriven } from '../../../../client/types.js';
import { dayAndTime, plural } from '../../base/format.js';
import { usePaged } from '../../base/paged.js';
import { useViewer } from '../../base/viewer.js';
import { Button } from '../../parts/button.jsx';
import { Confirm } from '../../parts/dialog.jsx';
import { PagedTable } from '../../parts/paged.jsx';
import { Panel } from '../../parts/stat.jsx';
import { type Column, fieldsOf } from '../../parts/table.jsx';

type Row = ParkedPage['rows'][number];

export function ParkedPart() {
  const { api } = useViewer();
  const [isAsked, ask] = useState(false);
  const [told, tell] = useState('');
  const parked = usePaged((page) => api.parked(page), 'rows', [api]);
  const redrive = async (): Promise<void> => {
    tell(outcomeOf(await api.redrive()));
    parked.reload();
  };
  return (
    <Panel
      title="Parked rows"
      about="Answers, and changes of goals and catalogues, that ClickHouse refused for what they say. They are kept, count for their learners, and are missing in histories and statistics only."
    >
      <PagedTable
        of={parked}
        what="parked rows"
        name="Parked rows"
        columns={columns}
        rowKey={({ stream, id }) => `${stream} ${id}`}
        filter
        empty="Nothing is parked, as it should be."
      >
        {parked.rows !== null && parked.rows.length > 0 && (
          <div>
            <Button class="primary" onClick={() => ask(true)}>
              Redrive all
            </Button>
          </div>
        )}
      </PagedTable>
      <p role="status">{told}</p>
      {isAsked && (
        <Confirm title="Redrive all parked rows?" verb="Redrive" act={redrive} onClose={() => ask(false)}>
          <p>
            All of them, those of other pages included, are put back into their line and stored as if nothing
            had been. Mend what the reasons name first: what is refused again is parked again. Nothing is
            stored twice.
          </p>
        </Confirm>
      )}
    </Panel>
  );
}

function outcomeOf({ moved, stayed, erased }: Redriven): string {
  const parts = [`${plural(moved, 'row was', 'rows were')} put back`];
  if (stayed > 0)
    parts.push(`${plural(stayed, 'stays', 'stay')} until a correction is applied: try again later`);
  if (erased > 0) parts.push(`${plural(erased, 'was', 'were')} of erased learners and dropped`);
  return `${parts.join('; ')}.`;
}

const field = fieldsOf<Row>();
const columns: Column<Row>[] = [
  field('Parked (UTC)', 'parked_at', { format: dayAndTime }),
  field('Tenant', 'tenant'),
  field('Reason', 'reason', { format: (reason) => <span class="long">{reason}</span> }),
  field('Stream', 'stream', { format: (stream) => <code>{stream}</code> }),
  field('Id', 'id', { format: (id) => <code>{id}</code> }),
];
