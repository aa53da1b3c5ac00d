import { useState } from 'preact/hooks';
import type { Webhook } from '../../../../client/types.js';
import { useAction } from '../../base/action.js';
import { day } from '../../base/format.js';
import { usePaged } from '../../base/paged.js';
import { href, type Route } from '../../base/route.js';
import { useViewer } from '../../base/viewer.js';
import { Confirm } from '../../parts/dialog.jsx';
import { ErrorNote } from '../../parts/loaded.jsx';
import { PagedTable } from '../../parts/paged.jsx';
import { Badge, Panel } from '../../parts/stat.jsx';
import { actionColumn, type Column, fieldsOf, RowButton } from '../../parts/table.jsx';
import { DeliveriesPanel } from './deliveries.jsx';

export function WebhooksPart({ route: { args } }: { readonly route: Route }) {
  const { api } = useViewer();
  const [, chosen] = args;
  const [asked, ask] = useState<Webhook | null>(null);
  const [told, tell] = useState('');
  const webhooks = usePaged((page) => api.webhooks(page), 'webhooks', [api]);
  const test = useAction(async ({ webhook_id }: Webhook) => {
    const { message_id } = await api.testWebhook(webhook_id);
    tell(`A test is on its way to ${webhook_id}: message ${message_id}.`);
  });
  const switchOver = async ({ webhook_id, enabled }: Webhook): Promise<void> => {
    await api.changeWebhook(webhook_id, { enabled: !enabled });
    tell(`${webhook_id} is ${enabled ? 'disabled' : 'enabled'}.`);
    webhooks.reload();
  };
  return (
    <>
      <Panel
        title="Webhooks"
        about="Endpoints of the tenant's platforms that are told when something happened."
      >
        <PagedTable
          of={webhooks}
          what="webhooks"
          name="Webhooks"
          columns={columnsOf({ chosen, onTest: test.run, onSwitch: ask })}
          rowKey={({ webhook_id }) => webhook_id}
          empty="No endpoint yet: POST /api/v1/webhooks with its URL and the events it asks for makes one."
        />
        {test.error !== null && <ErrorNote error={test.error} />}
        <p role="status">{told}</p>
      </Panel>
      {chosen !== undefined && <DeliveriesPanel key={chosen} webhookId={chosen} />}
      {asked !== null && (
        <Confirm
          title={`${asked.enabled ? 'Disable' : 'Enable'} ${asked.webhook_id}?`}
          verb={asked.enabled ? 'Disable' : 'Enable'}
          act={() => switchOver(asked)}
          onClose={() => ask(null)}
        >
          <p>
            <code>{asked.url}</code>{' '}
            {asked.enabled
              ? 'is sent nothing from now on, and what happens meanwhile is not sent later either.'
              : 'is sent from now on what happens; what happened meanwhile is not sent.'}
          </p>
        </Confirm>
      )}
    </>
  );
}

const reasons: Readonly<Record<NonNullable<Webhook['disabled_reason']>, string>> = {
  request: 'by request',
  gone: 'it answered 410, gone',
  failing: 'it failed for days',
  undelivered: 'too much waited for it',
  restored: 'it was restored without its secrets: rotate its secret first',
};

interface Acts {
  readonly chosen: string | undefined;
  readonly onTest: (webhook: Webhook) => unknown;
  readonly onSwitch: (webhook: Webhook) => void;
}

const field = fieldsOf<Webhook>();
const columnsOf = ({ chosen, onTest, onSwitch }: Acts): Column<Webhook>[] => [
  field('Endpoint', 'url', {
    show: ({ url, webhook_id, description }) => (
      <>
        <a
          href={href('operations', ['webhooks', webhook_id])}
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
  field('State', ({ enabled, disabled_reason }) => (enabled ? 'enabled' : `disabled: ${disabled_reason}`), {
    show: ({ enabled, disabled_reason }) =>
      enabled ? (
        <Badge look="good">enabled</Badge>
      ) : (
        <>
          <Badge look="alert">disabled</Badge> {disabled_reason !== null && reasons[disabled_reason]}
        </>
      ),
  }),
  field('Made (UTC)', 'created_at', { format: day }),
  actionColumn((webhook) => (
    <span class="row tight">
      <a class="button quiet" href={href('operations', ['webhooks', webhook.webhook_id])}>
        Deliveries
      </a>
      {webhook.enabled && (
        <RowButton aria-label={`Test ${webhook.webhook_id}`} onClick={() => onTest(webhook)}>
          Test
        </RowButton>
      )}
      <RowButton
        aria-label={`${webhook.enabled ? 'Disable' : 'Enable'} ${webhook.webhook_id}`}
        onClick={() => onSwitch(webhook)}
      >
        {webhook.enabled ? 'Disable' : 'Enable'}
      </RowButton>
    </span>
  )),
];
