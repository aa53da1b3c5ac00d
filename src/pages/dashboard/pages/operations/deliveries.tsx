import { useState } from 'preact/hooks';
import type { Delivery } from '../../../../client/types.js';
import { useAction } from '../../base/action.js';
import { dayAndTime } from '../../base/format.js';
import { usePaged } from '../../base/paged.js';
import { useViewer } from '../../base/viewer.js';
import { Button } from '../../parts/button.jsx';
import { ErrorNote } from '../../parts/loaded.jsx';
import { PagedTable } from '../../parts/paged.jsx';
import { Badge, Panel } from '../../parts/stat.jsx';
import { actionColumn, type Column, fieldsOf, RowButton } from '../../parts/table.jsx';

export function DeliveriesPanel({ webhookId }: { webhookId: string }) {
  const { api } = useViewer();
  const [told, tell] = useState('');
  const deliveries = usePaged((page) => api.deliveries(webhookId, page), 'deliveries', [api, webhookId]);
  const again = useAction(async (messageId: string) => {
    await api.redeliver(webhookId, messageId);
    tell(`Message ${messageId} is sent again.`);
    deliveries.reload();
  });
  return (
    <Panel
      title={`Deliveries of ${webhookId}`}
      about="Messages of the last seven days, newest first. One that fails is tried again with growing waits."
    >
      <div class="row">
        <Button disabled={deliveries.isLoading} onClick={deliveries.reload}>
          Look again
        </Button>
        <p role="status">{told}</p>
      </div>
      {again.error !== null && <ErrorNote error={again.error} />}
      <PagedTable
        of={deliveries}
        what="deliveries"
        name={`Deliveries of ${webhookId}`}
        columns={columnsOf(again.run)}
        rowKey={({ message_id }) => message_id}
        filter
        empty="Nothing was sent to it in seven days: Test sends it a message."
      />
    </Panel>
  );
}

const looks = { pending: 'soft', delivered: 'good', failed: 'alert' } as const;

const field = fieldsOf<Delivery>();
const columnsOf = (again: (messageId: string) => unknown): Column<Delivery>[] => [
  field('When (UTC)', 'created_at', { format: dayAndTime }),
  field('Event', 'type', { format: (type) => <span class="words">{type}</span> }),
  field('State', 'status', { format: (status) => <Badge look={looks[status]}>{status}</Badge> }),
  field('Tries', 'tries'),
  field(
    'Last answer',
    ({ last_status, last_error }) => last_error ?? (last_status === null ? null : `${last_status}`),
  ),
  field('Next try (UTC)', 'next_try_at', { format: dayAndTime }),
  field('Message', 'message_id', { format: (message_id) => <code>{message_id}</code> }),
  actionColumn(
    ({ message_id, status }) =>
      status !== 'pending' && (
        <RowButton aria-label={`Redeliver ${message_id}`} onClick={() => again(message_id)}>
          Redeliver
        </RowButton>
      ),
  ),
];
