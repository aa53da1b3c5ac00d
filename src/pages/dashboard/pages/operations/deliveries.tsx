import { useState } from 'preact/hooks';
import type { Delivery } from '../../../../client/types.js';
import { useAction } from '../../base/action.js';
import { dayAndTime } from '../../base/format.js';
import { usePaged } from '../../base/paged.js';
import { useViewer } from '../../base/viewer.js';
import { ErrorNote } from '../../parts/loaded.jsx';
import { PagedRows } from '../../parts/paged.jsx';
import { Badge, Panel } from '../../parts/stat.jsx';
import { type Column, Table } from '../../parts/table.jsx';

export function DeliveriesPanel({ webhookId }: { webhookId: string }) {
  const { api } = useViewer();
  const [told, tell] = useState('');
  const deliveries = usePaged(
    async (cursor, signal) => {
      const page = await api.deliveries(webhookId, { cursor, signal });
      return { rows: page.deliveries, next: page.next_cursor };
    },
    [api, webhookId],
  );
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
        <button type="button" disabled={deliveries.isLoading} onClick={deliveries.reload}>
          Look again
        </button>
        <p role="status">{told}</p>
      </div>
      {again.error !== null && <ErrorNote error={again.error} />}
      <PagedRows of={deliveries} what="deliveries">
        {(rows) => (
          <Table
            name={`Deliveries of ${webhookId}`}
            columns={columnsOf(again.run)}
            rows={rows}
            rowKey={({ message_id }) => message_id}
            filter
            empty="Nothing was sent to it in seven days: Test sends it a message."
          />
        )}
      </PagedRows>
    </Panel>
  );
}

const looks = { pending: 'soft', delivered: 'good', failed: 'alert' } as const;

const columnsOf = (again: (messageId: string) => unknown): Column<Delivery>[] => [
  {
    title: 'When (UTC)',
    value: ({ created_at }) => created_at,
    show: ({ created_at }) => dayAndTime(created_at),
  },
  { title: 'Event', value: ({ type }) => type, show: ({ type }) => <span class="words">{type}</span> },
  {
    title: 'State',
    value: ({ status }) => status,
    show: ({ status }) => <Badge look={looks[status]}>{status}</Badge>,
  },
  { title: 'Tries', value: ({ tries }) => tries },
  {
    title: 'Last answer',
    value: ({ last_status, last_error }) => last_error ?? (last_status === null ? null : `${last_status}`),
  },
  {
    title: 'Next try (UTC)',
    value: ({ next_try_at }) => next_try_at,
    show: ({ next_try_at }) => dayAndTime(next_try_at),
  },
  {
    title: 'Message',
    value: ({ message_id }) => message_id,
    show: ({ message_id }) => <code>{message_id}</code>,
  },
  {
    title: 'Do',
    isAction: true,
    value: () => null,
    show: ({ message_id, status }) =>
      status !== 'pending' && (
        <button
          type="button"
          class="quiet"
          aria-label={`Redeliver ${message_id}`}
          onClick={() => again(message_id)}
        >
          Redeliver
        </button>
      ),
  },
];
