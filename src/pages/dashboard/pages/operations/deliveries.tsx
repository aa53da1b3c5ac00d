import { useState } from 'preact/hooks';
import type { Delivery } from '../../../../client/types.js';
import { useAction } from '../../base/action.js';
import { usePagedList } from '../../base/paged-list.js';
import { useViewer } from '../../base/viewer.js';
import { Button } from '../../parts/button.jsx';
import { ErrorNote } from '../../parts/loaded.jsx';
import { PagedTable } from '../../parts/paged-table.jsx';
import { Badge, Panel } from '../../parts/stat.jsx';
import { type Column, createActionColumn, createColumnBuilder, RowButton } from '../../parts/table.jsx';

export function DeliveriesPanel({ webhookId }: { webhookId: string }) {
  const { api } = useViewer();
  const [outcome, setOutcome] = useState('');
  const deliveries = usePagedList((page) => api.deliveries(webhookId, page), 'deliveries', [api, webhookId]);
  const redelivery = useAction(async (messageId: string) => {
    await api.redeliver(webhookId, messageId);
    setOutcome(`Message ${messageId} will be sent again.`);
    deliveries.reload();
  });
  return (
    <Panel
      title={`Deliveries of ${webhookId}`}
      about="Messages of the last 7 days, newest first. The service retries failed messages with increasing delays."
    >
      <div class="row">
        <Button disabled={deliveries.isLoading} onClick={deliveries.reload}>
          Refresh
        </Button>
        <p role="status">{outcome}</p>
      </div>
      {redelivery.error !== null && <ErrorNote error={redelivery.error} />}
      <PagedTable
        list={deliveries}
        subject="deliveries"
        name={`Deliveries of ${webhookId}`}
        columns={buildColumns(redelivery.run)}
        rowKey={({ message_id }) => message_id}
        filter
        empty="No messages in the last 7 days. Click Test to send one."
      />
    </Panel>
  );
}

const tones = { pending: 'soft', delivered: 'good', failed: 'alert' } as const;

const field = createColumnBuilder<Delivery>();
const buildColumns = (redeliver: (messageId: string) => unknown): Column<Delivery>[] => [
  field('Time', 'created_at', { isTime: true }),
  field('Event', 'type', { format: (type) => <span class="words">{type}</span> }),
  field('Status', 'status', { format: (status) => <Badge tone={tones[status]}>{status}</Badge> }),
  field('Attempts', 'tries'),
  field(
    'Last response',
    ({ last_status, last_error }) => last_error ?? (last_status === null ? null : `${last_status}`),
  ),
  field('Next attempt', 'next_try_at', { isTime: true }),
  field('Message', 'message_id', { format: (message_id) => <code>{message_id}</code> }),
  createActionColumn(
    ({ message_id, status }) =>
      status !== 'pending' && (
        <RowButton aria-label={`Redeliver ${message_id}`} onClick={() => redeliver(message_id)}>
          Redeliver
        </RowButton>
      ),
  ),
];
