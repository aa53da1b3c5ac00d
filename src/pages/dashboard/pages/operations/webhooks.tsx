import { useState } from 'preact/hooks';
import type { Webhook } from '../../../../client/types.js';
import { useAction } from '../../base/action.js';
import { formatDay } from '../../base/format.js';
import { usePagedList } from '../../base/paged-list.js';
import { buildHref, type Route } from '../../base/route.js';
import { useViewer } from '../../base/viewer.js';
import { Button } from '../../parts/button.jsx';
import { ErrorNote } from '../../parts/loaded.jsx';
import { PagedTable } from '../../parts/paged-table.jsx';
import { Badge, Panel } from '../../parts/stat.jsx';
import { type Column, createActionColumn, createColumnBuilder, RowButton } from '../../parts/table.jsx';
import { DeliveriesPanel } from './deliveries.jsx';
import { DeleteWebhookDialog, RotateDialog, ToggleDialog, WebhookDialog } from './webhook-dialogs.jsx';

type DialogRequest =
  | { readonly kind: 'create' }
  | { readonly kind: 'toggle' | 'edit' | 'rotate' | 'delete'; readonly webhook: Webhook };

export function WebhooksPart({ route: { args } }: { readonly route: Route }) {
  const { api } = useViewer();
  const [, chosen] = args;
  const [dialog, setDialog] = useState<DialogRequest | null>(null);
  const [outcome, setOutcome] = useState('');
  const webhooks = usePagedList((page) => api.webhooks(page), 'webhooks', [api]);
  const test = useAction(async ({ webhook_id }: Webhook) => {
    const { message_id } = await api.testWebhook(webhook_id);
    setOutcome(`Test message ${message_id} is queued for ${webhook_id}.`);
  });
  const finish = (text: string): void => {
    setOutcome(text);
    webhooks.reload();
  };
  const handlers = { onClose: () => setDialog(null), onDone: finish };
  return (
    <>
      <Panel title="Webhooks" about="Endpoints that receive events of this tenant.">
        <div>
          <Button class="primary" onClick={() => setDialog({ kind: 'create' })}>
            Create webhook
          </Button>
        </div>
        <PagedTable
          list={webhooks}
          subject="webhooks"
          name="Webhooks"
          columns={buildColumns({ chosen, onTest: test.run, onOpen: setDialog })}
          rowKey={({ webhook_id }) => webhook_id}
          empty="No webhooks yet."
        />
        {test.error !== null && <ErrorNote error={test.error} />}
        <p role="status">{outcome}</p>
      </Panel>
      {chosen !== undefined && <DeliveriesPanel key={chosen} webhookId={chosen} />}
      {dialog?.kind === 'create' && <WebhookDialog {...handlers} />}
      {dialog?.kind === 'edit' && <WebhookDialog webhook={dialog.webhook} {...handlers} />}
      {dialog?.kind === 'rotate' && <RotateDialog webhook={dialog.webhook} {...handlers} />}
      {dialog?.kind === 'delete' && <DeleteWebhookDialog webhook={dialog.webhook} {...handlers} />}
      {dialog?.kind === 'toggle' && <ToggleDialog webhook={dialog.webhook} {...handlers} />}
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

const rowDialogs = [
  ['edit', 'Edit'],
  ['rotate', 'Rotate secret'],
  ['delete', 'Delete'],
] as const;

interface WebhookActions {
  readonly chosen: string | undefined;
  readonly onTest: (webhook: Webhook) => unknown;
  readonly onOpen: (dialog: DialogRequest) => void;
}

const field = createColumnBuilder<Webhook>();
const buildColumns = ({ chosen, onTest, onOpen }: WebhookActions): Column<Webhook>[] => [
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
  field('Created', 'created_at', { isTime: true, format: formatDay }),
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
        onClick={() => onOpen({ kind: 'toggle', webhook })}
      >
        {webhook.enabled ? 'Disable' : 'Enable'}
      </RowButton>
      {rowDialogs.map(([kind, label]) => (
        <RowButton
          key={kind}
          aria-label={`${label} ${webhook.webhook_id}`}
          onClick={() => onOpen({ kind, webhook })}
        >
          {label}
        </RowButton>
      ))}
    </span>
  )),
];
