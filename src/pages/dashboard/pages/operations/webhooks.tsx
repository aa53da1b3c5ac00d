import { useState } from 'preact/hooks';
import type { Webhook } from '../../../../client/types.js';
import { useAction } from '../../base/action.js';
import { formatDay } from '../../base/format.js';
import { usePagedList } from '../../base/paged-list.js';
import { buildHref, type Route } from '../../base/route.js';
import { useViewer } from '../../base/viewer.js';
import { ConfirmDialog } from '../../parts/dialog.jsx';
import { ErrorNote } from '../../parts/loaded.jsx';
import { PagedTable } from '../../parts/paged-table.jsx';
import { Badge, Panel } from '../../parts/stat.jsx';
import { type Column, createActionColumn, createColumnBuilder, RowButton } from '../../parts/table.jsx';
import { DeliveriesPanel } from './deliveries.jsx';

export function WebhooksPart({ route: { args } }: { readonly route: Route }) {
  const { api } = useViewer();
  const [, chosen] = args;
  const [toggledWebhook, setToggledWebhook] = useState<Webhook | null>(null);
  const [outcome, setOutcome] = useState('');
  const webhooks = usePagedList((page) => api.webhooks(page), 'webhooks', [api]);
  const test = useAction(async ({ webhook_id }: Webhook) => {
    const { message_id } = await api.testWebhook(webhook_id);
    setOutcome(`Test message ${message_id} is queued for ${webhook_id}.`);
  });
  const toggleWebhook = async ({ webhook_id, enabled }: Webhook): Promise<void> => {
    await api.changeWebhook(webhook_id, { enabled: !enabled });
    setOutcome(`${webhook_id} is ${enabled ? 'disabled' : 'enabled'}.`);
    webhooks.reload();
  };
  return (
    <>
      <Panel title="Webhooks" about="Endpoints that receive events of this tenant.">
        <PagedTable
          list={webhooks}
          subject="webhooks"
          name="Webhooks"
          columns={buildColumns({ chosen, onTest: test.run, onToggle: setToggledWebhook })}
          rowKey={({ webhook_id }) => webhook_id}
          empty="No webhooks yet. Create one with POST /api/v1/webhooks."
        />
        {test.error !== null && <ErrorNote error={test.error} />}
        <p role="status">{outcome}</p>
      </Panel>
      {chosen !== undefined && <DeliveriesPanel key={chosen} webhookId={chosen} />}
      {toggledWebhook !== null && (
        <ConfirmDialog
          title={`${toggledWebhook.enabled ? 'Disable' : 'Enable'} ${toggledWebhook.webhook_id}?`}
          confirmLabel={toggledWebhook.enabled ? 'Disable' : 'Enable'}
          onConfirm={() => toggleWebhook(toggledWebhook)}
          onClose={() => setToggledWebhook(null)}
        >
          <p>
            <code>{toggledWebhook.url}</code>{' '}
            {toggledWebhook.enabled
              ? 'receives no events while it is disabled. The service does not send these events later.'
              : 'receives new events. Events that occurred while it was disabled are not sent.'}
          </p>
        </ConfirmDialog>
      )}
    </>
  );
}

const disabledReasons: Readonly<Record<NonNullable<Webhook['disabled_reason']>, string>> = {
  request: 'manually',
  gone: 'the endpoint returned 410',
  failing: 'deliveries failed for days',
  undelivered: 'too many undelivered messages',
  restored: 'restored without its secrets: rotate the secret first',
};

interface WebhookActions {
  readonly chosen: string | undefined;
  readonly onTest: (webhook: Webhook) => unknown;
  readonly onToggle: (webhook: Webhook) => void;
}

const field = createColumnBuilder<Webhook>();
const buildColumns = ({ chosen, onTest, onToggle }: WebhookActions): Column<Webhook>[] => [
  field('Endpoint', 'url', {
    show: ({ url, webhook_id, description }) => (
      <>
        <a
          href={buildHref('operations', ['webhooks', webhook_id])}
          aria-current={webhook_id === chosen ? 'true' : undefined}
        >
          {url}
        </a>
        {description !== null && (
          <div class="soft">
            <bdi>{description}</bdi>
          </div>
        )}
      </>
    ),
  }),
  field('Id', 'webhook_id', { format: (webhook_id) => <code>{webhook_id}</code> }),
  field('Events', ({ event_types }) => event_types.join(', '), {
    show: ({ event_types }) => (event_types.includes('*') ? 'all' : event_types.join(', ')),
  }),
  field('Status', ({ enabled, disabled_reason }) => (enabled ? 'enabled' : `disabled: ${disabled_reason}`), {
    show: ({ enabled, disabled_reason }) =>
      enabled ? (
        <Badge tone="good">enabled</Badge>
      ) : (
        <>
          <Badge tone="alert">disabled</Badge> {disabled_reason !== null && disabledReasons[disabled_reason]}
        </>
      ),
  }),
  field('Created (UTC)', 'created_at', { format: formatDay }),
  createActionColumn((webhook) => (
    <span class="row tight">
      <a class="button quiet" href={buildHref('operations', ['webhooks', webhook.webhook_id])}>
        Deliveries
      </a>
      {webhook.enabled && (
        <RowButton aria-label={`Test ${webhook.webhook_id}`} onClick={() => onTest(webhook)}>
          Test
        </RowButton>
      )}
      <RowButton
        aria-label={`${webhook.enabled ? 'Disable' : 'Enable'} ${webhook.webhook_id}`}
        onClick={() => onToggle(webhook)}
      >
        {webhook.enabled ? 'Disable' : 'Enable'}
      </RowButton>
    </span>
  )),
];
